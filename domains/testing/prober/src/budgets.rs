//! Budgets of what others give or lend: shared memory, and calls under way. Whoever is over his
//! budget gets an error, or ends; everybody else goes on.

use crate::lab::{Lab, Victim, say, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{CrashReason, DomainSpec, Handle, Misdeed, Nest, RRef, RVec, RpcError, Subject};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("budgets-shared-memory-is-refused", refused),
    ("budgets-gifts-do-not-count", gifts),
    ("budgets-hoarding-receiver-is-ended", hoarder),
    ("budgets-of-shared-memory-are-apart", apart),
    ("budgets-calls-under-way", calls),
    ("budgets-calls-that-ended-are-given-back", calls_end),
    ("budgets-calls-of-a-dead-caller", dead_caller),
    ("budgets-calls-and-a-crash-on-demand", crash_on_demand),
];

/// Pages of shared memory that the victims may own.
const PAGES: u64 = 64;

fn start(lab: &Lab, next: Option<&Victim>, spec: DomainSpec) -> Result<Victim, String> {
    lab.start_as(next, spec, b"")?.map_err(say)
}

fn poor(lab: &Lab) -> Result<Victim, String> {
    let spec = DomainSpec {
        shared_limit: PAGES,
        ..unlimited()
    };
    start(lab, None, spec)
}

/// Has the victim make and keep nests until it gets no more; how many.
fn fill(victim: &Victim) -> Result<u64, String> {
    for count in 0..100_000 {
        match victim.subject.make_nest(count) {
            Ok(nest) => victim.subject.keep_nest(nest).map_err(say)?,
            Err(RpcError::NoMemory) => return Ok(count),
            Err(error) => return Err(say(error)),
        }
    }
    Err(String::from("it never got enough"))
}

fn refused(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = poor(lab)?;
        let kept = fill(&victim)?;
        // A nest takes five to seven slots of 64 to 256 bytes.
        let (least, most) = (PAGES * 4096 / 2048, PAGES * 4096 / 320);
        ensure!((least..=most).contains(&kept), "{kept} nests were kept");
        ensure!(victim.subject.add(1, 1) == Ok(2), "it ended of it");
        victim.end()
    })
}

/// What is given away is no longer the giver's: he can go on making things for ever.
fn gifts(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = poor(lab)?;
        for value in 0..5_000 {
            victim.subject.make_nest(value).map_err(say)?;
        }
        victim.end()
    })
}

fn hoarder(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = poor(lab)?;
        let send = || {
            let bytes = RVec::from_slice(&[7; 30_000])?;
            let (inner, more) = (RRef::new(0)?, [const { None }; 4]);
            let nest = RRef::new(Nest { inner, more, bytes })?;
            victim.subject.keep_nest(nest)
        };
        let sent = (0..2_000).find_map(|_| send().err());
        // Whoever counts may be late, if there is a processor for him only now and then.
        ensure!(
            matches!(sent, None | Some(RpcError::DomainCrashed)),
            "{sent:?}"
        );
        let reason = victim.gone()?;
        ensure!(reason == CrashReason::OverBudget, "it ended by {reason:?}");
        Ok(())
    })
}

fn apart(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (one, two) = (poor(lab)?, poor(lab)?);
        let first = fill(&one)?;
        let second = fill(&two)?;
        ensure!(
            first.abs_diff(second) <= first / 4,
            "{first} nests, then {second}"
        );
        one.end()?;
        two.end()
    })
}

fn few_calls(lab: &Lab, next: Option<&Victim>) -> Result<Victim, String> {
    let spec = DomainSpec {
        call_limit: 2,
        ..unlimited()
    };
    start(lab, next, spec)
}

/// Starts a thread that makes `call` and counts it in the result when it has ended.
fn in_thread<R>(
    victim: &Victim,
    call: impl FnOnce(Handle<dyn Subject>) -> R + Send + 'static,
) -> Result<Arc<AtomicU32>, String> {
    let ended = Arc::new(AtomicU32::new(0));
    let (subject, count) = (victim.subject.duplicate().map_err(say)?, ended.clone());
    thread::spawn("caller", move || {
        let _ = call(subject);
        count.fetch_add(1, Ordering::SeqCst);
    })
    .map_err(say)?;
    Ok(ended)
}

fn is_busy(victim: &Victim) -> bool {
    victim.subject.null() == Err(RpcError::Busy)
}

fn calls(lab: &Lab) -> Verdict {
    let victim = few_calls(lab, None)?;
    // The test's own look at the budget may take the place.
    let block = |subject: Handle<dyn Subject>| {
        while subject.misbehave(Misdeed::Block) == Err(RpcError::Busy) {}
    };
    let callers = [in_thread(&victim, block)?, in_thread(&victim, block)?];
    wait_for("the budget to be used up", || is_busy(&victim))?;
    let object = RRef::new([1; 64]).map_err(say)?;
    let bumped = victim.subject.bump(object).map(|object| object[0]);
    ensure!(bumped == Err(RpcError::Busy), "a third call: {bumped:?}");
    victim.end()?;
    for caller in callers {
        wait_for("the callers", || caller.load(Ordering::SeqCst) == 1)?;
    }
    ensure!(victim.is_dead(), "a call after the end");
    Ok(())
}

fn calls_end(lab: &Lab) -> Verdict {
    let victim = few_calls(lab, None)?;
    for _ in 0..3 {
        let until = time::now() + 50_000_000;
        let wait = move |subject: Handle<dyn Subject>| subject.block_until(until);
        let callers = [in_thread(&victim, wait)?, in_thread(&victim, wait)?];
        for caller in callers {
            wait_for("the callers", || caller.load(Ordering::SeqCst) == 1)?;
        }
        for value in 0..100 {
            let sum = victim.subject.add(value, 1);
            ensure!(sum == Ok(value + 1), "with nobody inside: {sum:?}");
        }
    }
    victim.end()
}

/// A call whose caller dies does not count for ever.
fn dead_caller(lab: &Lab) -> Verdict {
    let busy = few_calls(lab, None)?;
    for _ in 0..3 {
        let caller = lab.start_before(&busy)?;
        // It gives an error when the test's own look at the budget has taken the place.
        let pass =
            |subject: Handle<dyn Subject>| while subject.pass_on(Misdeed::Block) == Ok(true) {};
        let threads = [in_thread(&caller, pass)?, in_thread(&caller, pass)?];
        wait_for("the budget to be used up", || is_busy(&busy))?;
        caller.end()?;
        for thread in threads {
            wait_for("the threads", || thread.load(Ordering::SeqCst) == 1)?;
        }
        let sum = busy.subject.add(1, 1);
        ensure!(sum == Ok(2), "after the callers' end: {sum:?}");
    }
    busy.end()
}

fn crash_on_demand(lab: &Lab) -> Verdict {
    let victim = few_calls(lab, None)?;
    victim.subject.null().map_err(say)?;
    victim.domain.crash_next_call().map_err(say)?;
    let answer = victim.subject.null();
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    let reason = victim.gone()?;
    ensure!(reason == CrashReason::Panic, "it ended by {reason:?}");
    Ok(())
}
