//! Memory of programs that is lent: one copy over any number of domains, within a call and never
//! after it, whoever dies.

use crate::events::begin;
use crate::lab::{Lab, Victim, say, settle};
use crate::spaces::{AT, PAGE, READ, WRITE, space};
use crate::traces::forwarder;
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::time;
use domain_rt::user::{UserBuf, UserDirection, UserSegment};
use interfaces::{AddressSpace, CrashReason, Events, Handle, Misdeed, RVec, RpcError};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("userbufs-one-copy-over-a-chain", chain),
    ("userbufs-short-at-a-fault", short),
    ("userbufs-of-wrong-handles-and-numbers", wrong),
    ("userbufs-callee-that-dies-with-one", callee_dies),
    ("userbufs-among-dying-domains", dying),
];

pub type Space = Handle<dyn AddressSpace>;

pub const INTO: UserDirection = UserDirection::ToProgram;
pub const FROM: UserDirection = UserDirection::FromProgram;

pub fn segment(start: u64, length: u64) -> UserSegment {
    UserSegment { start, length }
}

pub fn lent<'a>(
    space: &'a Space,
    segments: &'a [UserSegment],
    direction: UserDirection,
) -> Result<UserBuf<'a>, String> {
    UserBuf::new(space, segments, direction).ok_or_else(|| "too many segments".into())
}

/// A space with so many pages of its own from `AT` on, all of them there; none where there are no
/// spaces.
pub fn pages(lab: &Lab, count: u64) -> Result<Option<Space>, String> {
    let Some(space) = space(lab)? else {
        return Ok(None);
    };
    space.map_zero(AT, count, WRITE).map_err(say)?;
    for page in 0..count {
        space.touch(AT + page * PAGE, true).map_err(say)?;
    }
    Ok(Some(space))
}

pub fn bytes(space: &Space, at: u64, count: usize) -> Result<Vec<u8>, String> {
    let buffer = RVec::filled(0xaa, count).map_err(say)?;
    let (buffer, count) = space.read(at, buffer).map_err(say)?;
    Ok(buffer[..count as usize].to_vec())
}

/// Through two domains that lend it on, in segments over the ends of pages; and back.
fn chain(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = pages(lab, 6)? else {
            return Ok(());
        };
        let last = lab.start()?;
        let middle = forwarder(lab, &last)?;
        let first = forwarder(lab, &middle)?;
        let segments = [
            segment(AT + 3 * PAGE - 7, 5000),
            segment(AT, 0),
            segment(AT + 100, 3),
            segment(AT + PAGE, 4096),
        ];
        let to = lent(&space, &segments, INTO)?;
        let done = first.subject.fill_user(&to, 11).map_err(say)?;
        ensure!(done == 9099, "{done} bytes were copied");
        let seen = [
            bytes(&space, AT + 3 * PAGE - 7, 5000)?,
            bytes(&space, AT + 100, 3)?,
            bytes(&space, AT + PAGE, 4096)?,
        ]
        .concat();
        let right: Vec<u8> = (11..11 + 9099_u64).map(|value| value as u8).collect();
        ensure!(seen == right, "other bytes are in the program");
        for (at, count) in [(AT, 100), (AT + 103, 10), (AT + 2 * PAGE, 4089)] {
            let clear = bytes(&space, at, count)?.iter().all(|byte| *byte == 0);
            ensure!(clear, "bytes beside the segments were written at {at:#x}");
        }
        let from = lent(&space, &segments, FROM)?;
        let sum = first.subject.sum_user(&from).map_err(say)?;
        let right = right.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        ensure!(sum == (right, 9099), "{sum:?} in place of {right}");
        [first, middle, last].iter().try_for_each(Victim::end)
    })
}

/// A page that is not there ends a copy; made ready, the copy goes on from there.
fn short(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = pages(lab, 2)? else {
            return Ok(());
        };
        let victim = lab.start()?;
        space.map_zero(AT + 2 * PAGE, 1, WRITE).map_err(say)?;
        space.map_zero(AT + 3 * PAGE, 1, READ).map_err(say)?;
        let fill = |from: u64, count: u64| -> Result<u64, String> {
            let segments = [segment(AT + from, count)];
            let to = lent(&space, &segments, INTO)?;
            victim.subject.fill_user(&to, from).map_err(say)
        };
        let done = fill(0, 4 * PAGE)?;
        ensure!(
            done == 2 * PAGE,
            "{done} bytes before a page that is absent"
        );
        space.touch(AT + 2 * PAGE, true).map_err(say)?;
        let done = fill(done, 2 * PAGE)?;
        ensure!(done == PAGE, "{done} bytes before a page to read only");
        space.touch(AT + 3 * PAGE, false).map_err(say)?;
        ensure!(fill(3 * PAGE, 1)? == 0, "it wrote to a page to read only");
        let seen = bytes(&space, AT, 3 * PAGE as usize)?;
        let right = (0..)
            .zip(&seen)
            .all(|(value, byte): (u64, _)| value as u8 == *byte);
        ensure!(right && seen.len() == 3 * PAGE as usize, "other bytes");
        let segments = [segment(AT, 4 * PAGE)];
        let (_, count) = victim
            .subject
            .sum_user(&lent(&space, &segments, FROM)?)
            .map_err(say)?;
        ensure!(count == 4 * PAGE, "{count} bytes are read");
        victim.end()
    })
}

/// The wrong way, beyond the program, more than there may be, of what is no space of the kernel's.
fn wrong(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = pages(lab, 1)? else {
            return Ok(());
        };
        let victim = lab.start()?;
        let own = [segment(AT, 64)];
        let done = victim.subject.fill_user(&lent(&space, &own, FROM)?, 1);
        ensure!(done == Ok(0), "{done:?} written the wrong way");
        let sum = victim.subject.sum_user(&lent(&space, &own, INTO)?);
        ensure!(sum == Ok((0, 0)), "{sum:?} read the wrong way");
        let numbers = [
            (0, 64),
            (AT - 64, 64),
            (1 << 47, 64),
            (u64::MAX, u64::MAX),
            (u64::MAX - 4095, u64::MAX),
            (0xffff_8000_0000_0000, u64::MAX),
            (0xffff_ffff_8000_0000, 4096),
        ];
        for (start, length) in numbers {
            let far = [segment(start, length)];
            let to = victim.subject.fill_user(&lent(&space, &far, INTO)?, 1);
            let from = victim.subject.sum_user(&lent(&space, &far, FROM)?);
            let right = to == Ok(0) && from == Ok((0, 0));
            ensure!(right, "{to:?} and {from:?} at {start:#x}");
        }
        let many = vec![segment(AT, 1); UserBuf::MOST_SEGMENTS + 1];
        ensure!(UserBuf::new(&space, &many, INTO).is_none(), "too many");
        let most = &many[1..];
        let done = victim.subject.fill_user(&lent(&space, most, INTO)?, 0);
        ensure!(done == Ok(1024), "{done:?} of 1,024 segments");
        // Handles of other things, of the kernel's and of a domain's.
        let events: &Handle<dyn Events> = lab.events.as_ref().ok_or("no events")?;
        let fakes = [
            UserBuf::new(events, &own, INTO),
            UserBuf::new(&victim.subject, &own, INTO),
            UserBuf::new(&victim.domain, &own, INTO),
        ];
        for fake in fakes.into_iter().flatten() {
            let done = victim.subject.fill_user(&fake, 1);
            ensure!(done == Ok(0), "{done:?} with a handle of something else");
        }
        victim.end()
    })
}

/// Who is lent it panics, loops, or has its stack run over: the lender goes on, and his memory is
/// as it was.
fn callee_dies(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = pages(lab, 1)? else {
            return Ok(());
        };
        for how in [Misdeed::Panic, Misdeed::Spin, Misdeed::DeepRecursion] {
            let last = lab.start()?;
            let first = forwarder(lab, &last)?;
            let own = [segment(AT, 64)];
            let to = lent(&space, &own, INTO)?;
            let answer = first.subject.harm_with_user(&to, how);
            let right = answer == Err(RpcError::DomainCrashed);
            ensure!(right, "{answer:?} of {how:?}");
            // Lent once more, to another.
            let next = lab.start()?;
            let done = next.subject.fill_user(&to, 9).map_err(say)?;
            ensure!(done == 64, "{done} bytes after {how:?}");
            [first, next].iter().try_for_each(Victim::end)?;
            last.gone()?;
        }
        Ok(())
    })
}

/// A domain lends its program's memory, over a second one, to a third, again and again; each of
/// them is ended in turn at any moment.
fn dying(lab: &Lab) -> Verdict {
    const ROUNDS: u64 = 24;
    lab.conserves_memory(|| {
        for round in 0..ROUNDS {
            die(lab, round)?;
        }
        settle(lab)
    })
}

fn die(lab: &Lab, round: u64) -> Verdict {
    let Some(spaces) = &lab.spaces else {
        return Ok(());
    };
    let last = lab.start()?;
    let middle = forwarder(lab, &last)?;
    let lender = lab.start_before(&middle)?;
    let code = Arc::new(AtomicU32::new(0));
    let (spaces, told) = (spaces.duplicate().map_err(say)?, code.clone());
    let body = move |victim: &Victim| {
        let answer = victim.subject.lend_user(spaces);
        let crashed = answer == Err(RpcError::DomainCrashed);
        told.store(1 + u32::from(crashed), Ordering::SeqCst);
    };
    begin(body, &lender)?;
    time::sleep(300_000 + round * 41_000);
    let early = code.load(Ordering::SeqCst);
    ensure!(early == 0, "it ended by itself, round {round}");
    let dead = [&lender, &middle, &last][round as usize % 3];
    dead.domain.kill().map_err(say)?;
    let why = dead.gone()?;
    ensure!(why == CrashReason::Killed, "it ended by {why:?}");
    crate::lab::wait_for("the end of a loan", || code.load(Ordering::SeqCst) > 0)?;
    let code = code.load(Ordering::SeqCst);
    ensure!(code == 2, "it ended with {code}, round {round}");
    // The others are well.
    for other in [&last, &middle, &lender] {
        if other.id != dead.id {
            ensure!(!other.has_died()?, "another has died, round {round}");
            other.end()?;
        }
    }
    Ok(())
}
