//! Runs the tests of the table, two at a time, and counts. A test that failed is tried once more at
//! the end, by itself, if [`second`] says so.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use machine::second;

use crate::bench::{Bench, Site};
use crate::cases::{self, Case};

/// How many tests run side by side.
const WORKERS: usize = 2;

/// The word among the arguments that says that no test gets a second try.
const ONCE: &str = "--once";

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
    let (options, parts): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| *argument == ONCE);
    let is_chosen = |case: &&Case| parts.iter().all(|part| case.name.contains(part.as_str()));
    let chosen: Vec<&Case> = cases.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        bail!("no test has {parts:?} in its name; see --list");
    }
    let site = Site::prepare()?;
    let mut failed = side_by_side(&site, &chosen);
    if options.is_empty() && second::are_due(failed.iter().map(|failure| failure.why.as_str())) {
        failed.retain(|failure| fails_again(&site, failure.case));
    }
    println!(
        "{} passed, {} failed",
        chosen.len() - failed.len(),
        failed.len()
    );
    Ok(failed.is_empty())
}

/// A test that failed.
struct Failure<'a> {
    case: &'a Case,
    why: String,
}

/// Runs the tests, two at a time; those that failed.
fn side_by_side<'a>(site: &Site, chosen: &[&'a Case]) -> Vec<Failure<'a>> {
    let next = AtomicUsize::new(0);
    let (output, failed) = (Mutex::new(()), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Err(why) = run(site, case, case.name, &output) else {
                continue;
            };
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.push(Failure { case, why });
        }
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS.min(chosen.len()) {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test that failed once more, in a folder of its own; whether it fails again.
fn fails_again(site: &Site, case: &Case) -> bool {
    let name = format!("{}-again", case.name);
    let fails = run(site, case, &name, &Mutex::new(())).is_err();
    if !fails {
        println!("unsteady {}: failed at first, passed by itself", case.name);
    }
    fails
}

/// Runs one test in the folder `name` and says how it went; the text if it failed.
fn run(site: &Site, case: &Case, name: &str, output: &Mutex<()>) -> Result<(), String> {
    let start = Instant::now();
    let attempt = || {
        let bench = Bench::new(site, name)?;
        (case.run)(&bench)?;
        // What stays is for those who look into a failure; disks of all tests are gigabytes.
        fs::remove_dir_all(&bench.folder).context("cannot remove the test's folder")
    };
    let result = catch_unwind(AssertUnwindSafe(attempt))
        .unwrap_or_else(|_| Err(anyhow!("the test panicked")))
        .map_err(|error| format!("{error:#}"));
    let seconds = start.elapsed().as_secs_f64();
    let _guard = output.lock();
    match &result {
        Ok(()) => println!("ok      {name} ({seconds:.1} s)"),
        Err(why) => println!("FAILED  {name} ({seconds:.1} s): {why}"),
    }
    result
}
