//! Locks and stores of the runtime, from threads that use them at once.

use crate::lab::{Lab, Victim, say, settle, unlimited, wait_for};
use crate::traces::forwarder;
use crate::{Test, Verdict, ensure};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use domain_rt::processors::PerProcessor;
use domain_rt::sync::{Mutex, RwLock};
use domain_rt::{thread, time};
use interfaces::{CrashReason, DomainSpec, Misdeed, RpcError, RpcResult};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("locks-of-a-heap-are-no-wait-in-a-drop", drops_at_the_heap),
    ("locks-a-store-for-each-processor", stores),
    ("locks-readers-and-writers", readers_and_writers),
    (
        "locks-held-for-reading-in-a-call-that-fails",
        held_in_a_call,
    ),
    ("locks-a-writer-is-ended-while-it-waits", ended_writer),
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

/// Two threads write two numbers that are always the same, two read them without a break: no reader
/// sees them differ, no write is lost, and writers come to their turn.
fn readers_and_writers(lab: &Lab) -> Verdict {
    const WRITES: u64 = 300;
    let lock = Arc::new(RwLock::new((0_u64, 0_u64)));
    let (differ, writers) = (Arc::new(AtomicBool::new(false)), AtomicU32::new(2));
    let (own, seen) = (lock.clone(), differ.clone());
    on_threads(lab, move |number| {
        if number < 2 {
            for _ in 0..WRITES {
                let mut pair = own.write();
                pair.0 += 1;
                thread::yield_now();
                pair.1 += 1;
            }
            writers.fetch_sub(1, Ordering::SeqCst);
        }
        while writers.load(Ordering::SeqCst) > 0 {
            let pair = own.read();
            let before = pair.0;
            thread::yield_now();
            if (before, before) != *pair {
                seen.store(true, Ordering::SeqCst);
            }
        }
    })?;
    ensure!(!differ.load(Ordering::SeqCst), "a reader saw half a write");
    let pair = *lock.read();
    ensure!(pair == (2 * WRITES, 2 * WRITES), "{pair:?}");
    Ok(())
}

/// A thread reads under the lock while it calls a domain that is ended: its call fails, it lets go,
/// and who waits to write goes on.
fn held_in_a_call(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let lock = Arc::new(RwLock::new(0_u64));
    let (answer, own) = (Arc::new(RwLock::new(None)), lock.clone());
    let (place, subject) = (answer.clone(), victim.subject.duplicate().map_err(say)?);
    let reads = Arc::new(AtomicBool::new(false));
    let begun = reads.clone();
    thread::spawn("reader", move || {
        let value = own.read();
        begun.store(true, Ordering::SeqCst);
        let got = subject.block_until(u64::MAX / 2);
        *place.write() = Some(got.map(|_| *value));
    })
    .map_err(say)?;
    wait_for("the reader", || reads.load(Ordering::SeqCst))?;
    let (own, written) = (lock.clone(), Arc::new(AtomicBool::new(false)));
    let done = written.clone();
    thread::spawn("writer", move || {
        *own.write() += 1;
        done.store(true, Ordering::SeqCst);
    })
    .map_err(say)?;
    time::sleep(20_000_000);
    ensure!(!written.load(Ordering::SeqCst), "it wrote beside a reader");
    victim.end()?;
    wait_for("the writer", || written.load(Ordering::SeqCst))?;
    settle(lab)?;
    let answer = answer.read();
    ensure!(
        *answer == Some(Err(RpcError::DomainCrashed)),
        "{:?}",
        *answer
    );
    ensure!(*lock.read() == 1, "the write is lost");
    Ok(())
}

/// A thread waits to write in one domain while another on its way is ended: it has its turn, its
/// caller gets the error, and the lock is as good as before. Then the domain with the lock is ended
/// in such a wait.
fn ended_writer(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let keeper = lab.start()?;
        let middle = forwarder(lab, &keeper)?;
        let waits = |victim: &Victim| {
            let answer = Arc::new(Mutex::new(None));
            let (place, subject) = (answer.clone(), victim.subject.duplicate().map_err(say)?);
            let body = move || *place.lock() = Some(subject.misbehave(Misdeed::WriteBesideReader));
            thread::spawn("writer", body).map_err(say)?;
            // Of the 200 ms in which somebody reads.
            time::sleep(50_000_000);
            Ok::<_, String>(answer)
        };
        let is_told = |answer: &Mutex<Option<RpcResult<u64>>>| {
            wait_for("the writer", || answer.lock().is_some())?;
            let answer = *answer.lock();
            let is_right = answer == Some(Err(RpcError::DomainCrashed));
            ensure!(is_right, "{answer:?}");
            Ok::<(), String>(())
        };
        let answer = waits(&middle)?;
        middle.end()?;
        is_told(&answer)?;
        let again = keeper.subject.misbehave(Misdeed::WriteBesideReader);
        ensure!(again == Ok(2), "{again:?} of two writes");
        let answer = waits(&keeper)?;
        keeper.end()?;
        is_told(&answer)?;
        settle(lab)
    })
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
