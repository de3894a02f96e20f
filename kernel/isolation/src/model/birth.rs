//! A domain that is ended as soon as it can be found, before it has run.

use super::machine::AT_WAKE;
use super::rings::plays_well;
use crate::Reason;
use crate::death::kill::kill;
use crate::domain::group::Seat;
use crate::domain::{self, Limits};
use crate::memory::kept::Loaded;
use crate::platform::{PAGE, platform};

/// Ends the only domain, and waits until it is gone.
fn end_it() {
    let block = domain::next(0).expect("it was announced");
    kill(&block, Reason::Killed);
    block.wait_gone().expect("the kernel waits");
}

#[test]
fn nobody_pays_for_a_domain_that_was_ended_at_birth() {
    plays_well(|scene| {
        scene.reaper();
        let mut seat = Seat::new(None, &Limits::NONE.group).expect("memory");
        assert!(seat.charge(PAGE).is_granted(), "there is no limit");
        let image = Loaded::for_once(platform().image_space(1).expect("memory"));
        // The first whom its birth wakes.
        AT_WAKE.set(Some(end_it));
        let block = domain::create("short", Limits::NONE, None, seat, image).expect("memory");
        assert_eq!(block.reason(), Reason::Killed);
        let used = block.group().map(|group| group.memory_used());
        assert_eq!(used, Some(0), "what its image was charged with");
    });
}
