//! Locks of the runtime, from threads that use them at once.

use crate::lab::{Lab, say, settle, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{CrashReason, DomainSpec, Misdeed};

/// The tests of this file.
pub const TESTS: &[Test] = &[("locks-of-a-heap-are-no-wait-in-a-drop", drops_at_the_heap)];

const THREADS: u32 = 4;

/// Runs `body` on some threads, and waits for them.
fn on_threads(lab: &Lab, body: impl Fn() + Send + Sync + 'static) -> Verdict {
    let (body, left) = (Arc::new(body), Arc::new(AtomicU32::new(THREADS)));
    for _ in 0..THREADS {
        let (body, left) = (body.clone(), left.clone());
        thread::spawn("user", move || {
            body();
            left.fetch_sub(1, Ordering::SeqCst);
        })
        .map_err(say)?;
    }
    wait_for("the threads", || left.load(Ordering::SeqCst) == 0)?;
    settle(lab)
}

/// Threads make and drop objects of one domain, and meet at its heap. Its drops are still such as
/// do not wait, and run on the thread of who drops: the next one, which does wait, ends it. A
/// helper would let it wait.
fn drops_at_the_heap(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        call_budget_ms: 200,
        ..unlimited()
    };
    let victim = lab.start_as(None, spec, b"")?;
    let victim = victim.map_err(|error| format!("no start: {error:?}"))?;
    let subject = victim.subject.duplicate().map_err(say)?;
    let (failed, end) = (Arc::new(AtomicU32::new(0)), time::now() + 500_000_000);
    let fails = failed.clone();
    on_threads(lab, move || {
        while time::now() < end {
            let failed = subject.offspring().is_err();
            fails.fetch_add(failed.into(), Ordering::Relaxed);
        }
    })?;
    let failed = failed.load(Ordering::Relaxed);
    ensure!(failed == 0, "{failed} calls failed");
    let child = victim.subject.offspring().map_err(say)?;
    let answer = victim.subject.misbehave(Misdeed::BlockInDrops);
    ensure!(answer == Ok(0), "{answer:?}");
    drop(child);
    wait_for("its end", || victim.has_died() == Ok(true))?;
    let why = victim.gone()?;
    ensure!(why == CrashReason::Hang, "it ended by {why:?}");
    Ok(())
}
