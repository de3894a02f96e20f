//! Promises of processor time.

use super::super::{Starter, WEIGHTS, join};
use super::*;

const MS: u64 = 1_000_000;

fn deadline(runtime: u64, period: u64) -> Deadline {
    Deadline { runtime, period }
}

/// A group with these limits that `above` makes.
fn group(above: Option<&Arc<Group>>, deadline_percent: u32, percent: u32) -> Arc<Group> {
    let starter = Starter {
        id: 1,
        weight: WEIGHTS.1,
        group: above,
    };
    let spec = GroupSpec {
        deadline_percent,
        percent,
        ..GroupSpec::NONE
    };
    join(starter, &spec).expect("memory")
}

/// How many promises of a tenth of a processor it can have.
fn tenths(group: &Arc<Group>) -> usize {
    let tenth = || Promise::new(group, deadline(MS, 10 * MS)).ok();
    core::iter::from_fn(tenth)
        .take(100)
        .collect::<alloc::vec::Vec<_>>()
        .len()
}

#[test]
fn nothing_is_promised_unless_a_limit_says_so() {
    assert_eq!(tenths(&group(None, 0, 0)), 0);
    assert_eq!(
        (tenths(&group(None, 9, 0)), tenths(&group(None, 10, 0))),
        (0, 1)
    );
    let first = join(Starter::of(None), &GroupSpec::FIRST).expect("memory");
    assert_eq!(tenths(&first), 100);
    assert_eq!(tenths(&group(Some(&first), 0, 0)), 0);
}

#[test]
fn a_promise_is_exact_and_comes_back() {
    let group = group(None, 50, 0);
    for _ in 0..1000 {
        assert_eq!(tenths(&group), 5);
    }
    let most = Promise::new(&group, deadline(MS / 2 - 10, MS)).expect("49.999 %");
    assert!(Promise::new(&group, deadline(MS / 10, 100 * MS)).is_err());
    drop(most);
    assert_eq!(group.promises.promised.used(), 0);
}

#[test]
fn nonsense_is_refused_and_counts_nothing() {
    let first = join(Starter::of(None), &GroupSpec::FIRST).expect("memory");
    let edges = [
        0,
        1,
        2,
        LEAST_RUNTIME - 1,
        PERIODS.0 - 1,
        PERIODS.1 + 1,
        1 << 32,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    for runtime in edges {
        for period in edges {
            assert!(Promise::new(&first, deadline(runtime, period)).is_err());
        }
        assert!(Promise::new(&first, deadline(runtime, PERIODS.0)).is_err() || runtime == MS - 1);
        assert!(
            Promise::new(&first, deadline(LEAST_RUNTIME, runtime)).is_err() || runtime == MS - 1
        );
    }
    assert_eq!(first.promises.promised.used(), 0);
}

#[test]
fn children_share_what_their_parent_may() {
    let parent = group(None, 50, 0);
    let children = [group(Some(&parent), 30, 0), group(Some(&parent), 1000, 0)];
    assert_eq!((tenths(&children[0]), tenths(&children[1])), (3, 5));
    let held = Promise::new(&children[0], deadline(3 * MS, 10 * MS));
    assert!(held.is_ok());
    assert_eq!(
        (tenths(&children[0]), tenths(&children[1]), tenths(&parent)),
        (0, 2, 2)
    );
    let own = Promise::new(&parent, deadline(2 * MS, 10 * MS));
    assert!(own.is_ok());
    assert_eq!((tenths(&children[1]), tenths(&parent)), (0, 0));
    drop((held, own));
    assert_eq!(
        (tenths(&children[0]), tenths(&children[1]), tenths(&parent)),
        (3, 5, 5)
    );
}

#[test]
fn a_limit_of_time_bounds_promises() {
    assert_eq!(tenths(&group(None, 50, 20)), 2);
    assert_eq!(tenths(&group(None, u32::MAX, u32::MAX)), 100);
}

#[test]
fn generations_end() {
    let mut last = group(None, 100, 0);
    for _ in 0..MOST_ABOVE {
        last = group(Some(&last), 100, 0);
        assert_eq!(tenths(&last), 10);
    }
    let beyond = group(Some(&last), 100, 0);
    assert_eq!(tenths(&beyond), 0);
    assert!(beyond.promises.above.is_none(), "it keeps no record");
    assert_eq!(tenths(&group(Some(&beyond), 100, 0)), 0);
}
