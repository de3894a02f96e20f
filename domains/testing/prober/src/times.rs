//! Processor time: whoever uses it is charged with it, and the sums are right. Nothing here asks
//! how fast anything is: a guest whose host is busy loses time anywhere, but never gains any.

use crate::lab::{Lab, Victim, say, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{CrashReason, DomainSpec, Misdeed, RpcError};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("times-callee-is-charged", |lab| charged(lab, Misdeed::Spin)),
    ("times-callee-is-charged-for-the-kernel", |lab| {
        charged(lab, Misdeed::SpinInKernel)
    }),
    ("times-caller-is-not-charged", caller),
    ("times-blocked-is-not-charged", blocked),
    ("times-own-threads-are-counted", own_threads),
    ("times-sums-are-right", sums),
    ("times-adopted-thread-has-the-limit-of-the-group", adopted),
    ("times-of-a-thread-are-its-payers", payer),
    ("times-weight-is-at-most-the-starters", weights),
    (
        "times-hundred-spinning-threads-leave-a-caller-its-part",
        hundred,
    ),
];

/// What a callee is charged with at the least until it is over a budget of 300 ms: that is 31
/// ticks.
const SPUN: u64 = 200_000_000;

/// What the victim's code has used, also when it is gone.
fn own(victim: &Victim) -> Result<u64, String> {
    Ok(victim.domain.info().map_err(say)?.own_ns)
}

/// What this domain's code has used.
fn mine(lab: &Lab) -> Result<u64, String> {
    let info = lab.info(domain_rt::self_id())?;
    Ok(info.ok_or("this domain is gone")?.own_ns)
}

/// The victim loops until it is over its budget.
fn charged(lab: &Lab, how: Misdeed) -> Verdict {
    let victim = lab.start()?;
    let (before, gone) = (mine(lab)?, lab.monitor.time().map_err(say)?.gone);
    let answer = victim.subject.misbehave(how);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    victim.gone()?;
    let (used, caller) = (own(&victim)?, mine(lab)? - before);
    ensure!(used >= SPUN, "{used} ns were charged");
    ensure!(caller < used / 2, "its caller: {caller} of {used} ns");
    // It counts among those that are gone, and its successor begins anew.
    let gone = lab.monitor.time().map_err(say)?.gone - gone;
    ensure!(gone >= used, "{gone} of {used} ns are kept");
    let next = lab.start()?;
    let used = own(&next)?;
    ensure!(used < SPUN, "the next instance begins with {used} ns");
    next.end()
}

/// Who has another domain work for it is not charged itself.
fn caller(lab: &Lab) -> Verdict {
    let busy = lab.start()?;
    let caller = lab.start_before(&busy)?;
    let failed = caller.subject.pass_on(Misdeed::Spin).map_err(say)?;
    ensure!(failed, "a loop came to its end");
    busy.gone()?;
    let (used, passed) = (own(&busy)?, own(&caller)?);
    ensure!(used >= SPUN, "{used} ns were charged");
    ensure!(passed < used / 2, "its caller: {passed} of {used} ns");
    caller.end()
}

fn blocked(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let start = time::now();
    for part in 1..=10 {
        let until = start + part * 40_000_000;
        let waited = victim.subject.block_until(until).map_err(say)?;
        ensure!(waited, "it was woken");
    }
    let (used, passed) = (own(&victim)?, time::now() - start);
    ensure!(used < passed / 2, "{used} of {passed} ns");
    victim.end()
}

fn own_threads(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        call_budget_ms: 300,
        ..unlimited()
    };
    let victim = lab.start_as(None, spec, b"")?.map_err(say)?;
    let before = mine(lab)?;
    let answer = victim.subject.misbehave(Misdeed::SpinInOwnThread);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    let reason = victim.gone()?;
    ensure!(reason == CrashReason::Hang, "it ended by {reason:?}");
    let (used, caller) = (own(&victim)?, mine(lab)? - before);
    ensure!(used >= SPUN, "{used} ns were charged");
    ensure!(caller < used / 2, "its caller: {caller} of {used} ns");
    // The thread may still be on its way from the domain to its own end.
    wait_for("the thread's own count", || {
        victim
            .domain
            .info()
            .is_ok_and(|info| info.threads_ns >= SPUN)
    })
}

fn sums(lab: &Lab) -> Verdict {
    for _ in 0..20 {
        let victim = lab.start()?;
        // In this order: who ends meanwhile is in neither sum, not in both.
        let first = lab.monitor.time().map_err(say)?;
        let (mut all, mut from) = (first.kernel + first.gone, 0);
        while let Some(info) = lab.monitor.next(from).map_err(say)? {
            (all, from) = (all + info.own_ns, info.id + 1);
        }
        let last = lab.monitor.time().map_err(say)?;
        ensure!(all <= last.busy, "{all} ns charged, {} ns busy", last.busy);
        let older = (first.since_boot, first.busy, first.kernel, first.gone);
        let newer = (last.since_boot, last.busy, last.kernel, last.gone);
        ensure!(
            older.0 <= newer.0 && older.1 <= newer.1 && older.2 <= newer.2 && older.3 <= newer.3,
            "{older:?}, then {newer:?}"
        );
        victim.end()?;
    }
    Ok(())
}

/// Has a thread that loops in the victim, at the expense of the victim's group, until the victim is
/// ended. `done` counts it when the thread was adopted and has left.
fn spin_in(victim: &Arc<Victim>, done: &Arc<AtomicU32>) -> Verdict {
    let (victim, done) = (victim.clone(), done.clone());
    let spin = move || {
        let adopted = victim.domain.adopt_thread();
        let answer = victim.subject.misbehave(Misdeed::Spin);
        let right = adopted.is_ok() && answer == Err(RpcError::DomainCrashed);
        done.fetch_add(u32::from(right), Ordering::SeqCst);
    };
    thread::spawn("spinner", spin).map_err(say)
}

/// 300 ms of processor time in a group that has a fifth of a processor take 1.5 s, however many
/// processors there are.
fn adopted(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        cpu_percent: 20,
        ..unlimited()
    };
    let victim = Arc::new(lab.start_as(None, spec, b"")?.map_err(say)?);
    let (begin, done) = (time::now(), Arc::new(AtomicU32::new(0)));
    spin_in(&victim, &done)?;
    victim.gone()?;
    let took = time::now() - begin;
    wait_for("the thread", || done.load(Ordering::SeqCst) == 1)?;
    // In a Linux process, where nobody watches the machine's memory either, Linux divides the time.
    let is_bare = lab.memory.is_some();
    ensure!(
        !is_bare || took >= 900_000_000,
        "over its budget after {took} ns"
    );
    Ok(())
}

/// A thread that was given to one victim loops in another: the first one's group pays. The other's
/// code is charged, as ever.
fn payer(lab: &Lab) -> Verdict {
    let (payer, busy) = (lab.start()?, Arc::new(lab.start()?));
    let info = |victim: &Victim| victim.domain.info().map_err(say);
    let domain = payer.domain.duplicate().map_err(say)?;
    let (looped, done) = (busy.clone(), Arc::new(AtomicU32::new(0)));
    let told = done.clone();
    let spin = move || {
        let adopted = domain.adopt_thread();
        let answer = looped.subject.misbehave(Misdeed::Spin);
        let right = adopted.is_ok() && answer == Err(RpcError::DomainCrashed);
        told.fetch_add(u32::from(right), Ordering::SeqCst);
    };
    thread::spawn("spinner", spin).map_err(say)?;
    wait_for("the thread", || done.load(Ordering::SeqCst) == 1)?;
    let (paid, spun) = (info(&payer)?.group_ns, info(&busy)?);
    ensure!(spun.own_ns >= SPUN, "{} ns in its code", spun.own_ns);
    ensure!(paid >= SPUN, "its payer: {paid} of {} ns", spun.own_ns);
    ensure!(spun.group_ns < paid / 2, "its group: {} ns", spun.group_ns);
    payer.end()
}

/// A starter gives no more weight than it has.
fn weights(lab: &Lab) -> Verdict {
    let mine = lab.info(domain_rt::self_id())?;
    let mine = mine.ok_or("this domain is gone")?.group_weight;
    let cases = [(0, 1024), (1, 1), (mine, mine)];
    let beyond = [mine + 1, 65_536, u32::MAX].map(|asked| (asked, mine));
    for (weight, expected) in cases.into_iter().chain(beyond) {
        let spec = DomainSpec {
            weight,
            ..unlimited()
        };
        let victim = lab.start_as(None, spec, b"")?.map_err(say)?;
        let got = victim.domain.info().map_err(say)?.group_weight;
        ensure!(got == expected, "asked for {weight}, got {got}");
        victim.end()?;
    }
    Ok(())
}

/// Calls of `victim` in `ns` nanoseconds.
fn calls_in(victim: &Victim, ns: u64) -> Result<u64, String> {
    let (end, mut calls) = (time::now() + ns, 0);
    while time::now() < end {
        victim.subject.add(calls, 1).map_err(say)?;
        calls += 1;
    }
    Ok(calls)
}

/// Half of one processor is a caller's right while a hundred threads of one group spin, and not the
/// hundredth part.
fn hundred(lab: &Lab) -> Verdict {
    const WINDOW: u64 = 300_000_000;
    let (served, spun) = (lab.start()?, Arc::new(lab.start()?));
    let alone = calls_in(&served, WINDOW)?;
    let done = Arc::new(AtomicU32::new(0));
    for _ in 0..100 {
        spin_in(&spun, &done)?;
    }
    let beside = calls_in(&served, WINDOW)?;
    spun.domain.kill().map_err(say)?;
    wait_for("the threads", || done.load(Ordering::SeqCst) == 100)?;
    // As in `adopted`.
    let is_bare = lab.memory.is_some();
    ensure!(
        !is_bare || beside > alone / 20,
        "{beside} calls beside a hundred threads, {alone} alone"
    );
    served.end()
}
