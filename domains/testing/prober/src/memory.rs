//! Memory: what a dead domain owned comes back, budgets hold, and no domain takes the others'
//! memory along.

use crate::lab::{Lab, say, unlimited};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{Handle, Misdeed, RRef, RVec, RpcError, Subject};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("memory-private-heap-comes-back", private),
    ("memory-shared-objects-come-back", shared),
    ("memory-nested-objects-come-back", nested),
    ("memory-small-objects-share-pages", small_objects),
    ("memory-budget-of-private-heap", private_budget),
    ("memory-hoarding-private-heap", |lab| {
        hoard(lab, Misdeed::HoardPrivate)
    }),
    ("memory-hoarding-shared-heap", |lab| {
        hoard(lab, Misdeed::HoardShared)
    }),
    ("memory-death-of-a-rich-domain", rich),
    ("memory-a-hundred-lives", hundred_lives),
    ("memory-kept-images-give-way", kept_images),
    ("memory-handles-leave-the-kernel-its-own", many_handles),
    ("memory-impossible-wishes-ask-nobody", impossible),
    ("memory-zeroed-shows-nothing-of-former-owners", zeroed),
];

fn private(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        victim.subject.grow(3_000_000).map_err(say)?;
        let heap = lab.info(victim.id)?.map_or(0, |info| info.heap_bytes);
        ensure!(heap >= 3_000_000, "{heap} bytes of heap");
        victim.end()
    })
}

fn shared(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        for _ in 0..500 {
            victim
                .subject
                .keep(RRef::new([1; 64]).map_err(say)?)
                .map_err(say)?;
        }
        let owned = lab.holdings(victim.id)?.objects;
        ensure!(owned == 500, "{owned} objects");
        victim.end()
    })
}

fn nested(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        for value in 0..100 {
            let nest = victim.subject.make_nest(value).map_err(say)?;
            victim.subject.keep_nest(nest).map_err(say)?;
        }
        let owned = lab.holdings(victim.id)?.objects;
        ensure!(owned == 500, "{owned} objects");
        victim.end()
    })
}

fn small_objects(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let before = lab.info(victim.id)?.map_or(0, |info| info.heap_bytes);
    (0..1000)
        .try_for_each(|_| victim.subject.grow(16).map(drop))
        .map_err(say)?;
    let after = lab.info(victim.id)?.map_or(0, |info| info.heap_bytes);
    ensure!(
        after - before <= 512 * 1024,
        "1,000 objects of 16 bytes took {} bytes",
        after - before
    );
    victim.end()
}

fn private_budget(lab: &Lab) -> Verdict {
    let started = lab.start_limited(None, 64, 0, b"")?;
    let victim = started.map_err(say)?;
    let grown = victim.subject.grow(64 * 4096);
    ensure!(grown == Err(RpcError::NoMemory), "{grown:?} over budget");
    ensure!(
        victim.subject.add(1, 1) == Ok(2),
        "asking for too much ended it"
    );
    victim.end()
}

fn hoard(lab: &Lab, how: Misdeed) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let answer = victim.subject.misbehave(how);
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        victim.gone().map(drop)
    })
}

fn rich(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let answer = victim.subject.misbehave(Misdeed::PanicRich);
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        victim.gone().map(drop)
    })
}

fn hundred_lives(lab: &Lab) -> Verdict {
    let live = || {
        let victim = lab.start()?;
        victim.subject.make_nest(1).map_err(say)?;
        ensure!(
            victim.subject.misbehave(Misdeed::Panic).is_err(),
            "it lives"
        );
        victim.gone().map(drop)
    };
    lab.conserves_memory(|| (0..100).try_for_each(|_| live()))
}

/// Has a new domain take all memory that there is, and ends it. In many calls, because one may run
/// for so long only, and how long all memory takes depends on what else the machine under the
/// emulator has to do.
fn exhaust(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    while victim.subject.grow(256 << 10).is_ok() {}
    victim.end()
}

/// What a file's last instance left in memory is given up when somebody gets none.
fn kept_images(lab: &Lab) -> Verdict {
    let other = lab.loader.prepare(lab.victim_file()?).map_err(say)?;
    exhaust(lab)?;
    let mut freed = 0;
    for _ in 0..4 {
        let grants = [const { None }; 16];
        let options = RVec::from_slice(b"").map_err(say)?;
        let started = other.start(unlimited(), grants, options).map_err(say)?;
        let image = started.control.info().map_err(say)?.image_bytes;
        started.control.kill().map_err(say)?;
        started.control.wait().map_err(say)?;
        let before = lab.free()?;
        exhaust(lab)?;
        freed = lab.free()? as i64 - before as i64;
        if freed >= image as i64 / 2 {
            return Ok(());
        }
    }
    Err(format!("only {freed} bytes were given up"))
}

/// A handle needs room among the handles and a little of the kernel's own memory for what it leads
/// to. There may be much room where others were, while all other memory is used up: then the kernel
/// must not spend what it needs itself.
fn many_handles(lab: &Lab) -> Verdict {
    const MOST: usize = 200_000;
    let victim = lab.start()?;
    lab.conserves_memory(|| {
        let mut held = Vec::new();
        held.try_reserve_exact(MOST).map_err(say)?;
        let places = sparse(&victim.subject, MOST)?;
        let rest = all_memory();
        let refused = loop {
            match lab.control.domain(victim.id) {
                Ok(handle) if held.len() < MOST => held.push(handle),
                Ok(_) => break None,
                Err(error) => break Some(error),
            }
        };
        ensure!(
            refused.is_none_or(|error| error == RpcError::NoMemory),
            "{refused:?}"
        );
        // To objects of a domain, which the kernel has nothing of but the way there.
        let children = (0..200).map(|_| victim.subject.offspring());
        let children: Vec<_> = children.collect();
        drop((rest, places, held, children));
        victim.subject.null().map_err(say)
    })?;
    victim.end()
}

/// Handles with room for `count` others between them: there were as many, of which few are left.
fn sparse(subject: &Handle<dyn Subject>, count: usize) -> Result<Vec<Handle<dyn Subject>>, String> {
    const APART: usize = 3000;
    let mut left = Vec::new();
    let mut others = Vec::new();
    others.try_reserve_exact(count).map_err(say)?;
    for number in 0..count {
        let handle = subject.duplicate().map_err(say)?;
        match number % APART {
            0 => left.push(handle),
            _ => others.push(handle),
        }
    }
    Ok(left)
}

/// All memory that can be had, in pieces that get smaller and smaller.
pub fn all_memory() -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for size in [16 << 20, 1 << 20, 64 << 10, 36 << 10] {
        loop {
            let mut piece = Vec::new();
            if pieces.try_reserve(1).is_err() || piece.try_reserve_exact(size).is_err() {
                break;
            }
            pieces.push(piece);
        }
    }
    pieces
}

/// Whoever asks for more than the machine has gets nothing, and caches keep what they have.
fn impossible(lab: &Lab) -> Verdict {
    let Some(watch) = &lab.memory else {
        return Ok(());
    };
    // There is always a later one than this, so that it does not wait.
    let rings = || {
        let shortage = watch.shortage(u32::MAX, 0).map_err(say)?;
        Ok::<u32, String>(shortage.number)
    };
    let before = rings()?;
    ensure!(
        RVec::<u8>::zeroed(1 << 50).is_err(),
        "an object of 2^50 bytes"
    );
    let mut private = Vec::<u8>::new();
    ensure!(private.try_reserve(1 << 43).is_err(), "2^43 bytes of heap");
    let after = rings()?;
    ensure!(after == before, "{} rings", after.wrapping_sub(before));
    // Whereas somebody who takes all that there is does ask.
    exhaust(lab)?;
    ensure!(rings()? != after, "nobody was asked");
    Ok(())
}

/// Nothing is cleared a second time, so what was written before must have been cleared the first
/// time.
fn zeroed(_: &Lab) -> Verdict {
    let around_a_slot = 32 << 10;
    for bytes in [
        1,
        64,
        around_a_slot - 1,
        around_a_slot,
        around_a_slot + 1,
        100 << 10,
        1 << 20,
    ] {
        for round in 0..4 {
            drop(RVec::filled(0xa5u8, bytes).map_err(say)?);
            let zeros = RVec::<u8>::zeroed(bytes).map_err(say)?;
            let clean = zeros.len() == bytes && zeros.iter().all(|byte| *byte == 0);
            ensure!(clean, "{bytes} bytes are not zero in round {round}");
        }
    }
    Ok(())
}
