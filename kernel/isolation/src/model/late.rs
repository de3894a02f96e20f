//! Drops within drops that take too long. A service drops what it has from a client, and the client's drop hangs: the
//! client is to blame. Or the service has been slow itself, and a third one's drop has just begun.

use super::machine::pass;
use super::rings::plays_well;
use crate::Reason;
use crate::drops::{end_late, in_drop, note_wait};

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
