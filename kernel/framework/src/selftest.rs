//! The in-kernel self tests: a table of named cases that run on the booted machine.

use alloc::string::String;

/// A named test.
pub type Test = (&'static str, fn() -> Result<(), String>);

/// All tests of the framework, in the order they run.
pub static TESTS: &[Test] = &[];

/// Runs the tests whose name contains `filter`, prints a line for each and a summary. Returns
/// whether all passed.
pub fn run(filter: &str) -> bool {
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(filter)) {
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
