//! Tables that are full: what would make one more is refused, and what is taken away makes room.

use crate::lab::{Lab, say, unlimited, wait_for};
use crate::spaces::{ALL, AT, PAGE, READ, object, peek, space};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{Handle, Kept, RVec, RpcError, RpcResult, Serving, SpaceError, Steward};
use interfaces::{Text, VmoFill};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("limits-control-blocks-are-charged", control_blocks),
    ("limits-areas-of-a-space", areas),
    ("limits-mappings-of-an-object", mappings),
    ("limits-of-what-the-steward-keeps", steward),
];

/// Who starts domains pays for what the kernel knows of them, also when they are gone, until nobody
/// can ask for it any more.
fn control_blocks(lab: &Lab) -> Verdict {
    const COUNT: u64 = 64;
    /// About what one takes, in bytes, beside the export and the proxy of its handle.
    const ONE: u64 = 1500;
    let used = || -> Result<u64, String> {
        let info = lab.info(domain_rt::self_id())?.ok_or("it is me")?;
        Ok(info.group_bytes)
    };
    lab.conserves_memory(|| {
        lab.start()?.end()?;
        let before = used()?;
        let mut dead = Vec::new();
        for _ in 0..COUNT {
            let victim = lab.start()?;
            victim.end()?;
            dead.push(victim.domain);
        }
        let kept = used()? - before;
        ensure!(kept >= COUNT * ONE, "{COUNT} cost {kept} bytes");
        let reasons = dead.iter().filter(|it| it.wait().is_ok());
        ensure!(reasons.count() == COUNT as usize, "one is forgotten");
        drop(dead);
        wait_for("what they cost to be given back", || {
            used().is_ok_and(|used| used < before + COUNT * ONE / 8)
        })
    })
}

/// Areas that a space may have, and mappings that a memory object may have.
const MOST_AREAS: u64 = 16384;
const MOST_MAPPINGS: u64 = 4096;

/// Maps single pages apart from each other until one is refused; how many there are, and why.
fn fill(mut map: impl FnMut(u64) -> Result<(), SpaceError>) -> Result<(u64, SpaceError), String> {
    for index in 0..2 * MOST_AREAS {
        if let Err(why) = map(AT + 2 * index * PAGE) {
            return Ok((index, why));
        }
    }
    Err(String::from("it never had enough"))
}

/// A space with all the areas that it may have refuses what would make one more, and nothing else:
/// what is taken away makes room.
fn areas(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = space(lab)? else {
            return Ok(());
        };
        let below = AT - 4 * PAGE;
        space.map_zero(below, 3, READ).map_err(say)?;
        let zero = |at| space.map_zero(at, 1, READ);
        let (count, why) = fill(zero)?;
        let busy = || SpaceError::Rpc(RpcError::Busy);
        ensure!(count + 1 == MOST_AREAS, "{count} areas");
        ensure!(why == busy(), "one more: {why:?}");
        let split = space.unmap(below + PAGE, 1);
        ensure!(split == Err(busy()), "two of one: {split:?}");
        for (at, pages) in [(below, 1), (below + 2 * PAGE, 1), (AT + 2 * 777 * PAGE, 1)] {
            let done = space.unmap(at, pages);
            ensure!(done == Ok(pages), "{done:?} unmapped at {at:#x}");
        }
        zero(AT + 2 * 777 * PAGE).map_err(say)?;
        ensure!(zero(AT - 8 * PAGE) == Err(busy()), "there was room");
        Ok(())
    })
}

/// A memory object with all the mappings that it may have.
fn mappings(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(one), Some(other)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        let owner = object(lab, 1, VmoFill::Zero)?;
        let view = || owner.view(ALL).map_err(SpaceError::Object);
        let (count, why) = fill(|at| one.map(at, view()?, 0, 1, READ))?;
        let busy = || SpaceError::Rpc(RpcError::Busy);
        ensure!(count == MOST_MAPPINGS, "{count} mappings");
        ensure!(why == busy(), "one more: {why:?}");
        let refused = other.map(AT, view().map_err(say)?, 0, 1, READ);
        ensure!(refused == Err(busy()), "in another space: {refused:?}");
        ensure!(peek(&one, AT) == Ok([0; 8]), "a page of it is lost");
        one.unmap(AT + 2 * PAGE, 1).map_err(say)?;
        other
            .map(AT, view().map_err(say)?, 0, 1, READ)
            .map_err(say)?;
        drop(one);
        let (count, _) = fill(|at| other.map(at + PAGE, view()?, 0, 1, READ))?;
        ensure!(count + 1 == MOST_MAPPINGS, "{count} after the end of one");
        Ok(())
    })
}

/// Notes, and domains, that the steward keeps.
const MOST_KEPT: u64 = 512;

/// What `init` would keep beyond that is refused, and what was kept is there and can be changed.
fn steward(lab: &Lab) -> Verdict {
    if lab.hardware.is_none() {
        // A Linux process is not given its image.
        return Ok(());
    }
    let image = lab.image("domains/steward")?;
    let options = RVec::from_slice(b"").map_err(say)?;
    let started = image.start(unlimited(), [const { None }; 16], options);
    let mut started = started.map_err(say)?;
    let offer = started.offers[0].take().ok_or("it offers nothing")?;
    let offer = offer.downcast::<dyn Steward>();
    let steward = offer.map_err(|_| "it offers something else")?;
    for number in 0..MOST_KEPT {
        steward
            .note(Text::new(&format!("{number}")), number)
            .map_err(say)?;
        keep(&steward, number, 1).map_err(say)?;
    }
    let more = (
        steward.note(Text::new("more"), 1),
        keep(&steward, MOST_KEPT, 1),
    );
    ensure!(
        more == (Err(RpcError::Refused), Err(RpcError::Refused)),
        "{more:?}"
    );
    steward.note(Text::new("3"), 77).map_err(say)?;
    keep(&steward, 3, 99).map_err(say)?;
    let noted = steward.noted(3).map_err(say)?;
    ensure!(noted == Some((Text::new("3"), 77)), "noted {noted:?}");
    let kept = steward.kept(Text::new("3")).map_err(say)?;
    let id = kept.map(|it| it.serving.id);
    ensure!(id == Some(99), "kept {id:?}");
    started.control.kill().map_err(say)?;
    started.control.wait().map(drop).map_err(say)
}

/// Has the steward keep that instance `id` of domain `number` serves.
fn keep(steward: &Handle<dyn Steward>, number: u64, id: u32) -> RpcResult<()> {
    let kept = Kept {
        serving: Serving {
            id,
            crashes: 0,
            starts: 0,
            updates: 0,
            by_update: 0,
            image: Text::new("some"),
        },
        offers: [const { None }; 4],
    };
    steward.keep(Text::new(&format!("{number}")), kept)
}
