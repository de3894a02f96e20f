//! Threads that are promised processor time.

use crate::Shared;
use alloc::sync::Arc;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use domain_rt::{thread, time};
use interfaces::RpcResult;

/// The threads that [`start`] made.
#[derive(Default)]
pub struct Deadlines {
    /// They are to end.
    over: AtomicBool,
    alive: AtomicU32,
    /// How far one comes in a fifth of a runtime; 0: nobody has counted yet.
    work: AtomicU64,
}

impl Deadlines {
    /// Ends them.
    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        while self.alive.load(Ordering::SeqCst) != 0 {
            time::sleep(200_000);
        }
        self.over.store(false, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

/// Starts `count` threads with this runtime and period, or as many as are not refused; how many
/// there are now.
pub fn start(shared: &Arc<Shared>, count: u32, promise: (u64, u64), busy: bool) -> u32 {
    for _ in 0..count {
        let own = shared.clone();
        own.deadlines.alive.fetch_add(1, Ordering::SeqCst);
        let body = move || {
            while !own.deadlines.is_over() {
                if busy {
                    black_box(compute(1_000));
                } else {
                    time::sleep(200_000);
                }
            }
            own.deadlines.alive.fetch_sub(1, Ordering::SeqCst);
        };
        if thread::spawn_with_deadline("promised", promise.0, promise.1, body).is_err() {
            shared.deadlines.alive.fetch_sub(1, Ordering::SeqCst);
            break;
        }
    }
    shared.deadlines.alive.load(Ordering::SeqCst)
}

/// What [`keep_time`] is to do.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Threads that loop beside it.
    pub spinners: u32,
    /// Whether the thread has a deadline.
    pub deadline: bool,
    /// Nanoseconds of each period that it is promised; its work takes a fifth of them.
    pub runtime: u64,
    /// Nanoseconds.
    pub period: u64,
    /// How many.
    pub periods: u32,
}

/// In how many periods a thread does its work.
pub fn keep_time(shared: &Arc<Shared>, plan: Plan) -> RpcResult<u32> {
    let known = &shared.deadlines.work;
    if known.load(Ordering::SeqCst) == 0 {
        known.store(measured(plan.runtime / 5), Ordering::SeqCst);
    }
    let work = known.load(Ordering::SeqCst);
    let stop = Arc::new(AtomicBool::new(false));
    let spun = spin(&stop, plan.spinners);
    let (kept, done) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let (told, ended) = (kept.clone(), done.clone());
    let body = move || {
        told.store(count_kept(plan, work), Ordering::SeqCst);
        ended.store(true, Ordering::SeqCst);
    };
    let started = spun.and_then(|()| match plan.deadline {
        true => thread::spawn_with_deadline("punctual", plan.runtime, plan.period, body),
        false => thread::spawn_numbered("punctual", body),
    });
    while started.is_ok() && !done.load(Ordering::SeqCst) {
        time::sleep(1_000_000);
    }
    stop.store(true, Ordering::SeqCst);
    started.map(|_| kept.load(Ordering::SeqCst))
}

fn spin(stop: &Arc<AtomicBool>, count: u32) -> RpcResult<()> {
    for _ in 0..count {
        let stop = stop.clone();
        thread::spawn("spinner", move || {
            while !stop.load(Ordering::SeqCst) {
                black_box(compute(1_000));
            }
        })?;
    }
    Ok(())
}

/// Something that takes as long as `rounds` says.
fn compute(rounds: u64) -> u64 {
    (0..rounds).fold(1, |sum: u64, round| black_box(sum.wrapping_mul(5) ^ round))
}

/// The most that was computed in `ns` nanoseconds in one of some tries, so that what others took
/// meanwhile counts least.
fn measured(ns: u64) -> u64 {
    const STEP: u64 = 1_000;
    let measure = |_| {
        let (end, mut rounds) = (time::now() + ns, 0);
        while time::now() < end {
            black_box(compute(STEP));
            rounds += STEP;
        }
        rounds
    };
    (0..5).map(measure).max().unwrap_or(STEP)
}

/// Computes `work` in one period after the other; in how many it was done before the end. One that
/// is late goes on with the next period that begins.
fn count_kept(plan: Plan, work: u64) -> u32 {
    let (begin, mut kept) = (time::now(), 0);
    let mut number = 0;
    while number < u64::from(plan.periods) {
        let starts = begin + number * plan.period;
        time::sleep(starts.saturating_sub(time::now()));
        black_box(compute(work));
        let ended = (time::now() - begin) / plan.period;
        kept += u32::from(ended == number);
        number = ended.max(number) + 1;
    }
    kept
}
