//! Threads: all of them leave a dead domain, wherever they are, and each by itself.

use crate::lab::{Lab, Victim, say, settle, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::sync::Mutex;
use domain_rt::{thread, time};
use interfaces::{CrashReason, DomainSpec, Handle, Misdeed, RpcError, Subject};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("threads-blocked-inside-leave", |lab| {
        leave(lab, Misdeed::Block)
    }),
    ("threads-spinning-inside-leave", |lab| {
        leave(lab, Misdeed::Spin)
    }),
    ("threads-spinning-in-the-kernel-leave", |lab| {
        leave(lab, Misdeed::SpinInKernel)
    }),
    ("threads-of-the-domain-end-with-it", own_threads),
    ("threads-budget", budget),
    ("threads-eight-panic-at-once", eight_panics),
    ("threads-unwind-apart", apart),
    (
        "threads-waiting-for-a-lock-leave-with-their-caller",
        lock_waiter,
    ),
    ("threads-eight-call-while-it-dies", eight_callers),
    ("time-blocked-is-not-counted", blocked_time),
    ("time-of-own-threads-is-bounded", own_time),
];

/// A caller waits for a lock whose holder, a thread of the domain's own, loops: the domain's limit
/// ends it.
fn own_time(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let spec = DomainSpec {
            call_budget_ms: 100,
            ..unlimited()
        };
        let victim = lab.start_as(None, spec, b"")?.map_err(say)?;
        let answer = victim.subject.misbehave(Misdeed::SpinInOwnThread);
        ensure!(
            answer == Err(RpcError::DomainCrashed),
            "the caller got {answer:?}"
        );
        let reason = victim.gone()?;
        ensure!(reason == CrashReason::Hang, "it ended by {reason:?}");
        settle(lab)
    })
}

/// Instances that eight threads use up, calls between two looks for a newer one, and nanoseconds of
/// rest then, so that one processor is enough for all.
const LIVES: u32 = 6;
const STRIDE: u64 = 50;
const REST: u64 = 500_000;

/// What eight callers share.
struct Callers {
    /// The instance that serves now.
    subject: Mutex<Arc<Handle<dyn Subject>>>,
    stop: AtomicU32,
    right: AtomicU32,
    crashed: AtomicU32,
    wrong: AtomicU32,
    done: AtomicU32,
}

/// Eight threads call a domain that is ended and started again all the time: each call gives the
/// right result or says that the domain crashed, and nothing is lost.
fn eight_callers(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let mut victim = lab.start()?;
        let serve = |victim: &Victim| victim.subject.duplicate().map(Arc::new).map_err(say);
        let callers = Arc::new(Callers {
            subject: Mutex::new(serve(&victim)?),
            stop: AtomicU32::new(0),
            right: AtomicU32::new(0),
            crashed: AtomicU32::new(0),
            wrong: AtomicU32::new(0),
            done: AtomicU32::new(0),
        });
        for _ in 0..8 {
            let callers = callers.clone();
            thread::spawn("caller", move || callers.call()).map_err(say)?;
        }
        for _ in 0..LIVES {
            let before = callers.right.load(Ordering::SeqCst);
            wait_for("calls", || {
                callers.right.load(Ordering::SeqCst) > before + 8
            })?;
            let crashed = callers.crashed.load(Ordering::SeqCst);
            victim.domain.kill().map_err(say)?;
            wait_for("somebody to notice", || {
                callers.crashed.load(Ordering::SeqCst) > crashed
            })?;
            let next = lab.start()?;
            let old = core::mem::replace(&mut *callers.subject.lock(), serve(&next)?);
            drop(old);
            core::mem::replace(&mut victim, next).gone()?;
        }
        callers.stop.store(1, Ordering::SeqCst);
        wait_for("all callers", || callers.done.load(Ordering::SeqCst) == 8)?;
        let wrong = callers.wrong.load(Ordering::SeqCst);
        ensure!(wrong == 0, "{wrong} calls gave something else");
        drop(callers);
        victim.end()?;
        settle(lab)
    })
}

impl Callers {
    fn call(&self) {
        let mut number = 0;
        while self.stop.load(Ordering::SeqCst) == 0 {
            let subject = self.subject.lock().clone();
            for _ in 0..STRIDE {
                number += 1;
                let count = match subject.add(number, 7) {
                    Ok(sum) if sum == number + 7 => &self.right,
                    Err(RpcError::DomainCrashed) => &self.crashed,
                    _ => &self.wrong,
                };
                count.fetch_add(1, Ordering::SeqCst);
            }
            drop(subject);
            time::sleep(REST);
        }
        self.done.fetch_add(1, Ordering::SeqCst);
    }
}

/// Eight callers are inside when the domain is killed; each gets the error.
fn leave(lab: &Lab, how: Misdeed) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let left = call_from(&victim, 8, how)?;
        time::sleep(20_000_000);
        victim.domain.kill().map_err(say)?;
        wait_for("all callers to leave", || left.load(Ordering::SeqCst) == 8)?;
        victim.gone()?;
        settle(lab)
    })
}

/// Calls `misbehave` from `count` threads; the counter of those that got the error.
fn call_from(
    victim: &Victim,
    count: u32,
    how: Misdeed,
) -> Result<Arc<AtomicU32>, alloc::string::String> {
    let left = Arc::new(AtomicU32::new(0));
    for _ in 0..count {
        let subject = victim.subject.duplicate().map_err(say)?;
        let left = left.clone();
        thread::spawn("caller", move || {
            if subject.misbehave(how) == Err(RpcError::DomainCrashed) {
                left.fetch_add(1, Ordering::SeqCst);
            }
        })
        .map_err(say)?;
    }
    Ok(left)
}

fn own_threads(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        victim.subject.threads(20).map_err(say)?;
        let threads = lab.info(victim.id)?.map_or(0, |info| info.threads);
        ensure!(threads == 20, "{threads} threads");
        victim.end()?;
        time::sleep(2_000_000);
        Ok(())
    })
}

fn budget(lab: &Lab) -> Verdict {
    let started = lab.start_limited(None, 0, 5, b"")?;
    let victim = started.map_err(say)?;
    let bombs = victim.subject.misbehave(Misdeed::HoardThreads);
    ensure!(bombs == Ok(5), "{bombs:?} threads");
    victim.end()
}

fn eight_panics(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let left = call_from(&victim, 8, Misdeed::Panic)?;
        wait_for("all callers", || left.load(Ordering::SeqCst) == 8)?;
        victim.gone()?;
        settle(lab)
    })
}

/// Two threads in two domains; the death of one unwinds one of them only.
fn apart(lab: &Lab) -> Verdict {
    let (one, two) = (lab.start()?, lab.start()?);
    let left_one = call_from(&one, 1, Misdeed::Block)?;
    let left_two = call_from(&two, 1, Misdeed::Block)?;
    time::sleep(5_000_000);
    one.end()?;
    wait_for("the first caller", || left_one.load(Ordering::SeqCst) == 1)?;
    ensure!(
        left_two.load(Ordering::SeqCst) == 0,
        "the other thread left, too"
    );
    two.end()?;
    wait_for("the second caller", || left_two.load(Ordering::SeqCst) == 1)?;
    settle(lab)
}

/// Where a lock is held for long, who waits for it leaves with the domain that called, although the
/// lock is never free.
fn lock_waiter(lab: &Lab) -> Verdict {
    let holder = lab.start()?;
    let caller = lab.start_before(&holder)?;
    let left = Arc::new(AtomicU32::new(0));
    let (subject, counter) = (caller.subject.duplicate().map_err(say)?, left.clone());
    thread::spawn("caller", move || {
        if subject.pass_on(Misdeed::WaitForHeldLock) == Err(RpcError::DomainCrashed) {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    })
    .map_err(say)?;
    time::sleep(5_000_000);
    caller.domain.kill().map_err(say)?;
    wait_for("the thread that waits", || left.load(Ordering::SeqCst) == 1)?;
    caller.gone()?;
    ensure!(!holder.has_died()?, "the domain with the lock died");
    holder.end()?;
    settle(lab)
}

fn blocked_time(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    // `misbehave` has a budget of 300 ms; `block_until` has none, but time blocked counts nowhere.
    let answer = victim.subject.block_until(time::now() + 400_000_000);
    ensure!(answer == Ok(true), "{answer:?}");
    victim.end()
}
