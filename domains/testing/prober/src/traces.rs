//! A domain dies behind two others. Whether the log tells its stack rightly is judged by the host
//! (`lab/campaigns/src/backtraces.rs`), which knows functions and lines: here they only die.

use crate::lab::{Lab, Victim, say, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use domain_rt::sync::Mutex;
use domain_rt::thread;
use interfaces::{CrashReason, DomainSpec, Handle, Misdeed, RVec, RpcError, Subject};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("backtrace-of-a-panic", |lab| {
        crash(lab, Misdeed::Panic, CrashReason::Panic)
    }),
    ("backtrace-of-an-index-out-of-bounds", |lab| {
        crash(lab, Misdeed::OutOfBounds, CrashReason::Panic)
    }),
    ("backtrace-of-a-stack-overflow", |lab| {
        crash(lab, Misdeed::DeepRecursion, CrashReason::StackOverflow)
    }),
    ("backtrace-of-want-of-memory", |lab| {
        crash(lab, Misdeed::HoardBlindly, CrashReason::Panic)
    }),
    ("backtrace-of-a-hang", |lab| {
        crash(lab, Misdeed::Spin, CrashReason::Hang)
    }),
    ("backtrace-of-who-is-ended-at-work", |lab| {
        end(lab, Misdeed::Spin)
    }),
    ("backtrace-of-who-is-ended-while-it-waits", |lab| {
        end(lab, Misdeed::Block)
    }),
];

/// A victim behind two domains that forward calls.
struct Chain {
    front: Victim,
    middle: Victim,
    victim: Victim,
}

impl Chain {
    /// With a budget for calls into the victim, in milliseconds; 0: the usual one.
    fn new(lab: &Lab, budget: u32) -> Result<Self, String> {
        let spec = DomainSpec {
            page_limit: 300,
            call_budget_ms: budget,
            ..unlimited()
        };
        let victim = lab.start_as(None, spec, b"")?;
        let victim = victim.map_err(|error| format!("no start: {error:?}"))?;
        let middle = forwarder(lab, &victim)?;
        let front = forwarder(lab, &middle)?;
        Ok(Chain {
            front,
            middle,
            victim,
        })
    }

    fn end(&self) -> Verdict {
        self.front.end()?;
        self.middle.end()
    }
}

pub fn forwarder(lab: &Lab, next: &Victim) -> Result<Victim, String> {
    let mut grants = [const { None }; 16];
    grants[0] = Some(next.subject.duplicate().map_err(say)?.into_any());
    let spec = DomainSpec {
        name: interfaces::Text::new("forwarder"),
        ..unlimited()
    };
    let options = RVec::from_slice(&[]).map_err(say)?;
    let image = lab.image("domains/forwarder")?;
    let mut started = image.start(spec, grants, options).map_err(say)?;
    let subject = started.offers[0].take().ok_or("nothing is offered")?;
    Ok(Victim {
        subject: subject.downcast().map_err(|_| "not a subject")?,
        id: started.control.info().map_err(say)?.id,
        domain: started.control,
    })
}

fn crash(lab: &Lab, how: Misdeed, reason: CrashReason) -> Verdict {
    let chain = Chain::new(lab, 200)?;
    let answer = ask(&chain.front.subject, how);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    let why = chain.victim.gone()?;
    ensure!(why == reason, "it ended by {why:?}");
    chain.end()
}

#[inline(never)]
fn ask(front: &Handle<dyn Subject>, how: Misdeed) -> Result<u64, RpcError> {
    let answer = front.misbehave(how);
    core::hint::black_box(answer)
}

/// Ends the victim while a thread is inside, at work or waiting.
fn end(lab: &Lab, how: Misdeed) -> Verdict {
    // It is not to be ended for taking long.
    let chain = Chain::new(lab, 60_000)?;
    let front = chain.front.subject.duplicate().map_err(say)?;
    let answer = Arc::new(Mutex::new(None));
    let told = answer.clone();
    let call = move || *told.lock() = Some(ask(&front, how));
    thread::spawn("caller", call).map_err(say)?;
    let inside = wait_for("a thread to be inside", || is_inside(lab, &chain.victim));
    inside.map_err(|error| {
        let state = lab.info(chain.victim.id).map(|it| it.map(|it| it.calls));
        format!(
            "{error}; the caller: {:?}, calls: {state:?}",
            *answer.lock()
        )
    })?;
    chain.victim.end()?;
    chain.end()
}

/// Whether the victim has been called.
fn is_inside(lab: &Lab, victim: &Victim) -> bool {
    matches!(lab.info(victim.id), Ok(Some(info)) if info.calls > 0)
}
