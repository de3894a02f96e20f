//! Calls from 1, 2, 4 and 8 threads at once.
//!
//! Each thread has a handle of its own, or all use one. Nothing that a call writes is shared
//! between threads, so both should grow with the processors. With 1, 2 and 4 threads also calls
//! that allocate: an object on the shared heap that the caller frees, one on the callee's private
//! heap that it frees, and one there behind a new handle, which is dropped. Their heaps' locks are
//! shared.

use super::{prepare, say, start, tell};
use abi::Handle;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use interfaces::Subject;
use isolation::Reason;
use isolation::death::kill::kill;
use isolation::platform::{Attributes, platform};

/// Threads that call at once.
const THREADS: [u32; 4] = [1, 2, 4, 8];
const MOST_THAT_ALLOCATE: u32 = 4;
/// Rounds of each figure, and their length in nanoseconds.
const ROUNDS: usize = 20;
const ROUND: u64 = 20_000_000;
/// Calls between two looks at whether the round is over.
const STRIDE: u64 = 1000;

/// What is asked again and again; whether it went well.
type Ask = fn(&dyn Subject) -> bool;

fn null(subject: &dyn Subject) -> bool {
    black_box(subject.null()).is_ok()
}

fn make(subject: &dyn Subject) -> bool {
    black_box(subject.make(7)).is_ok()
}

fn scratch(subject: &dyn Subject) -> bool {
    black_box(subject.scratch()).is_ok()
}

fn offspring(subject: &dyn Subject) -> bool {
    black_box(subject.offspring()).is_ok()
}

/// One round: who takes part, and what came of it.
struct Round {
    ask: Ask,
    subjects: Vec<Arc<Handle<dyn Subject>>>,
    /// Threads that have taken their place.
    places: AtomicU32,
    /// 1 while calls are made, 2 afterwards.
    phase: AtomicU32,
    calls: AtomicU64,
    failed: AtomicU32,
    /// Threads that are done.
    done: AtomicU32,
}

/// All numbers of threads.
pub fn scaling() -> Result<(), String> {
    let (victim, subject) = start(&prepare("domains/victim")?, None)?;
    let subject = Arc::new(subject);
    for count in THREADS {
        let own = (0..count).map(|_| subject.duplicate().map(Arc::new));
        let own: Vec<_> = own.collect::<Result<_, _>>().map_err(say)?;
        let shared = (0..count).map(|_| subject.clone()).collect();
        rates(
            &format!("S{count}"),
            &format!("null calls from {count} threads, a handle each"),
            null,
            own.clone(),
        )?;
        rates(
            &format!("H{count}"),
            &format!("null calls from {count} threads, one handle"),
            null,
            shared,
        )?;
        if count > MOST_THAT_ALLOCATE {
            continue;
        }
        rates(
            &format!("A{count}"),
            &format!("shared objects made and freed by {count} threads"),
            make,
            own.clone(),
        )?;
        rates(
            &format!("M{count}"),
            &format!("private objects made and freed by {count} threads"),
            scratch,
            own.clone(),
        )?;
        rates(
            &format!("O{count}"),
            &format!("objects behind handles made and dropped by {count} threads"),
            offspring,
            own,
        )?;
    }
    kill(&victim.block, Reason::Exited);
    Ok(())
}

fn rates(
    id: &str,
    name: &str,
    ask: Ask,
    subjects: Vec<Arc<Handle<dyn Subject>>>,
) -> Result<(), String> {
    let mut rates = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        rates.push(rate(ask, subjects.clone())?);
    }
    tell(id, name, "calls/us", &rates, 1000);
    Ok(())
}

/// Calls in a millisecond, by as many threads as there are subjects.
fn rate(ask: Ask, subjects: Vec<Arc<Handle<dyn Subject>>>) -> Result<u64, String> {
    let count = subjects.len() as u32;
    let round = Arc::new(Round {
        ask,
        subjects,
        places: AtomicU32::new(0),
        phase: AtomicU32::new(0),
        calls: AtomicU64::new(0),
        failed: AtomicU32::new(0),
        done: AtomicU32::new(0),
    });
    for _ in 0..count {
        let share = Arc::into_raw(round.clone()) as usize;
        if platform()
            .spawn("caller", caller, share, &Attributes::KERNEL)
            .is_none()
        {
            // SAFETY: nobody took the share.
            drop(unsafe { Arc::from_raw(share as *const Round) });
            return Err("no memory for a thread".into());
        }
    }
    while round.places.load(Ordering::Acquire) < count {
        platform().yield_now();
    }
    let begin = platform().now();
    round.set(1);
    let never = AtomicU32::new(0);
    platform().wait(&never, 0, Some(begin + ROUND));
    round.set(2);
    let took = platform().now() - begin;
    loop {
        match round.done.load(Ordering::Acquire) {
            done if done == count => break,
            done => platform().wait(&round.done, done, None),
        };
    }
    match round.failed.load(Ordering::Relaxed) {
        0 => Ok(round.calls.load(Ordering::Relaxed) * 1_000_000 / took),
        failed => Err(format!("{failed} threads had failed calls")),
    }
}

impl Round {
    fn set(&self, phase: u32) {
        self.phase.store(phase, Ordering::Release);
        platform().wake(&self.phase, u32::MAX);
    }

    fn take_part(&self) {
        let place = self.places.fetch_add(1, Ordering::AcqRel) as usize;
        let subject: &dyn Subject = &**self.subjects[place];
        while self.phase.load(Ordering::Acquire) == 0 {
            platform().wait(&self.phase, 0, None);
        }
        let mut calls = 0;
        while self.phase.load(Ordering::Relaxed) == 1 {
            let good = (0..STRIDE).all(|_| (self.ask)(subject));
            if !good {
                self.failed.fetch_add(1, Ordering::Relaxed);
                break;
            }
            calls += STRIDE;
        }
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Release);
        platform().wake(&self.done, 1);
    }
}

/// The first function of a calling thread.
extern "C" fn caller(share: usize) {
    // SAFETY: `rate` gave this thread a share of the round.
    let round = unsafe { Arc::from_raw(share as *const Round) };
    isolation::call::thread::with_root(|| round.take_part());
}
