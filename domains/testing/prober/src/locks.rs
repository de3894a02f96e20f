//! Locks and stores of the runtime, from threads that use them at once.

use crate::lab::{Lab, say, settle, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use domain_rt::processors::PerProcessor;
use domain_rt::sync::Mutex;
use domain_rt::{thread, time};
use interfaces::{CrashReason, DomainSpec, Misdeed};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("locks-of-a-heap-are-no-wait-in-a-drop", drops_at_the_heap),
    ("locks-a-store-for-each-processor", stores),
];

const THREADS: u32 = 4;

/// Runs `body` on some threads, and waits for them.
fn on_threads(lab: &Lab, body: impl Fn(u32) + Send + Sync + 'static) -> Verdict {
    let (body, left) = (Arc::new(body), Arc::new(AtomicU32::new(THREADS)));
    for number in 0..THREADS {
        let (body, left) = (body.clone(), left.clone());
        thread::spawn("user", move || {
            body(number);
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
    on_threads(lab, move |_| {
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

/// Threads count in the parts of their processors, and make and drop many small objects, some of
/// which others drop: no count and no byte is lost, and no two objects are one.
fn stores(lab: &Lab) -> Verdict {
    const TURNS: u64 = 3000;
    let counts = Arc::new(PerProcessor::new(|| AtomicU64::new(0)));
    let shared: Arc<Mutex<Vec<Box<[u64; 4]>>>> = Arc::default();
    let (own, bad) = (counts.clone(), Arc::new(AtomicU64::new(0)));
    let wrong = bad.clone();
    on_threads(lab, move |number| {
        for turn in 0..TURNS {
            own.mine().fetch_add(1, Ordering::Relaxed);
            let mark = u64::from(number) << 32 | turn;
            let made: Vec<_> = (0..8).map(|_| Box::new([mark; 4])).collect();
            let same = made.iter().all(|it| **it == [mark; 4]);
            wrong.fetch_add(u64::from(!same), Ordering::SeqCst);
            let mut others = shared.lock();
            let old = core::mem::replace(&mut *others, made);
            drop(others);
            let whole = old.iter().all(|it| it.iter().all(|word| *word == it[0]));
            wrong.fetch_add(u64::from(!whole), Ordering::SeqCst);
        }
    })?;
    let sum: u64 = counts.all().map(|part| part.load(Ordering::Relaxed)).sum();
    ensure!(sum == u64::from(THREADS) * TURNS, "{sum} counts");
    let bad = bad.load(Ordering::SeqCst);
    ensure!(bad == 0, "{bad} objects were somebody else's, too");
    Ok(())
}
