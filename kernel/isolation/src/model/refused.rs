//! A dead domain that calls, again and again, whoever does not let it in. No reaper need meet it in
//! its own code: it leaves at the first such call.

use super::domains::inside;
use super::rings::plays_well;
use super::scenes::Scene;
use crate::Reason;
use crate::death::kill::kill;
use crate::domain::ControlBlock;
use abi::RpcError;
use std::sync::Arc;

/// A domain dies and calls another one, for which `refuse` has seen to it that it is not let in.
fn leaves_when_refused(scene: &mut Scene, refuse: fn(&Arc<ControlBlock>), error: RpcError) {
    let (callee, object) = scene.domain("callee");
    let (caller, _) = scene.domain("caller");
    refuse(&callee);
    let mut answer = None;
    let lives = inside(&caller, || answer = Some(object.work(1)));
    assert_eq!((lives, answer.take()), (Ok(()), Some(Err(error))));
    let left = inside(&caller, || {
        kill(&caller, Reason::Killed);
        answer = Some(object.work(1));
    });
    assert_eq!((left, answer), (Err(RpcError::DomainCrashed), None));
    callee.set_short(false);
    // Only now, since it might have met the thread by chance.
    scene.reaper();
}

#[test]
fn who_has_died_leaves_when_it_calls_the_dead() {
    plays_well(|scene| {
        let refuse = |callee: &Arc<_>| kill(callee, Reason::Killed);
        leaves_when_refused(scene, refuse, RpcError::DomainCrashed);
    });
}

#[test]
fn who_has_died_leaves_when_it_is_refused() {
    plays_well(|scene| {
        let refuse = |callee: &Arc<ControlBlock>| callee.set_short(true);
        leaves_when_refused(scene, refuse, RpcError::NoMemory);
    });
}
