//! Who pays for a thread's processor time, and whom it can be given to.

use super::domains::{inside, start_as};
use super::machine::SHORT;
use super::rings::plays_well;
use super::scenes::Scene;
use crate::Reason;
use crate::call::thread::{charge, give_to, spawn_in};
use crate::death::kill::kill;
use crate::domain::group::GroupSpec;
use crate::domain::{ControlBlock, Limits};
use crate::platform::platform;
use crate::sync::spin;
use abi::RpcError;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::atomic::{AtomicBool, Ordering};

/// A domain whose group has this weight.
fn of_weight(weight: u32) -> Arc<ControlBlock> {
    let group = GroupSpec {
        weight,
        ..GroupSpec::NONE
    };
    let limits = Limits {
        group,
        ..Limits::NONE
    };
    start_as("payer", limits).0
}

fn time(block: &ControlBlock) -> u64 {
    block.group().expect("a domain has one").time_used()
}

/// What a thread of the first domain does, in a call of the second one, beside the third.
struct Errand {
    own: Arc<ControlBlock>,
    called: Arc<ControlBlock>,
    other: Arc<ControlBlock>,
    body: fn(&Errand),
    done: AtomicBool,
}

extern "C" fn run(errand: *mut u8) {
    // SAFETY: `play` waits for the end of this.
    let errand = unsafe { &*errand.cast::<Errand>() };
    let called = inside(&errand.called, || (errand.body)(errand));
    assert!(called.is_ok());
    errand.done.store(true, Ordering::SeqCst);
}

/// Runs `body` so with domains of these weights.
fn play(scene: &mut Scene, weights: [u32; 3], body: fn(&Errand)) {
    scene.reaper();
    let [own, called, other] = weights.map(of_weight);
    let mut errand = Errand {
        own,
        called,
        other,
        body,
        done: AtomicBool::new(false),
    };
    let own = errand.own.clone();
    let spawned = spawn_in(&own, "errand", run, (&raw mut errand).cast(), None, 0);
    assert!(spawned.is_ok());
    while !errand.done.load(Ordering::SeqCst) {
        platform().yield_now();
        spin();
    }
    for block in [&errand.own, &errand.called, &errand.other] {
        kill(block, Reason::Killed);
        block.wait_gone().expect("the kernel waits");
    }
}

#[test]
fn a_thread_is_charged_to_its_makers_group_wherever_it_is() {
    plays_well(|scene| {
        play(scene, [1024; 3], |errand| {
            charge(10);
            assert_eq!((time(&errand.own), time(&errand.called)), (10, 0));
            assert_eq!(give_to(&errand.other), Ok(()));
            charge(7);
            assert_eq!((time(&errand.own), time(&errand.other)), (10, 7));
            assert_eq!(give_to(&errand.own), Ok(()));
            charge(1);
            assert_eq!((time(&errand.own), time(&errand.other)), (11, 7));
        });
    });
}

extern "C" fn nothing(_: *mut u8) {}

#[test]
fn a_thread_takes_nothing_of_the_kernels_own_memory() {
    plays_well(|scene| {
        let block = scene.domain_with_reaper();
        SHORT.set(true);
        let refused = spawn_in(&block, "none", nothing, core::ptr::null_mut(), None, 0);
        SHORT.set(false);
        assert_eq!(refused, Err(RpcError::NoMemory));
        assert_eq!(block.stack_bytes(), 0);
    });
}

/// More domains than there was ever room for at boot.
const MANY: usize = 200;

#[test]
fn a_domain_has_a_place_among_the_dead_from_its_birth() {
    plays_well(|scene| {
        scene.reaper();
        let blocks: Vec<_> = (0..MANY).map(|_| of_weight(0)).collect();
        let room = crate::domain::queues::room();
        assert!(room >= MANY, "room for {room} of {MANY}");
        for block in &blocks {
            kill(block, Reason::Killed);
        }
        for block in &blocks {
            block.wait_gone().expect("the kernel waits");
        }
    });
}

#[test]
fn a_thread_is_not_given_to_a_group_of_more_weight() {
    plays_well(|scene| {
        play(scene, [1024, 4096, 1025], |errand| {
            assert_eq!(give_to(&errand.other), Err(RpcError::Refused));
            charge(3);
            assert_eq!((time(&errand.own), time(&errand.other)), (3, 0));
        });
    });
}
