//! Tests of how processor time is shared: between groups, under limits, by class and affinity.
//!
//! What counts is how long threads ran, not how fast; the bounds leave room for a machine that is
//! stopped now and then. The exact figures are tested on the host, with the library.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::Test;
use super::threads::{alongside, alongside_as, eventually, sleep_ms, token};
use crate::arch::cpu::cpu_index;
use crate::check;
use crate::mem;
use crate::sync::{IrqOff, relax};
use crate::task::{self, Attributes, Class, Group, MAX_GROUPS, Share, ThreadId};
use crate::{smp, time};

/// The tests of this file.
pub static TESTS: &[Test] = &[
    (
        "share-thousand-threads-leave-another-group-its-part",
        thousand,
    ),
    ("share-follows-weights", weights),
    ("share-limit-holds", limit),
    ("share-affinity-holds", affinity),
    ("share-urgent-thread-runs-though-all-spin", urgent),
    ("share-reaper-runs-though-all-spin", reaper),
    (
        "share-deadline-gives-the-budget-and-no-more",
        deadline_budget,
    ),
    (
        "share-deadlines-that-cannot-be-kept-are-refused",
        deadlines_refused,
    ),
    ("share-thread-changes-its-group", joins),
    ("share-numbers-of-groups-run-out-and-come-back", run_out),
];

const NORMAL: Share = Share {
    weight: 1024,
    percent: 0,
};

/// A key that no other group has.
fn key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 40);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Nanoseconds that these threads, which live, have run so far.
fn used(ids: &[ThreadId]) -> u64 {
    let each = ids.iter().filter_map(|id| task::find(*id));
    each.map(|thread| thread.processor_ns()).sum()
}

/// Runs threads that spin, `counts` of them in groups with these shares, for `ms` milliseconds once
/// all have been made; how long each group ran meanwhile.
fn compete<const N: usize>(groups: [(usize, Share); N], ms: u64) -> Result<[u64; N], String> {
    let stop = AtomicBool::new(false);
    let keys = groups.map(|_| key());
    let total: usize = groups.iter().map(|(count, _)| count).sum();
    let group_of = |index: usize| {
        let mut end = 0;
        let place = groups.iter().position(|(count, _)| {
            end += count;
            index < end
        });
        place.unwrap_or(0)
    };
    let kind = |index: usize| {
        let group = group_of(index);
        let (_, share) = groups[group];
        (Attributes::NORMAL, Group::of(keys[group], share))
    };
    let spin = |_| {
        while !stop.load(Ordering::Relaxed) {
            relax();
        }
    };
    alongside_as(total, &kind, &spin, |ids| {
        let mut members: [Vec<ThreadId>; N] = [const { Vec::new() }; N];
        for (index, id) in ids.iter().enumerate() {
            members[group_of(index)].push(*id);
        }
        let before: [u64; N] = core::array::from_fn(|group| used(&members[group]));
        sleep_ms(ms);
        let after: [u64; N] = core::array::from_fn(|group| used(&members[group]));
        stop.store(true, Ordering::Relaxed);
        core::array::from_fn(|group| after[group] - before[group])
    })
}

/// One thread against a thousand of another group: half of a processor is its right, all of one
/// where there are more.
fn thousand() -> Result<(), String> {
    let [many, one] = compete([(1000, NORMAL), (1, NORMAL)], 1500)?;
    // With four processors the thousand have three of them by right, so there is room above that.
    let room = 2 * smp::online().max(2) as u64;
    check!(
        one * room > many,
        "{one} ns against {many} ns of a thousand"
    );
    check!(many > 0, "a thousand threads did not run at all");
    Ok(())
}

fn weights() -> Result<(), String> {
    let threads = 2 * smp::online();
    let heavy = Share {
        weight: 3 * NORMAL.weight,
        ..NORMAL
    };
    let [light, heavy] = compete([(threads, NORMAL), (threads, heavy)], 1000)?;
    // The host's other work weighs on one of them; the exact shares are tested with made-up time.
    check!(
        heavy > light * 3 / 2 && heavy < light * 8,
        "{heavy} ns at three times the weight of {light} ns"
    );
    Ok(())
}

/// A fifth of one processor, though nobody else wants any.
fn limit() -> Result<(), String> {
    let share = Share {
        percent: 20,
        ..NORMAL
    };
    let begin = time::now_ns();
    let [held] = compete([(5, share)], 1500)?;
    let most = (time::now_ns() - begin) / 5 + 40_000_000;
    check!(held > 0 && held < most, "{held} ns of {most} ns");
    Ok(())
}

fn affinity() -> Result<(), String> {
    let (last, elsewhere) = (smp::online() - 1, AtomicUsize::new(0));
    let attributes = Attributes {
        affinity: 1 << last,
        ..Attributes::NORMAL
    };
    let kind = |_| (attributes, Group::system());
    let work = |_| {
        for _ in 0..200 {
            let here = {
                let _pinned = IrqOff::new();
                cpu_index()
            };
            elsewhere.fetch_add(usize::from(here != last), Ordering::Relaxed);
            task::yield_now();
        }
        sleep_ms(1);
    };
    alongside_as(4, &kind, &work, |_| ())?;
    check!(
        elsewhere.load(Ordering::Relaxed) == 0,
        "{elsewhere:?} times on another processor"
    );
    Ok(())
}

/// More spinning threads than processors, while `main` runs.
fn among_spinners<R>(main: impl FnOnce() -> R) -> Result<R, String> {
    let (stop, group) = (AtomicBool::new(false), key());
    let kind = |_| (Attributes::NORMAL, Group::of(group, NORMAL));
    let spin = |_| {
        while !stop.load(Ordering::Relaxed) {
            relax();
        }
    };
    alongside_as(40 * smp::online(), &kind, &spin, |_| {
        let result = main();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Woken a hundred times, each before a single one of the spinning threads has had its turn twice.
fn urgent() -> Result<(), String> {
    let kind = |_| (Attributes::URGENT, Group::system());
    let naps = AtomicUsize::new(0);
    let nap = |_| {
        for _ in 0..100 {
            sleep_ms(1);
            naps.fetch_add(1, Ordering::Relaxed);
        }
    };
    let all = || naps.load(Ordering::Relaxed) == 100;
    let done = among_spinners(|| alongside_as(1, &kind, &nap, |_| eventually(all)))??;
    check!(done, "{naps:?} naps of 100 in a minute");
    Ok(())
}

fn deadline(runtime: u64, period: u64) -> Attributes {
    let class = Class::Deadline { runtime, period };
    Attributes {
        class,
        ..Attributes::NORMAL
    }
}

const MS: u64 = 1_000_000;

/// A fifth of a processor beside forty siblings on each, whose part is a fortieth; and no more,
/// though it never waits.
fn deadline_budget() -> Result<(), String> {
    let stop = AtomicBool::new(false);
    let kind = |_| (deadline(2 * MS, 10 * MS), Group::system());
    let spin = |_| {
        while !stop.load(Ordering::Relaxed) {
            relax();
        }
    };
    let (is, passed) = among_spinners(|| {
        alongside_as(1, &kind, &spin, |ids| {
            let (before, begin) = (used(ids), time::now_ns());
            sleep_ms(1000);
            let is = used(ids) - before;
            stop.store(true, Ordering::Relaxed);
            (is, time::now_ns() - begin)
        })
    })??;
    check!(
        is > passed / 10 && is < passed / 2,
        "{is} ns of {passed} ns with a fifth promised"
    );
    Ok(())
}

/// Whether a thread with a deadline starts, which ends at once.
fn starts(runtime: u64, period: u64) -> bool {
    let kind = |_| (deadline(runtime, period), Group::system());
    alongside_as(1, &kind, &|_| (), |_| ()).is_ok()
}

/// Two fifths can be promised twice on each processor, and again when they have been given back;
/// nonsense never.
fn deadlines_refused() -> Result<(), String> {
    let (all, held) = (2 * smp::online(), AtomicBool::new(true));
    let kind = |_| (deadline(4 * MS, 10 * MS), Group::system());
    let hold = |_| {
        eventually(|| !held.load(Ordering::Relaxed));
    };
    let nonsense = [
        (0, 10 * MS),
        (11 * MS, 10 * MS),
        (1, 0),
        (u64::MAX, u64::MAX),
        (u64::MAX, 10 * MS),
        (9 * MS, 10 * MS),
        (u64::MAX / 2, u64::MAX),
    ];
    for _ in 0..3 {
        held.store(true, Ordering::Relaxed);
        let more = alongside_as(all, &kind, &hold, |_| {
            let more = starts(4 * MS, 10 * MS);
            held.store(false, Ordering::Relaxed);
            more
        })?;
        check!(!more, "{all} promises and one more");
        for (runtime, period) in nonsense {
            check!(!starts(runtime, period), "{runtime} of {period} ns");
        }
        task::reap(token());
        check!(
            eventually(|| starts(4 * MS, 10 * MS)),
            "what was promised does not come back"
        );
        task::reap(token());
    }
    Ok(())
}

/// Stacks of threads that have ended come back though nobody asks for it.
fn reaper() -> Result<(), String> {
    let go = AtomicBool::new(false);
    let wait = |_| {
        eventually(|| go.load(Ordering::Relaxed));
    };
    let round = || {
        go.store(false, Ordering::Relaxed);
        alongside(50, &wait, |_| go.store(true, Ordering::Relaxed))
    };
    let back = among_spinners(|| {
        round()?;
        task::reap(token());
        let free = mem::stats().free;
        round()?;
        Ok::<_, String>(eventually(|| mem::stats().free >= free))
    })??;
    check!(back, "the memory of ended threads did not come back");
    Ok(())
}

/// A thread that goes to a group with a small limit is held there, with the time that it uses from
/// then on.
fn joins() -> Result<(), String> {
    let share = Share {
        percent: 10,
        ..NORMAL
    };
    let (stop, number) = (AtomicBool::new(false), key());
    let kind = |_| (Attributes::NORMAL, Group::system());
    let work = |_| {
        task::join_group(Group::of(number, share));
        while !stop.load(Ordering::Relaxed) {
            relax();
        }
    };
    let (is, most) = alongside_as(2, &kind, &work, |ids| {
        sleep_ms(50);
        let (before, begin) = (used(ids), time::now_ns());
        sleep_ms(1000);
        let is = used(ids) - before;
        let most = (time::now_ns() - begin) / 10 + 40_000_000;
        stop.store(true, Ordering::Relaxed);
        (is, most)
    })?;
    check!(is > 0 && is < most, "{is} ns of {most} ns");
    Ok(())
}

/// More groups than there are numbers: the rest share one, and all numbers come back.
fn run_out() -> Result<(), String> {
    for _ in 0..3 {
        let held: Vec<Group> = (0..MAX_GROUPS + 50)
            .map(|_| Group::of(key(), NORMAL))
            .collect();
        let ran = AtomicUsize::new(0);
        let kind = |_| (Attributes::NORMAL, Group::of(key(), NORMAL));
        let count = |_| {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        alongside_as(20, &kind, &count, |_| ())?;
        check!(ran.load(Ordering::Relaxed) == 20, "{ran:?} of 20 ran");
        drop(held);
    }
    let hostile = Attributes {
        class: Class::Fair,
        weight: 0,
        affinity: 0,
    };
    let kind = |_| {
        (
            hostile,
            Group::of(
                key(),
                Share {
                    weight: 0,
                    percent: u32::MAX,
                },
            ),
        )
    };
    alongside_as(20, &kind, &|_| task::yield_now(), |_| ())
}
