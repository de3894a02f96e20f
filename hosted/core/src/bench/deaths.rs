//! Deaths: from the crash to the error and to the next life (P4), and reclaim (P5).

use super::{prepare, say, start, tell, tsc};
use crate::host::host;
use abi::shared::owner_cell;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use interfaces::Misdeed;
use isolation::Reason;
use isolation::death::kill::kill;
use isolation::memory::heap::OBJECTS;
use isolation::memory::owner::Owner;

/// Rounds of something that takes microseconds.
const LIVES: usize = 400;
/// Rounds of something that takes milliseconds to prepare.
const HARVESTS: usize = 40;
/// Bytes that may be kept for good: the stacks of up to 16 helpers that clear domains away, and
/// chunks of the shared heap that have become permanent. Over a million lives that is 3 bytes a
/// life.
const MOST_KEPT: u64 = 3 << 20;

/// Crash to error, restart to first good call (P4).
pub fn recovery() -> Result<(), String> {
    let image = prepare("domains/victim")?;
    let (mut crashes, mut restarts, mut reclaims) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..LIVES {
        let (instance, subject) = start(&image, None)?;
        subject.null().map_err(say)?;
        let begin = tsc();
        let error = subject.misbehave(Misdeed::OutOfBounds);
        let known = tsc();
        let (next, again) = start(&image, None)?;
        again.null().map_err(say)?;
        let restarted = tsc();
        instance.block.wait_gone().map_err(say)?;
        let gone = tsc();
        if error.is_ok() {
            return Err("the victim survived".into());
        }
        crashes.push(known - begin);
        restarts.push(restarted - known);
        reclaims.push(gone - begin);
        drop((subject, again));
        kill(&next.block, Reason::Exited);
        next.block.wait_gone().map_err(say)?;
    }
    tell("P4", "crash to error at the caller", "ticks", &crashes, 1);
    tell("P4r", "restart to first good call", "ticks", &restarts, 1);
    tell(
        "P4g",
        "crash to everything cleared away",
        "ticks",
        &reclaims,
        1,
    );
    Ok(())
}

/// An owner that no domain is.
const fn nobody(number: u32) -> Owner {
    // SAFETY: so many domains never live in a benchmark.
    unsafe { Owner::new(u32::MAX - number) }
}

/// Frees what `owner` has; how much.
fn free_all_of(owner: Owner) -> usize {
    // SAFETY: the benchmark allocated it and never uses it.
    unsafe { OBJECTS.free_all_of(owner) }
}

/// Reclaim of what a dead domain owned (P5).
pub fn reclaim() -> Result<(), String> {
    const OWNER: Owner = nobody(1);
    const OBJECT_COUNT: usize = 100_000;
    let mut rounds = Vec::new();
    for _ in 0..HARVESTS {
        let made = (0..OBJECT_COUNT)
            .filter(|_| OBJECTS.allocate(64, OWNER).is_some())
            .count();
        let begin = tsc();
        let freed = free_all_of(OWNER);
        rounds.push(tsc() - begin);
        if (made, freed) != (OBJECT_COUNT, OBJECT_COUNT) {
            return Err(format!("{made} objects made, {freed} freed"));
        }
    }
    tell(
        "P5",
        "reclaim of 100,000 shared objects",
        "ticks",
        &rounds,
        1,
    );
    beside_others()
}

/// Reclaim of what a dead domain owned beside 100 MB of small objects of another.
fn beside_others() -> Result<(), String> {
    const OTHER: Owner = nobody(1);
    let many = 100_000_000 / 64;
    let made = (0..many).filter(|_| OBJECTS.allocate(64, OTHER).is_some());
    if made.count() != many {
        return Err("no memory for 100 MB of objects".into());
    }
    let result = objects_beside_others()
        .and_then(|()| {
            handles(
                "P5h",
                "death with 1,000 handles beside 100 MB of others'",
                1_000,
            )
        })
        .and_then(|()| {
            handles(
                "P5i",
                "death with 10,000 handles beside 100 MB of others'",
                10_000,
            )
        });
    free_all_of(OTHER);
    result
}

fn objects_beside_others() -> Result<(), String> {
    const OWNER: Owner = nobody(2);
    let mut rounds = Vec::new();
    for _ in 0..HARVESTS {
        let made = (0..100).filter(|_| OBJECTS.allocate(64, OWNER).is_some());
        let made = made.count();
        let begin = tsc();
        let freed = free_all_of(OWNER);
        rounds.push(tsc() - begin);
        if (made, freed) != (100, 100) {
            return Err(format!("{made} objects made, {freed} freed"));
        }
    }
    let name = "reclaim of 100 shared objects beside 100 MB of others'";
    tell("P5o", name, "ticks", &rounds, 1);
    Ok(())
}

/// From a kill to the end of a domain that holds `count` handles.
fn handles(id: &str, name: &str, count: usize) -> Result<(), String> {
    let image = prepare("domains/victim")?;
    let (server, subject) = start(&image, None)?;
    let mut rounds = Vec::new();
    for _ in 0..HARVESTS {
        let (holder, _) = start(&image, None)?;
        for _ in 0..count {
            let raw = ManuallyDrop::new(subject.duplicate().map_err(say)?).as_raw();
            let slot = NonNull::new(raw.data).ok_or("no handle")?;
            // SAFETY: a live proxy, in a slot of a heap with owners. It is the holder's from now
            // on.
            unsafe { owner_cell(slot).store(holder.block.id, Ordering::Release) };
        }
        let begin = tsc();
        kill(&holder.block, Reason::Exited);
        holder.block.wait_gone().map_err(say)?;
        rounds.push(tsc() - begin);
    }
    tell(id, name, "ticks", &rounds, 1);
    drop(subject);
    kill(&server.block, Reason::Exited);
    server.block.wait_gone().map(drop).map_err(say)
}

/// Starts and crashes one domain `count` times: no memory may be lost, no number used twice, and
/// the last tenth of the lives may take no longer than the first (which is told, not judged).
pub fn lives(count: usize) -> Result<(), String> {
    let image = prepare("domains/victim")?;
    let mut rounds = Vec::with_capacity(count);
    let (mut last, mut free) = (0, 0);
    for round in 0..count {
        let begin = tsc();
        let (instance, subject) = start(&image, None)?;
        if instance.block.id <= last || subject.misbehave(Misdeed::OutOfBounds).is_ok() {
            return Err(format!(
                "life {round}: number {} after {last}, or it survived",
                instance.block.id
            ));
        }
        last = instance.block.id;
        instance.block.wait_gone().map_err(say)?;
        drop((instance, subject));
        rounds.push(tsc() - begin);
        if round == count / 10 {
            free = (host().memory)(1);
        }
    }
    let lost = free.saturating_sub((host().memory)(1));
    if lost > MOST_KEPT {
        return Err(format!("{lost} bytes are lost after {count} lives"));
    }
    let tenth = count / 10;
    crate::log::print(format_args!(
        "{count} lives, the last is domain {last}; {lost} bytes are kept"
    ));
    tell(
        "lives",
        "start to cleared away, first tenth",
        "ticks",
        &rounds[..tenth],
        1,
    );
    tell(
        "lives",
        "start to cleared away, last tenth",
        "ticks",
        &rounds[count - tenth..],
        1,
    );
    Ok(())
}
