//! Runs the tests of the table, two at a time, and counts.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

use crate::bench::{Bench, Site};
use crate::cases::{self, Case};

/// How many tests run side by side.
const WORKERS: usize = 2;

/// Runs the tests that `arguments` ask for; whether all passed.
///
/// # Errors
/// If no test has such a name, or the ground for the tests cannot be made.
pub fn main(arguments: Vec<String>) -> Result<bool> {
    let cases: Vec<Case> = cases::all();
    if arguments.iter().any(|argument| argument == "--list") {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(true);
    }
    let is_chosen = |case: &&Case| {
        arguments
            .iter()
            .all(|part| case.name.contains(part.as_str()))
    };
    let chosen: Vec<&Case> = cases.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        bail!("no test has {arguments:?} in its name; see --list");
    }
    let site = Site::prepare()?;
    let (next, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let output = Mutex::new(());
    thread::scope(|scope| {
        for _ in 0..WORKERS.min(chosen.len()) {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    passed.fetch_add(usize::from(run(&site, case, &output)), Ordering::Relaxed);
                }
            });
        }
    });
    let passed = passed.into_inner();
    println!("{passed} passed, {} failed", chosen.len() - passed);
    Ok(passed == chosen.len())
}

/// Runs one test and says how it went; whether it passed.
fn run(site: &Site, case: &Case, output: &Mutex<()>) -> bool {
    let start = Instant::now();
    let attempt = || {
        let bench = Bench::new(site, case.name)?;
        (case.run)(&bench)?;
        // What stays is for those who look into a failure; disks of all tests are gigabytes.
        fs::remove_dir_all(&bench.folder).context("cannot remove the test's folder")
    };
    let result = catch_unwind(AssertUnwindSafe(attempt))
        .unwrap_or_else(|_| Err(anyhow!("the test panicked")));
    let seconds = start.elapsed().as_secs_f64();
    let _guard = output.lock();
    match &result {
        Ok(()) => println!("ok      {} ({seconds:.1} s)", case.name),
        Err(error) => println!("FAILED  {} ({seconds:.1} s): {error:#}", case.name),
    }
    result.is_ok()
}
