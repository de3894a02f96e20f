//! Every way to crash: the caller gets the error, the domain is gone, everybody else goes on.

use crate::lab::{Lab, say, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{CrashReason, Misdeed, RRef, RpcError, StartError};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("crash-by-panic", |lab| {
        crash(lab, Misdeed::Panic, CrashReason::Panic)
    }),
    ("crash-by-index-out-of-bounds", |lab| {
        crash(lab, Misdeed::OutOfBounds, CrashReason::Panic)
    }),
    ("crash-by-division", |lab| {
        crash(lab, Misdeed::DivideByZero, CrashReason::Panic)
    }),
    ("crash-by-stack-overflow", |lab| {
        crash(lab, Misdeed::DeepRecursion, CrashReason::StackOverflow)
    }),
    ("crash-by-stack-overflow-in-kernel-calls", |lab| {
        crash(lab, Misdeed::DeepCalls, CrashReason::StackOverflow)
    }),
    ("crash-by-hang", |lab| {
        crash(lab, Misdeed::Spin, CrashReason::Hang)
    }),
    ("crash-by-hang-in-kernel-calls", |lab| {
        crash(lab, Misdeed::SpinInKernel, CrashReason::Hang)
    }),
    ("crash-by-panic-in-drop", |lab| {
        crash(lab, Misdeed::PanicInDrop, CrashReason::Panic)
    }),
    ("crash-with-a-lock-held", |lab| {
        crash(lab, Misdeed::PanicLocked, CrashReason::Panic)
    }),
    ("crash-with-result-in-memory", result_in_memory),
    ("crash-in-start", in_start),
    ("start-that-fails", failing_start),
    ("start-that-fails-says-why", errors_of_starts),
    ("dead-domain-answers-at-once", dead_answers),
    ("kill-from-outside", kill_outside),
    ("crash-when-asked", crash_when_asked),
    ("crash-below-spares-the-caller", below),
    ("crash-called-back-unwinds-both", called_back),
    ("crash-in-the-middle-waits-for-the-deeper-call", middle),
    ("crash-keeps-borrowed-objects-whole", borrowed),
    ("crash-while-lending-waits-for-the-borrower", lending),
    ("objects-given-away-live-on", given_away),
];

fn crash(lab: &Lab, how: Misdeed, reason: CrashReason) -> Verdict {
    let bystander = lab.start()?;
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let answer = victim.subject.misbehave(how);
        ensure!(
            answer == Err(RpcError::DomainCrashed),
            "the caller got {answer:?}"
        );
        ensure!(victim.is_dead(), "it is still called");
        let why = victim.gone()?;
        ensure!(why == reason, "it ended by {why:?}");
        ensure!(victim.is_dead(), "it is called after it is gone");
        Ok(())
    })?;
    ensure!(
        bystander.subject.add(20, 3) == Ok(23),
        "a bystander was hurt"
    );
    bystander.end()
}

fn result_in_memory(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let answer = victim.subject.many(666, 2, 3, 4, 5, 6, 7, 8);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    victim.gone().map(drop)
}

fn in_start(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| match lab.start_limited(None, 0, 0, b"panic")? {
        Err(StartError::Crashed) => wait_until_cleared(lab),
        other => Err(format!("{:?}", other.map(|victim| victim.id))),
    })
}

fn failing_start(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| match lab.start_limited(None, 0, 0, b"fail")? {
        Err(StartError::Failed(RpcError::Refused)) => wait_until_cleared(lab),
        other => Err(format!("{:?}", other.map(|victim| victim.id))),
    })
}

/// Each error of a start function arrives as what it is.
fn errors_of_starts(lab: &Lab) -> Verdict {
    for error in RpcError::ALL {
        let options = [b'!', error.number()];
        match lab.start_limited(None, 0, 0, &options)? {
            Err(StartError::Failed(arrived)) if arrived == *error => {}
            Err(arrived) => return Err(format!("{error:?} arrives as {arrived:?}")),
            Ok(_) => return Err(format!("it starts with {error:?}")),
        }
    }
    wait_until_cleared(lab)
}

/// Waits until no victim is left.
fn wait_until_cleared(lab: &Lab) -> Verdict {
    wait_for("all victims to be gone", || {
        let mut from = 0;
        loop {
            match lab.monitor.next(from) {
                Ok(Some(info)) if info.name.as_str() == "victim" => return false,
                Ok(Some(info)) => from = info.id + 1,
                _ => return true,
            }
        }
    })
}

fn dead_answers(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    victim.end()?;
    for _ in 0..1000 {
        ensure!(victim.is_dead(), "alive again");
    }
    let object = RRef::new([1; 64]).map_err(say)?;
    ensure!(victim.subject.bump(object).is_err(), "it took an object");
    Ok(())
}

fn kill_outside(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let why = {
        victim.domain.kill().map_err(say)?;
        ensure!(victim.is_dead(), "it is still called");
        victim.gone()?
    };
    ensure!(why == CrashReason::Killed, "{why:?}");
    victim.domain.kill().map_err(say)
}

fn crash_when_asked(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    victim.domain.crash_next_call().map_err(say)?;
    let answer = victim.subject.null();
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    let why = victim.gone()?;
    ensure!(why == CrashReason::Panic, "{why:?}");
    Ok(())
}

fn below(lab: &Lab) -> Verdict {
    let below = lab.start()?;
    let above = lab.start_before(&below)?;
    ensure!(
        above.subject.pass_on(Misdeed::Panic) == Ok(true),
        "the caller did not see an error"
    );
    ensure!(below.is_dead() && !above.is_dead(), "the wrong one died");
    below.gone()?;
    above.end()
}

/// First calls second, second calls first back, and that call crashes first: second gets the error
/// and survives, and its return into the dead first is turned into an error for us.
fn called_back(lab: &Lab) -> Verdict {
    let second = lab.start()?;
    let first = lab.start_before(&second)?;
    second
        .subject
        .follow(Some(first.subject.duplicate().map_err(say)?))
        .map_err(say)?;
    let object = RRef::new([3; 64]).map_err(say)?;
    // first.lend_on -> second.harm_with is plain; for the ring, second must call on: pass_on twice.
    let answer = first.subject.depth(3);
    ensure!(answer == Ok(3), "the ring does not work: {answer:?}");
    let relay = lab.start_before(&first)?;
    second
        .subject
        .follow(Some(relay.subject.duplicate().map_err(say)?))
        .map_err(say)?;
    first.domain.crash_next_call().map_err(say)?;
    let answer = second.subject.depth(3);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    ensure!(
        first.is_dead() && !second.is_dead() && !relay.is_dead(),
        "the wrong one died"
    );
    ensure!(object[0] == 3, "an object changed");
    first.gone()?;
    relay.end()?;
    second.end()
}

/// The thread is in `lower`, called by `upper`, when `upper` is killed: it finishes below, and is
/// unwound when it would return.
fn middle(lab: &Lab) -> Verdict {
    let lower = lab.start()?;
    let upper = lab.start_before(&lower)?;
    let answer = Arc::new(AtomicU32::new(0));
    let subject = upper.subject.duplicate().map_err(say)?;
    let told = answer.clone();
    thread::spawn("caller", move || {
        let crashed = subject.pass_on(Misdeed::Block) == Err(RpcError::DomainCrashed);
        told.store(if crashed { 1 } else { 2 }, Ordering::SeqCst);
    })
    .map_err(say)?;
    wait_for(
        "the call",
        || matches!(lower.domain.info(), Ok(info) if info.calls > 0),
    )?;
    time::sleep(5_000_000);
    upper.domain.kill().map_err(say)?;
    wait_for("the caller", || answer.load(Ordering::SeqCst) != 0)?;
    ensure!(
        answer.load(Ordering::SeqCst) == 1,
        "the caller did not get the error"
    );
    upper.gone()?;
    ensure!(
        lower.subject.add(1, 1) == Ok(2),
        "the lower domain was hurt"
    );
    lower.end()
}

fn borrowed(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let object = RRef::new([42; 64]).map_err(say)?;
    let answer = victim.subject.harm_with(&object, Misdeed::Panic);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    victim.gone()?;
    ensure!(
        object.iter().all(|byte| *byte == 42),
        "the lent object changed"
    );
    Ok(())
}

/// `upper` lends on an object to `lower` and is killed meanwhile; the object is ours and stays.
fn lending(lab: &Lab) -> Verdict {
    let lower = lab.start()?;
    let upper = lab.start_before(&lower)?;
    let done = Arc::new(AtomicU32::new(0));
    let subject = upper.subject.duplicate().map_err(say)?;
    let told = done.clone();
    thread::spawn("lender", move || {
        let Ok(object) = RRef::new([5; 64]) else {
            return;
        };
        let crashed = subject.lend_on(&object, Misdeed::Block).is_err();
        let whole = object.iter().all(|byte| *byte == 5);
        told.store(if crashed && whole { 1 } else { 2 }, Ordering::SeqCst);
    })
    .map_err(say)?;
    wait_for(
        "the call",
        || matches!(lower.domain.info(), Ok(info) if info.calls > 0),
    )?;
    upper.domain.kill().map_err(say)?;
    wait_for("the lender", || done.load(Ordering::SeqCst) != 0)?;
    ensure!(
        done.load(Ordering::SeqCst) == 1,
        "the object is not whole, or there was no error"
    );
    upper.gone()?;
    lower.end()
}

fn given_away(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let number = victim.subject.make(77).map_err(say)?;
    let nest = victim.subject.make_nest(8).map_err(say)?;
    victim.end()?;
    ensure!(*number == 77, "the number changed");
    ensure!(
        *nest.inner == 8 && nest.bytes.iter().all(|byte| *byte == 8),
        "the nest changed: {nest:?}"
    );
    Ok(())
}
