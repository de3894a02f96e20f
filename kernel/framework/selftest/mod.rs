//! The in-kernel self tests: a table of named cases that run on the booted machine.
//!
//! Booting with `selftest` on the command line runs them all, `selftest=TEXT` those whose name
//! contains TEXT. About half of them provoke faults and look at what is reported.

use alloc::string::String;

mod catch;
mod copies;
mod devices;
mod entries;
mod entropy;
mod faults;
mod forks;
mod hostile;
mod hostile_values;
mod lines;
mod log;
mod mappings;
mod memory;
mod processors;
mod returns;
mod shares;
mod spaces;
mod threads;
mod user;
mod vectors;
mod waits;

pub use catch::catch;

/// A named test.
pub type Test = (&'static str, fn() -> Result<(), String>);

/// All tests, by group, in the order they run.
pub static TESTS: &[&[Test]] = &[
    memory::TESTS,
    faults::TESTS,
    user::TESTS,
    copies::TESTS,
    returns::TESTS,
    vectors::TESTS,
    devices::TESTS,
    threads::TESTS,
    waits::TESTS,
    processors::TESTS,
    lines::TESTS,
    log::TESTS,
    entries::TESTS,
    entropy::TESTS,
    spaces::TESTS,
    mappings::TESTS,
    forks::TESTS,
    hostile::TESTS,
    hostile_values::TESTS,
    shares::TESTS,
];

/// Fails the test with a formatted reason if a condition does not hold.
#[macro_export]
macro_rules! check {
    ($condition:expr, $($why:tt)*) => {
        if !$condition {
            return Err(alloc::format!($($why)*));
        }
    };
}

/// So often may `gives_back` see that memory is missing.
const LOOKS: usize = 20;

/// Fails unless `work` leaves as many frames free as it found. Another processor, or a thread of
/// the kernel, may take a frame meanwhile and keep it: what is missing counts if it is missing each
/// time.
fn gives_back(work: impl Fn() -> Result<(), String>) -> Result<(), String> {
    let (mut before, mut after) = (0, 0);
    for _ in 0..LOOKS {
        before = crate::mem::stats().free;
        work()?;
        after = crate::mem::stats().free;
        if after == before {
            return Ok(());
        }
    }
    Err(alloc::format!(
        "{before} frames before, {after} after, {LOOKS} times"
    ))
}

/// What the command line asks for: `None` for no tests, else the part of the name to run.
pub fn requested(command_line: &str) -> Option<&str> {
    command_line.split_whitespace().find_map(|word| {
        let rest = word.strip_prefix("selftest")?;
        if rest.is_empty() {
            Some("")
        } else {
            rest.strip_prefix('=')
        }
    })
}

/// Runs the tests whose name contains `filter`, prints a line for each and a summary. Returns
/// whether all passed.
pub fn run(filter: &str) -> bool {
    let (mut passed, mut failed) = (0, 0);
    let all = TESTS.iter().copied().flatten();
    for (name, test) in all.filter(|(name, _)| name.contains(filter)) {
        match test() {
            Ok(()) => {
                passed += 1;
                crate::kprintln!("selftest {name} ok");
            }
            Err(why) => {
                failed += 1;
                crate::kprintln!("selftest {name} FAILED: {why}");
            }
        }
    }
    crate::kprintln!("{passed} passed, {failed} failed");
    failed == 0
}
