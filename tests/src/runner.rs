//! Runs the tests of the table side by side, and counts. A test that failed is tried once more at
//! the end, by itself, if [`second`] says so.
//!
//! Most tests wait most of their time: for a machine that waits, for a time that must pass. So four
//! of them run at once, or two that compute ([`Case::places`]).

use std::collections::VecDeque;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use machine::second;
use trefoil_gate::tool;

use crate::bench::{Bench, Site};
use crate::cases::{self, Case};

/// The places for tests; how many of them run side by side at most.
const PLACES: usize = 4;

/// The word among the arguments that says that no test gets a second try.
const ONCE: &str = "--once";
/// The word that asks for the long tests, too.
const ALL: &str = "--all";

/// Runs the tests that `arguments` ask for; whether all passed.
///
/// # Errors
/// If no test has such a name, or the ground for the tests cannot be made.
pub fn main(arguments: Vec<String>) -> Result<bool> {
    let mut cases: Vec<Case> = cases::all();
    if arguments.iter().any(|argument| argument == "--list") {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(true);
    }
    let (options, parts): (Vec<_>, Vec<_>) = arguments
        .iter()
        .partition(|argument| [ONCE, ALL].contains(&argument.as_str()));
    let is_asked = |option: &str| options.iter().any(|given| *given == option);
    if parts.is_empty() && !is_asked(ALL) {
        cases::order::without_long(&mut cases);
    }
    let is_chosen = |case: &&Case| parts.iter().all(|part| case.name.contains(part.as_str()));
    let chosen: Vec<&Case> = cases.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        bail!("no test has {parts:?} in its name; see --list");
    }
    let site = Site::prepare()?;
    let mut failed = side_by_side(&site, &chosen);
    if !is_asked(ONCE) && second::are_due(failed.iter().map(|failure| failure.why.as_str())) {
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

/// Runs the tests side by side; those that failed.
fn side_by_side<'a>(site: &Site, chosen: &[&'a Case]) -> Vec<Failure<'a>> {
    let queue = Queue::new(chosen);
    let (output, failed) = (Mutex::new(()), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = queue.begin() {
            let result = run(site, case, case.name, &output);
            queue.end(case);
            let Err(why) = result else {
                continue;
            };
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.push(Failure { case, why });
        }
    };
    thread::scope(|scope| {
        for _ in 0..PLACES.min(chosen.len()) {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The tests that have not begun, and the places that are free. They begin in their order: one that
/// takes two places is not passed by those behind it, or it would run at the end.
struct Queue<'a> {
    state: Mutex<State<'a>>,
    has_place: Condvar,
}

struct State<'a> {
    waiting: VecDeque<&'a Case>,
    free: usize,
}

impl<'a> Queue<'a> {
    fn new(chosen: &[&'a Case]) -> Self {
        Queue {
            state: Mutex::new(State {
                waiting: chosen.iter().copied().collect(),
                free: PLACES,
            }),
            has_place: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are places for the next test and takes them; `None` if all have begun.
    fn begin(&self) -> Option<&'a Case> {
        let mut state = self.state();
        loop {
            let places = state.waiting.front()?.places();
            if places <= state.free {
                state.free -= places;
                return state.waiting.pop_front();
            }
            let waited = self.has_place.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives the places of a test back.
    fn end(&self, case: &Case) {
        self.state().free += case.places();
        self.has_place.notify_all();
    }
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
        .map_err(|error| tool::plain(&format!("{error:#}")).into_owned());
    let seconds = start.elapsed().as_secs_f64();
    let _guard = output.lock();
    match &result {
        Ok(()) => println!("ok      {name} ({seconds:.1} s)"),
        Err(why) => println!("FAILED  {name} ({seconds:.1} s): {why}"),
    }
    result
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn tests_that_compute_take_two_places_and_are_not_passed() {
        let case = |name| Case {
            name,
            run: |_| Ok(()),
        };
        let [wide, other, narrow, last] = [
            "copies-on-4-processors",
            "reads-on-4-processors",
            "reads",
            "writes",
        ]
        .map(case);
        let queue = Queue::new(&[&narrow, &wide, &other, &last]);
        let begun = |free: usize| {
            let name = queue.begin().map(|case| case.name);
            assert_eq!(queue.state().free, free, "{name:?}");
            name
        };
        assert_eq!(begun(3), Some("reads"));
        assert_eq!(begun(1), Some("copies-on-4-processors"));
        // One place is free, which the last test could have.
        thread::scope(|scope| {
            let third = scope.spawn(|| queue.begin().map(|case| case.name));
            thread::sleep(Duration::from_millis(20));
            assert!(!third.is_finished());
            queue.end(&narrow);
            let third = third.join().expect("it does not panic");
            assert_eq!(third, Some("reads-on-4-processors"));
        });
        queue.end(&wide);
        assert_eq!(begun(1), Some("writes"));
        assert_eq!(begun(1), None);
    }
}
