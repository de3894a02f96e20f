//! Scenes of calls through several domains, some of which die.

use super::{Scene, Shared, as_client, attempt, judged, wrong};
use crate::death::kill::ask_to_crash;
use crate::domain::State;
use abi::RpcError;
use std::sync::Arc;

/// Threads that would never leave by themselves get out; one panics meanwhile.
pub fn all_leave(scene: &mut Scene) {
    let (block, handle) = scene.domain("callee");
    let handle: Shared = Arc::new(handle);
    for index in 0..3 {
        let (block, handle) = (block.clone(), handle.clone());
        scene.thread(move || {
            let result = match index {
                0 => judged(&block, || handle.crash(2)),
                _ => judged(&block, || handle.stay()),
            };
            if result != Err(RpcError::DomainCrashed) {
                wrong(format_args!("a thread left a dead domain with {result:?}"));
            }
        });
    }
    scene.reaper();
}

/// A client calls through a domain into another; whichever `dies` is killed.
fn through(scene: &mut Scene, dies: [bool; 3], stay: bool) {
    let (far, far_handle) = scene.domain("far");
    let (near, near_handle) = scene.domain("near");
    let (client, client_handle) = scene.domain("client");
    drop(client_handle);
    near_handle.befriend(Some(far_handle)).expect("both live");
    let blocks = [client.clone(), near.clone(), far];
    scene.thread(move || {
        let _ = as_client(&client, near_handle, |near_handle| {
            let _ = match stay {
                true => attempt(&near, || near_handle.stay_there()),
                false => attempt(&near, || near_handle.relay(2).map(|_| ())),
            };
        });
    });
    for (block, dies) in blocks.iter().zip(dies) {
        if dies {
            scene.kill(block);
        }
    }
    scene.reaper();
}

/// The middle of a chain of three domains dies.
pub fn the_middle_dies(scene: &mut Scene) {
    through(scene, [false, true, false], false);
}

/// The ends of a chain of three domains die, at once.
pub fn the_ends_die(scene: &mut Scene) {
    through(scene, [true, false, true], true);
}

/// All of a chain of three domains die, at once.
pub fn all_die(scene: &mut Scene) {
    through(scene, [true, true, true], true);
}

/// A crash that was asked for meets callers and a kill. The domain has no runtime to panic, so the
/// calls fail and it lives on, or dies of the kill.
pub fn asked_to_crash(scene: &mut Scene) {
    let (block, handle) = scene.domain("callee");
    let handle: Shared = Arc::new(handle);
    for _ in 0..2 {
        let handle = handle.clone();
        scene.thread(move || {
            for _ in 0..2 {
                let _ = handle.work(1);
            }
        });
    }
    scene.kill(&block);
    scene.thread(move || {
        // Too late, or not: it may have been killed before.
        let _ = ask_to_crash(&block);
        if block.state() == State::Dying && block.is_alive() {
            wrong(format_args!("a dead domain came to life again"));
        }
    });
    scene.reaper();
}
