//! Which tests begin, and which of them compute.
//!
//! A test that waits most of its time for a machine takes one place of those that the runner has;
//! one that keeps more than a third of a core busy takes two.

use super::Case;

/// The long ones, longest first, so that none runs alone at the end. What the tests of attacks
/// share is compiled by the first of them, while tests run that do not wait for it.
const FIRST: [&str; 22] = [
    "guide-new-domain-as-written",
    "limits-100000-names-in-a-directory",
    "source-hole-25860-higher-ranked",
    "recovery-driver-that-loses-a-request",
    "backtrace-inside-says-what-the-host-says",
    "agreement-with-the-host-ext2-4096",
    "guide-new-interface-as-written",
    "limits-pages-of-files-give-way",
    "limits-hostile-many-files-in-tmp",
    "limits-hostile-environments",
    "agreement-with-the-host-ext3-4096",
    "static-changes-a-disk-as-on-linux",
    "steps-kills-in-the-middle-of-calls-are-survived",
    "power-cuts-lose-nothing-acknowledged",
    "tmp-copies-under-crashes-on-4-processors",
    "hog-on-one-processor",
    "hog-on-two-processors",
    "hog-on-four-processors",
    "backtrace-tables-say-what-the-compiler-wrote",
    "recovery-100-driver-crashes-cost-no-memory",
    "steps-a-single-lost-object-is-noticed",
    "storms-under-small-files",
];

/// Those that compute besides the ones on four processors, and those in which memory is to be given
/// back within a third of a second.
const BUSY: [&str; 14] = [
    "guide-new-domain-as-written",
    "guide-new-interface-as-written",
    "hog-on-two-processors",
    "hog-on-four-processors",
    "limits-1000-processes",
    "limits-100000-names-in-a-directory",
    "limits-caches-give-way",
    "limits-pages-of-files-give-way",
    "profile-shows-domains-under-a-program",
    "source-hole-25860-higher-ranked",
    "steps-kills-in-the-middle-of-calls-are-survived",
    "times-a-thousand-threads-and-ls",
    "times-of-two-processors",
    "trace-shows-crash-restart-and-repeated-request",
];

/// What the names of tests on four processors end with.
const WIDE: &str = "-on-4-processors";

/// Puts the long ones first; the others stay as they are.
pub(super) fn sort(cases: &mut [Case]) {
    cases.sort_by_key(|case| {
        let place = FIRST.iter().position(|name| *name == case.name);
        place.unwrap_or(FIRST.len())
    });
}

impl Case {
    /// How many places it takes while it runs.
    pub fn places(&self) -> usize {
        let is_busy = self.name.ends_with(WIDE) || BUSY.contains(&self.name);
        1 + usize::from(is_busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_named_exist_and_the_long_ones_come_first() {
        let all = super::super::all();
        let is_there = |name: &str| all.iter().any(|case| case.name == name);
        let missing: Vec<_> = FIRST
            .iter()
            .chain(&BUSY)
            .filter(|name| !is_there(name))
            .collect();
        assert!(missing.is_empty(), "no test is called {missing:?}");
        let first: Vec<_> = all.iter().map(|case| case.name).take(FIRST.len()).collect();
        assert_eq!(first, FIRST);
        assert!(all.iter().any(|case| case.name.ends_with(WIDE)));
    }
}
