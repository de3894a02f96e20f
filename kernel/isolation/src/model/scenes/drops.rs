//! Scenes of handles: given away, looked at, dropped, in the midst of deaths.

use super::{
    Join, Probe, Scene, Tagged, as_client, endow, hand_over, inside, judged, nest, threads, wrong,
};
use crate::call::handle;
use crate::domain::ControlBlock;
use crate::memory::owner::Owner;
use abi::handle::Handle;
use abi::{RRef, RpcResult};
use std::vec::Vec;

/// Objects that own objects are moved, kept and lent while giver or receiver dies.
pub(super) fn exchange(scene: &mut Scene, client_dies: bool) {
    let (server, handle) = scene.domain("server");
    let (client, client_handle) = scene.domain("client");
    drop(client_handle);
    let dies = if client_dies { &client } else { &server };
    scene.kill(&dies.clone());
    for index in 0..2 {
        let (client, server) = (client.clone(), server.clone());
        let handle = handle.duplicate().expect("memory");
        scene.thread(move || {
            let _ = as_client(&client, handle, |handle| {
                let _ = trade(&server, handle, index);
            });
        });
    }
    drop(handle);
    scene.reaper();
}

/// A round of trade with a server.
fn trade(server: &ControlBlock, handle: &Handle<dyn Probe>, index: u32) -> RpcResult<()> {
    if index == 0 {
        let answer = judged(server, || handle.exchange(nest()?))?;
        answer.inner.check("who got it back");
    } else {
        judged(server, || handle.keep(nest()?))?;
        judged(server, || handle.keep(nest()?))?;
    }
    let lent = RRef::new(Tagged::new(9))?;
    let result = judged(server, || handle.lend(&lent, 2));
    lent.check("its owner");
    result.map(|_| ())
}

/// The receiver of objects dies.
pub fn the_receiver_dies(scene: &mut Scene) {
    exchange(scene, false);
}

/// The giver of objects dies, with objects lent.
pub fn the_giver_dies(scene: &mut Scene) {
    exchange(scene, true);
}

/// The last handles to an object are dropped at once, by their holders and by reclaim, perhaps when
/// its domain dies as well.
fn last_drops(scene: &mut Scene, server_dies: bool) {
    let (server, handle) = scene.domain("server");
    let object: Handle<dyn Probe> = handle.give().expect("it lives");
    for index in 0..3 {
        let (client, client_handle) = scene.domain("client");
        drop(client_handle);
        let object = object.duplicate().expect("memory");
        if index == 0 {
            scene.kill(&client);
        }
        let server = server.clone();
        scene.thread(move || {
            let _ = as_client(&client, object, |object| {
                let _ = judged(&server, || object.work(1));
            });
        });
    }
    drop(object);
    if server_dies {
        scene.kill(&server);
    }
    scene.reaper();
    // Whoever holds the server's first handle gives it up last.
    scene.thread(move || drop(handle));
}

/// The last handles are dropped.
pub fn the_last_drop(scene: &mut Scene) {
    last_drops(scene, false);
}

/// The last handles are dropped while the object's domain dies.
pub fn the_last_drop_and_a_death(scene: &mut Scene) {
    last_drops(scene, true);
}

/// The last handles are dropped, and helpers drop the object.
pub fn the_last_drop_by_a_helper(scene: &mut Scene) {
    last_drops(scene, false);
    mark_all(scene);
}

/// The last handles are dropped while the object's domain dies, and helpers drop the object.
pub fn the_last_drop_by_a_helper_and_a_death(scene: &mut Scene) {
    last_drops(scene, true);
    mark_all(scene);
}

/// From now on nobody drops objects of these domains himself.
fn mark_all(scene: &Scene) {
    scene
        .domains
        .iter()
        .for_each(|block| block.drops.may_wait_now());
}

/// Objects are made and freed by two domains while a third, which shares their chunks, is
/// reclaimed.
pub fn frees_beside_reclaim(scene: &mut Scene) {
    let (dying, handle) = scene.domain("dying");
    drop(handle);
    let _ = inside(&dying, || {
        (0..3).for_each(|tag| core::mem::forget(RRef::new(Tagged::new(tag))));
    });
    for _ in 0..2 {
        let (block, handle) = scene.domain("living");
        drop(handle);
        scene.thread(move || {
            let _ = inside(&block, || {
                for tag in 0..3 {
                    let object = RRef::new(Tagged::new(tag)).expect("memory");
                    threads::point();
                    object.check("its owner");
                    let other = RRef::new(Tagged::new(tag)).expect("memory");
                    drop(object);
                    other.check("its owner");
                    // Whatever it keeps goes when it dies.
                    core::mem::forget(other);
                }
            });
        });
    }
    scene.kill(&dying);
    scene.reaper();
}

/// The handles of a dead domain are ended while others drop those that fill the chunk in front, so
/// that the chunk goes and another takes its place.
pub fn drops_beside_reclaim(scene: &mut Scene) {
    let (_server, first) = scene.domain("server");
    let (dying, handle) = scene.domain("dying");
    drop(handle);
    let twin = |_| first.duplicate().expect("memory");
    let front: Vec<_> = (1..4).map(twin).collect();
    for twin in (0..5).map(twin).collect::<Vec<_>>() {
        hand_over(&dying, twin);
    }
    scene.thread(move || {
        threads::dawdle(50);
        drop((first, front));
    });
    scene.kill(&dying);
    scene.reaper();
}

/// While handles are made, change hands and are dropped, somebody looks who holds what. He sees
/// only whole ones.
pub fn a_look_at_handles(scene: &mut Scene) {
    let (server, first) = scene.domain("server");
    let (client, client_handle) = scene.domain("client");
    drop(client_handle);
    let blocks = [server.clone(), client.clone()];
    scene.thread(move || {
        let _ = as_client(&client, first, |first| {
            for _ in 0..3 {
                let twin = first.duplicate().expect("memory");
                threads::point();
                drop((twin, first.give()));
            }
        });
    });
    scene.thread(move || {
        let owners = blocks.iter().map(|block| block.owner());
        let owners = owners.chain([Owner::KERNEL]).cycle();
        // Also behind the first, which is there all the time.
        for (owner, index) in owners.zip([0, 0, 0, 1, 1, 1].into_iter().cycle()).take(18) {
            threads::point();
            if let Some((interface, server)) = handle::held(owner, index)
                && (interface, server.as_str()) != ("Probe", "server")
            {
                wrong(format_args!(
                    "a handle of {interface} to {}",
                    server.as_str()
                ));
            }
        }
    });
    scene.reaper();
}

/// A drop that takes until another domain is cleared away does not keep that from being cleared
/// away.
pub fn a_drop_that_blocks(scene: &mut Scene) {
    let (server, _handle) = scene.domain("server");
    let (holder, _handle) = scene.domain("holder");
    let (other, _handle) = scene.domain("other");
    let (third, _handle) = scene.domain("third");
    endow(&holder, &server, other.clone());
    scene.reaper();
    scene.kill(&third);
    scene.kill(&holder);
    scene.kill(&other);
    scene.joins.drain(..).for_each(Join::join);
    for block in [other, holder] {
        block.wait_gone().expect("the kernel waits");
    }
}
