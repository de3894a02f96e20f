//! Frames from ring 3. A program there can jump to any address, so that the tick or a stop of the
//! world meets it with an instruction pointer in a domain's image (an interrupt comes before the
//! fetch faults). It is not in the domain's code for that: it has the domain's personality below
//! it, on the kernel's stack, and a context of its own.

use super::checks::ONE_AT_A_TIME;
use super::domains::inside;
use super::scenes::{Scene, play};
use crate::Reason;
use crate::call::thread::top;
use crate::death::kill::{self, Culprit, TICK_MS};
use crate::domain::{ControlBlock, DEFAULT_BUDGET_MS};
use crate::platform::{Frame, Landing, ThreadView};
use std::sync::PoisonError;

/// A frame whose instruction pointer lies in the image.
struct Interrupted {
    place: usize,
    user: bool,
    redirected: bool,
}

impl Interrupted {
    fn new(block: &ControlBlock, user: bool) -> Self {
        let place = block.image_start() + 16;
        assert!(block.in_image(place));
        Interrupted {
            place,
            user,
            redirected: false,
        }
    }
}

impl Frame for Interrupted {
    fn ip(&self) -> usize {
        self.place
    }

    fn interruptible(&self) -> bool {
        true
    }

    fn is_user(&self) -> bool {
        self.user
    }

    fn redirect(&mut self, _: &Landing) {
        self.redirected = true;
    }
}

pub(super) fn plays_well(scene: fn(&mut Scene)) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(play(scene), None);
}

/// More ticks than a call may have.
const TOO_MANY: u32 = DEFAULT_BUDGET_MS / TICK_MS + 2;

#[test]
fn time_in_ring_3_is_charged_and_not_of_a_calls_budget() {
    plays_well(|scene| {
        let block = scene.domain_with_reaper();
        let before = block.own_ns();
        let result = inside(&block, || {
            let mut user = Interrupted::new(&block, true);
            (0..TOO_MANY).for_each(|_| kill::tick(&mut user, 10));
            assert!(!user.redirected && block.is_alive());
            let mut own = Interrupted::new(&block, false);
            kill::tick(&mut own, 10);
            assert!(!own.redirected, "time in ring 3 counted");
        });
        assert!(result.is_ok());
        let charged = block.own_ns() - before;
        assert_eq!(charged, u64::from(TOO_MANY + 1) * 10);
        // The same in its own code is too long.
        let _ = inside(&block, || {
            let mut own = Interrupted::new(&block, false);
            (0..TOO_MANY).for_each(|_| kill::tick(&mut own, 10));
            assert!(own.redirected && !block.is_alive());
        });
    });
}

#[test]
fn an_exception_of_ring_3_is_no_crash_of_the_domain() {
    plays_well(|scene| {
        let block = scene.domain_with_reaper();
        let _ = inside(&block, || {
            for reason in [Reason::PageFault, Reason::StackOverflow] {
                let mut user = Interrupted::new(&block, true);
                let place = user.place;
                assert_eq!(kill::fault(&mut user, reason, place), Culprit::Other);
                assert!(!user.redirected && block.is_alive());
            }
            let mut own = Interrupted::new(&block, false);
            let culprit = kill::fault(&mut own, Reason::PageFault, 0);
            assert_eq!(culprit, Culprit::Domain);
            assert!(own.redirected && !block.is_alive());
        });
    });
}

#[test]
fn who_is_in_ring_3_is_not_taken_for_one_in_the_dead_domain() {
    plays_well(|scene| {
        let block = scene.domain_with_reaper();
        let _ = inside(&block, || {
            for is_user in [true, false] {
                let mut frame = Interrupted::new(&block, is_user);
                let mut view = ThreadView {
                    top: top().cast(),
                    frame: Some(&mut frame),
                    stack_low: 0,
                    blocked: false,
                    interrupt: false,
                };
                let mut is_dead = |other: *const ControlBlock| core::ptr::eq(other, &*block);
                assert_eq!(kill::usher_out(&mut view, &mut is_dead), 1);
                assert_eq!(frame.redirected, !is_user);
            }
        });
    });
}
