//! Which tests begin, which of them compute, and which are left to `test --all`.
//!
//! A test that waits most of its time for a machine takes one place of those that the runner has;
//! one that keeps more than a third of a core busy takes two.
//!
//! Whoever changes something waits for all tests, so those that take long and seldom find what no
//! other test does run with `--all`, or if they are asked for by name. So does the twin of a test
//! that runs on four processors.

use super::Case;

/// The long ones, longest first, so that none runs alone at the end. What the tests of attacks
/// share is compiled by the first of them, while tests run that do not wait for it.
const FIRST: [&str; 24] = [
    "guide-new-domain-as-written",
    "linux-scripts-print-what-debians-kernel-prints",
    "linux-memory-is-short",
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

/// Those that are left to `--all`, besides the twins: campaigns, and tables of many of a kind of
/// which others run.
const LONG: [&str; 14] = [
    "agreement-with-the-host-ext2-1024",
    "agreement-with-the-host-ext2-2048",
    "agreement-with-the-host-ext3-1024",
    "agreement-with-the-host-ext3-2048",
    "backtrace-inside-says-what-the-host-says",
    "faults-in-a-driver-of-nvme-are-not-noticed",
    "faults-in-the-keeper-of-files-are-not-noticed",
    "faults-in-the-shadow-of-a-disk-are-not-noticed",
    "faults-in-the-shadow-of-files-are-not-noticed",
    "fuzz-hostile-values-on-1-processor",
    "fuzz-hostile-values-on-2-processors",
    "guide-new-domain-as-written",
    "limits-100000-names-in-a-directory",
    "recovery-driver-that-loses-a-request",
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

/// Takes away those that are left to `--all`.
pub(crate) fn without_long(cases: &mut Vec<Case>) {
    let names: Vec<_> = cases.iter().map(|case| case.name).collect();
    let is_twin = |name: &str| {
        let other = name.strip_suffix(WIDE);
        other.is_some_and(|other| names.contains(&other))
    };
    cases.retain(|case| !LONG.contains(&case.name) && !is_twin(case.name));
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
            .chain(&LONG)
            .filter(|name| !is_there(name))
            .collect();
        assert!(missing.is_empty(), "no test is called {missing:?}");
        let first: Vec<_> = all.iter().map(|case| case.name).take(FIRST.len()).collect();
        assert_eq!(first, FIRST);
        assert!(all.iter().any(|case| case.name.ends_with(WIDE)));
    }

    #[test]
    fn twins_and_long_ones_are_left_to_all() {
        let case = |name| Case {
            name,
            run: |_| Ok(()),
        };
        let names = [
            "reads-on-4-processors",
            LONG[0],
            "reads",
            "writes-on-4-processors",
        ];
        let mut cases: Vec<_> = names.map(case).into();
        without_long(&mut cases);
        let left: Vec<_> = cases.iter().map(|case| case.name).collect();
        assert_eq!(left, ["reads", "writes-on-4-processors"]);
    }
}
