//! Drops within drops that take too long. A service drops what it has from a client, and the
//! client's drop hangs: the client is to blame. Or the service has been slow itself, and a third
//! one's drop has just begun.

use super::machine::pass;
use super::rings::plays_well;
use crate::Reason;
use crate::call::drops::{in_drop, note_wait};
use crate::death::end_late;
use crate::load::entry::API;
use crate::platform::wait as wait_for;
use crate::sync::AtomicU32;
use abi::api::{BRIEF, NO_DEADLINE, UNINTERRUPTED, WAIT_MISMATCH};
use core::sync::atomic::Ordering;

/// Far more than the clock moves by being looked at.
const TIME: u64 = 1_000_000_000;

/// As a wait of the running thread that lasts `ns`.
fn wait(ns: u64) {
    let _ = note_wait();
    pass(ns);
    end_late();
}

#[test]
fn who_hangs_in_anothers_drop_is_ended_and_not_the_other() {
    plays_well(|scene| {
        let (outer, _) = scene.domain("outer");
        let inner = scene.domain_with_reaper();
        in_drop(&outer, TIME, &mut || {
            in_drop(&inner, TIME, &mut || wait(2 * TIME));
            assert_eq!((inner.reason(), inner.is_alive()), (Reason::Hang, false));
            wait(TIME / 2);
            assert!(outer.is_alive(), "the inner drop's time was the outer's");
            wait(TIME / 2);
            assert_eq!(outer.reason(), Reason::Hang);
        });
    });
}

#[test]
fn who_begins_to_drop_late_in_anothers_drop_has_all_his_time() {
    plays_well(|scene| {
        let (outer, _) = scene.domain("outer");
        let inner = scene.domain_with_reaper();
        in_drop(&outer, TIME, &mut || {
            wait(TIME / 10 * 9);
            in_drop(&inner, TIME, &mut || wait(TIME / 10 * 9));
            assert!(inner.is_alive() && outer.is_alive());
        });
    });
}

/// A drop that gives way again and again instead of waiting.
#[test]
fn who_yields_for_ever_in_a_drop_is_ended() {
    plays_well(|scene| {
        let block = scene.domain_with_reaper();
        in_drop(&block, TIME, &mut || {
            (API.yield_now)();
            assert!(!block.drops.may_wait(), "it gave way but for a moment");
            pass(TIME / 2);
            (API.yield_now)();
            assert!(block.drops.may_wait() && block.is_alive());
            pass(TIME / 2);
            (API.yield_now)();
            unreachable!("the thread has left the drop");
        });
        assert_eq!(block.reason(), Reason::Hang);
    });
}

/// A drop that waits for the lock of its heap does not count as one that waits, however long that
/// takes. For another lock it does, but only where it waits for more than a moment.
#[test]
fn who_waits_for_the_heap_or_for_a_moment_in_a_drop_has_not_waited() {
    plays_well(|scene| {
        let block = scene.domain_with_reaper();
        in_drop(&block, TIME, &mut || {
            let word = core::sync::atomic::AtomicU32::new(1);
            let wait = |how, is_noted| {
                // SAFETY: the word stays.
                let answer = unsafe { (API.wait)(&word, 0, NO_DEADLINE, how) };
                assert_eq!((answer, block.drops.may_wait()), (WAIT_MISMATCH, is_noted));
            };
            wait(UNINTERRUPTED, false);
            pass(TIME / 2);
            wait(BRIEF, false);
            wait(UNINTERRUPTED, true);
        });
        scene.kill(&block);
    });
}

/// Nobody has to come to find out that a drop waits for long: it says so itself, in the midst.
#[test]
fn a_drop_that_goes_on_waiting_is_noted_meanwhile() {
    plays_well(|scene| {
        let block = scene.domain_with_reaper();
        in_drop(&block, TIME, &mut || {
            let word = AtomicU32::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(core::time::Duration::from_millis(20));
                    assert!(!block.drops.may_wait(), "for a moment of the clock here");
                    pass(TIME / 2);
                    while !block.drops.may_wait() {
                        std::thread::yield_now();
                    }
                    word.store(1, Ordering::Release);
                });
                let _ = wait_for(&word, 0, None);
            });
            assert!(block.is_alive());
        });
        scene.kill(&block);
    });
}

/// A drop whose waits are all short, or over before they begin.
#[test]
fn who_waits_for_moments_for_ever_in_a_drop_is_ended() {
    plays_well(|scene| {
        let block = scene.domain_with_reaper();
        in_drop(&block, TIME, &mut || {
            let word = AtomicU32::new(1);
            for _ in 0..4 {
                assert!(block.is_alive());
                let _ = wait_for(&word, 0, Some(0));
                pass(TIME / 3);
            }
            let _ = wait_for(&word, 0, Some(0));
            assert!(!block.is_alive());
        });
        assert_eq!(block.reason(), Reason::Hang);
    });
}
