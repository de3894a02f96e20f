//! The second try of a test that failed, alone on the machine: which failures get one.
//!
//! Tests share a host with each other and with whatever else runs there, and QEMU and the host have
//! faults of their own (decision 0028). A run says of each such test that it failed at first, and
//! how.

use crate::log;

/// So many failures of one run are tried again. More are no accident.
pub const MOST: usize = 3;

/// What a failure has in its text that the host cannot be the cause of, beside the kernel's own
/// word that it has panicked: that of a Linux process, and a finding of the fuzzer.
const DAMAGE: [&str; 2] = ["FINDING", "the core failed"];

/// Whether a test that failed with this text gets a second try.
pub fn is_due(why: &str) -> bool {
    !log::has_panic(why) && !DAMAGE.iter().any(|mark| why.contains(mark))
}

/// Whether a run that failed with these texts tries its failed tests again.
pub fn are_due<'a>(mut failures: impl ExactSizeIterator<Item = &'a str>) -> bool {
    failures.len() <= MOST && failures.all(is_due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_cannot_cause_is_not_forgiven() {
        assert!(is_due("waited 120 s for the prompt"));
        assert!(is_due("3 threads are left, 2 were there before"));
        assert!(!is_due(
            "the machine ended\n[    0.4] kernel panic: cpu 1: page fault"
        ));
        assert!(!is_due("FINDING in sequence 7: victim (3) ended"));
        assert!(are_due(["late", "late"].into_iter()));
        assert!(!are_due(["late", "[ 0.4] kernel panic: x"].into_iter()));
        assert!(!are_due(["late"; MOST + 1].into_iter()));
    }
}
