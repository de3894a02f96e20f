//! More that a hostile domain can try: bombs, panics within panics, rings of three that break at
//! any depth, proxies used long after, results that are not what they seem, numbers in place of
//! capabilities, calls re-entered.

use crate::lab::{Lab, Victim, say, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{CrashReason, Misdeed, RRef, RVec, RpcError, StartError};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("attack-thread-bomb", thread_bomb),
    ("attack-panic-while-panicking", |lab| {
        ends_by(lab, Misdeed::PanicInPanic, CrashReason::Panic)
    }),
    ("attack-panic-without-end", |lab| {
        ends_by(lab, Misdeed::PanicForEver, CrashReason::StackOverflow)
    }),
    ("attack-stack-overflow-in-start", overflow_in_start),
    ("attack-panic-while-called-back", called_back),
    ("attack-ring-of-three-broken-at-every-depth", broken_ring),
    ("attack-ring-of-three-killed-at-any-time", killed_ring),
    ("attack-proxy-used-long-after", long_after),
    ("attack-dead-handle-handed-on", handed_on),
    ("attack-forged-result-foreign", forged_foreign),
    ("attack-forged-result-dead", forged_dead),
    ("attack-numbers-for-capabilities", numbers),
    ("attack-numbers-for-owners", owners),
    ("attack-call-re-entered", re_entered),
    (
        "attack-call-re-entered-with-its-lock-held",
        re_entered_locked,
    ),
];

fn thread_bomb(lab: &Lab) -> Verdict {
    let bystander = lab.start()?;
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        // It comes to the end of memory or of its time, whichever is first.
        let answer = victim.subject.misbehave(Misdeed::HoardThreads);
        let expected = matches!(answer, Ok(1..) | Err(RpcError::DomainCrashed));
        ensure!(expected, "{answer:?}");
        ensure!(bystander.subject.add(1, 2) == Ok(3), "a bystander was hurt");
        victim.end()?;
        time::sleep(5_000_000);
        Ok(())
    })?;
    bystander.end()
}

fn ends_by(lab: &Lab, how: Misdeed, reason: CrashReason) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let answer = victim.subject.misbehave(how);
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        let why = victim.gone()?;
        ensure!(why == reason, "it ended by {why:?}");
        Ok(())
    })
}

fn overflow_in_start(lab: &Lab) -> Verdict {
    match lab.start_limited(None, 0, 0, b"overflow")? {
        Err(StartError::Crashed) => Ok(()),
        other => Err(format!("{:?}", other.map(|victim| victim.id))),
    }
}

/// `first` calls `second`, which calls `first` back; that call panics, so `second` returns into a
/// dead domain.
fn called_back(lab: &Lab) -> Verdict {
    let second = lab.start()?;
    lab.conserves_memory(|| {
        let first = lab.start_before(&second)?;
        let back = first.subject.duplicate().map_err(say)?;
        second.subject.follow(Some(back)).map_err(say)?;
        let answer = first.subject.misbehave(Misdeed::PanicCalledBack);
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        first.gone()?;
        second.subject.follow(None).map_err(say)?;
        ensure!(second.subject.add(1, 1) == Ok(2), "the other one died");
        Ok(())
    })?;
    second.end()
}

/// Three domains, each the next of another.
fn ring(lab: &Lab) -> Result<[Victim; 3], String> {
    let third = lab.start()?;
    let second = lab.start_before(&third)?;
    let first = lab.start_before(&second)?;
    let back = first.subject.duplicate().map_err(say)?;
    third.subject.follow(Some(back)).map_err(say)?;
    Ok([first, second, third])
}

/// One of the ring dies; the others live, and everything comes back.
fn end_ring(ring: [Victim; 3], dead: usize) -> Verdict {
    for (index, victim) in ring.iter().enumerate() {
        let is_right = victim.is_dead() == (index == dead);
        ensure!(is_right, "number {index} is not as it should be");
    }
    ring[dead].gone()?;
    // The handles of the ring hold each other's objects, not the domains.
    ring.iter()
        .filter(|victim| !victim.is_dead())
        .try_for_each(Victim::end)
}

/// Calls go round and round; at each depth in turn the one that is called last panics.
fn broken_ring(lab: &Lab) -> Verdict {
    const DEPTH: u64 = 12;
    lab.conserves_memory(|| {
        for at in 1..=DEPTH {
            let ring = ring(lab)?;
            let answer = ring[0].subject.depth(DEPTH | at << 32);
            ensure!(
                answer == Err(RpcError::DomainCrashed),
                "at {at}: {answer:?}"
            );
            end_ring(ring, ((DEPTH - at) % 3) as usize)?;
        }
        Ok(())
    })
}

/// Calls go round and round in a thread while one of the three is killed from outside.
fn killed_ring(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        for round in 0..12 {
            let ring = ring(lab)?;
            let subject = ring[0].subject.duplicate().map_err(say)?;
            let done = Arc::new(AtomicU32::new(0));
            let told = done.clone();
            thread::spawn("caller", move || {
                let mut answer = subject.depth(20);
                while answer == Ok(20) {
                    answer = subject.depth(20);
                }
                drop(subject);
                let crashed = answer == Err(RpcError::DomainCrashed);
                told.store(if crashed { 1 } else { 2 }, Ordering::SeqCst);
            })
            .map_err(say)?;
            time::sleep(500_000 + round * 170_000);
            let dead = round as usize % 3;
            ring[dead].domain.kill().map_err(say)?;
            wait_for("the caller", || done.load(Ordering::SeqCst) != 0)?;
            ensure!(done.load(Ordering::SeqCst) == 1, "another error came");
            end_ring(ring, dead)?;
        }
        crate::lab::settle(lab)
    })
}

/// A proxy is used when its domain is dead, when it is gone, and when many others have come and
/// gone since.
fn long_after(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let child = victim.subject.offspring().map_err(say)?;
    victim.end()?;
    for _ in 0..100 {
        lab.start()?.end()?;
        ensure!(victim.is_dead(), "it answers");
    }
    ensure!(
        child.add(1, 1) == Err(RpcError::DomainCrashed),
        "its child answers"
    );
    let object = RRef::new([1; 64]).map_err(say)?;
    ensure!(victim.subject.keep(object).is_err(), "it took an object");
    ensure!(victim.subject.make(1).is_err(), "it made an object");
    ensure!(victim.subject.offspring().is_err(), "it made a handle");
    // What it had is not what a later one has.
    let later = lab.start()?;
    ensure!(later.id > victim.id + 99, "numbers are used again");
    later.end()
}

/// A handle of a dead domain is given to a living one, which calls it, duplicates it and drops it.
fn handed_on(lab: &Lab) -> Verdict {
    let holder = lab.start()?;
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let dead = victim.subject.duplicate().map_err(say)?;
        victim.end()?;
        if let Ok(twin) = dead.duplicate() {
            ensure!(twin.null().is_err(), "the twin of a dead handle answers");
        }
        // It may be refused, or lead nowhere.
        let _ = holder.subject.follow(Some(dead));
        let answer = holder.subject.depth(1);
        ensure!(
            matches!(answer, Ok(0) | Err(RpcError::DomainCrashed)),
            "the holder called {answer:?}"
        );
        holder.subject.follow(None).map_err(say)
    })?;
    ensure!(holder.subject.add(1, 1) == Ok(2), "the holder died of it");
    holder.end()
}

/// A domain answers with a handle that leads to another domain. That is allowed; what is called is
/// the other domain, with its authority and in its name, and the giver's death does not touch it.
fn forged_foreign(lab: &Lab) -> Verdict {
    let other = lab.start()?;
    let forger = lab.start_before(&other)?;
    other.subject.grow(1000).map_err(say)?;
    forger
        .subject
        .misbehave(Misdeed::ForgeOffspring)
        .map_err(say)?;
    let forged = forger.subject.offspring().map_err(say)?;
    ensure!(forged.grow(0) == Ok(1000), "it does not lead to the other");
    forger.end()?;
    ensure!(forged.add(1, 1) == Ok(2), "it died with who handed it on");
    other.end()?;
    ensure!(
        forged.add(1, 1) == Err(RpcError::DomainCrashed),
        "it answers"
    );
    Ok(())
}

/// A domain answers with a handle whose domain is dead.
fn forged_dead(lab: &Lab) -> Verdict {
    let other = lab.start()?;
    let forger = lab.start_before(&other)?;
    forger
        .subject
        .misbehave(Misdeed::ForgeOffspring)
        .map_err(say)?;
    other.end()?;
    for _ in 0..100 {
        match forger.subject.offspring() {
            Ok(forged) => ensure!(forged.null() == Err(RpcError::DomainCrashed), "it answers"),
            Err(error) => ensure!(error == RpcError::DomainCrashed, "{error:?}"),
        }
    }
    ensure!(!forger.is_dead(), "the forger died of it");
    forger.end()
}

/// Numbers that name nothing, or what nobody may name.
fn numbers(lab: &Lab) -> Verdict {
    for id in [0, 1, u32::MAX, u32::MAX - 1] {
        let found = lab.control.domain(id).map_err(say)?;
        ensure!(found.is_none(), "number {id} can be ended");
    }
    let last = lab.monitor.next(u32::MAX).map_err(say)?;
    ensure!(last.is_none(), "a domain has the last number");
    for (index, offset) in [
        (u32::MAX, 0),
        (0, u64::MAX),
        (0, 1 << 63),
        (u32::MAX, u64::MAX),
    ] {
        let buffer = RVec::filled(7u8, 100).map_err(say)?;
        // An error, or nothing: but no bytes that the archive does not have.
        if let Ok(read) = lab.archive.read(index, offset, buffer) {
            let is_old = read.iter().all(|byte| *byte == 7 || *byte == 0);
            ensure!(is_old, "bytes from {offset:#x} of file {index}");
        }
    }
    Ok(())
}

/// Numbers that the owner tables hold but no domain has, asked for while two threads make and drop
/// handles and objects, so that half-made ones are there to be found.
fn owners(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let (stop, stopped) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    for _ in 0..2 {
        let subject = victim.subject.duplicate().map_err(say)?;
        let (stop, stopped) = (stop.clone(), stopped.clone());
        thread::spawn("churner", move || {
            while stop.load(Ordering::SeqCst) == 0 {
                let made = subject
                    .offspring()
                    .and_then(|made| Ok((made.duplicate()?, made)));
                drop((made, subject.make_nest(1)));
            }
            drop(subject);
            stopped.fetch_add(1, Ordering::SeqCst);
        })
        .map_err(say)?;
    }
    let verdict = (0..1_500).try_for_each(|round| ask_for_owners(lab, &victim, round));
    stop.store(1, Ordering::SeqCst);
    wait_for("the churners", || stopped.load(Ordering::SeqCst) == 2)?;
    verdict?;
    ensure!(!victim.is_dead(), "the victim died of it");
    victim.end()?;
    crate::lab::settle(lab)
}

/// Asks the monitor for what such numbers own and hold; nothing may be found.
fn ask_for_owners(lab: &Lab, victim: &Victim, round: u32) -> Verdict {
    for id in [0, 1, u32::MAX, u32::MAX - 1, 1 << 31, victim.id + 1_000_000] {
        for index in [0, 1, round % 64, u32::MAX] {
            let held = lab.monitor.holds(id, index).map_err(say)?;
            ensure!(held.is_none(), "number {id} holds {held:?}");
        }
        let holdings = lab.monitor.holdings(id).map_err(say)?;
        let nothing = holdings.objects == 0 && holdings.handles == 0;
        ensure!(nothing, "number {id} has {holdings:?}");
    }
    // Those that live are searched while they take and lose handles.
    for id in [victim.id, domain_rt::self_id()] {
        if let Some((interface, server)) = lab.monitor.holds(id, round % 8).map_err(say)? {
            let is_whole = interface.as_str() != "?" && !server.as_str().is_empty();
            ensure!(is_whole, "{interface:?} of {server:?}");
        }
    }
    let from_none = lab.monitor.next(u32::MAX - round).map_err(say)?;
    ensure!(from_none.is_none(), "a domain has one of the last numbers");
    Ok(())
}

/// A domain is its own next: its method runs many times at once on one stack.
fn re_entered(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let own = victim.subject.duplicate().map_err(say)?;
    victim.subject.follow(Some(own)).map_err(say)?;
    ensure!(
        victim.subject.depth(30) == Ok(30),
        "it cannot be re-entered"
    );
    // So deep that the stack comes to its end: an error, and nobody dies.
    let answer = victim.subject.depth(100_000);
    ensure!(answer == Err(RpcError::StackLow), "{answer:?}");
    let answer = victim.subject.depth(30 | 7 << 32);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    victim.gone().map(drop)
}

/// A method calls its own domain while it holds the lock that the inner call waits for. Only its
/// death helps, and that frees both calls.
fn re_entered_locked(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let own = victim.subject.duplicate().map_err(say)?;
        victim.subject.follow(Some(own)).map_err(say)?;
        let subject = victim.subject.duplicate().map_err(say)?;
        let done = Arc::new(AtomicU32::new(0));
        let told = done.clone();
        thread::spawn("caller", move || {
            let crashed = subject.misbehave(Misdeed::ReenterLocked) == Err(RpcError::DomainCrashed);
            drop(subject);
            told.store(if crashed { 1 } else { 2 }, Ordering::SeqCst);
        })
        .map_err(say)?;
        time::sleep(5_000_000);
        victim.domain.kill().map_err(say)?;
        wait_for("the caller", || done.load(Ordering::SeqCst) != 0)?;
        ensure!(done.load(Ordering::SeqCst) == 1, "it got another answer");
        victim.gone()?;
        crate::lab::settle(lab)
    })
}
