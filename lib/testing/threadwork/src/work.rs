//! The loads.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::team::{Queue, Team};
use crate::{Place, Shared, System};

/// Nanoseconds between two rounds of waking.
const PAUSE: u64 = 1_000_000;
/// Nanoseconds after which no further round of waking begins.
const PATIENCE: u64 = 10_000_000_000;
/// Messages that wait for one receiver at most.
const BACKLOG: usize = 64;
/// Nanoseconds that threads have, once all are there, to wait for when they are to spin.
const SETTLING: u64 = 200_000_000;
/// Steps of a spinning thread between two looks at the clock.
const STEPS: u64 = 2_000;

/// One thread wakes `workers` others in each of `rounds` rounds, and sleeps a little in between.
/// Nanoseconds from before each was woken until it ran, sorted. The first round does not count.
///
/// # Errors
/// If a thread does not start.
pub fn wake_ups<S: System>(workers: usize, rounds: usize) -> Result<Vec<u64>, S::Error> {
    const LAST: u64 = 0;
    let boxes: Arc<Vec<Queue<S>>> = Arc::new((0..workers).map(|_| Queue::new(1)).collect());
    let awake = Arc::new(S::Shared::new(0usize));
    let (letters, counted) = (boxes.clone(), awake.clone());
    let team = Team::<S, Vec<u64>>::make(workers, move |number| {
        let mut delays = Vec::with_capacity(rounds);
        loop {
            match letters[number].pop() {
                LAST => return delays,
                sent => delays.push(S::now().saturating_sub(sent)),
            }
            counted.change(|count| *count += 1);
            counted.wake_one(Place::Taking);
        }
    })?;
    let begin = team.start();
    for _ in 0..rounds {
        S::sleep(PAUSE);
        boxes.iter().for_each(|letters| letters.push(S::now()));
        awake.until(Place::Taking, |count| {
            (*count == workers).then(|| *count = 0)
        });
        if S::now() - begin > PATIENCE {
            break;
        }
    }
    boxes.iter().for_each(|letters| letters.push(LAST));
    let delays = team.results();
    let counting = delays.iter().flat_map(|all| all.iter().skip(1));
    let mut delays: Vec<u64> = counting.copied().collect();
    delays.sort_unstable();
    Ok(delays)
}

/// In each of `groups`, each of `fan` senders sends `loops` messages to each of `fan` receivers.
/// Nanoseconds that all of it takes, for one message.
///
/// # Errors
/// If a thread does not start.
pub fn messages<S: System>(groups: usize, fan: usize, loops: usize) -> Result<u64, S::Error> {
    let receivers = groups * fan;
    let queues = (0..receivers).map(|_| Queue::<S>::new(BACKLOG));
    let queues: Arc<Vec<_>> = Arc::new(queues.collect());
    let team = Team::<S, ()>::make(2 * receivers, move |number| {
        if number < receivers {
            for _ in 0..fan * loops {
                queues[number].pop();
            }
            return;
        }
        let group = (number - receivers) / fan;
        let ours = &queues[group * fan..][..fan];
        for message in 0..loops as u64 {
            ours.iter().for_each(|queue| queue.push(message));
        }
    })?;
    let begin = team.start();
    team.results();
    let count = (receivers * fan * loops) as u64;
    Ok((S::now() - begin) / count.max(1))
}

/// `threads` give way to each other `total` times altogether. Nanoseconds for one time.
///
/// # Errors
/// If a thread does not start.
pub fn yields<S: System>(threads: usize, total: usize) -> Result<u64, S::Error> {
    let each = total / threads;
    let team = Team::<S, ()>::make(threads, move |_| (0..each).for_each(|_| S::yield_now()))?;
    let begin = team.start();
    team.results();
    Ok((S::now() - begin) / (each * threads).max(1) as u64)
}

/// Waits until the clock shows `at`; whether that was still to come.
pub fn wait_for<S: System>(at: u64) -> bool {
    let is_early = S::now() < at;
    loop {
        match at.saturating_sub(S::now()) {
            0 => return is_early,
            rest => S::sleep(rest),
        }
    }
}

/// `threads` spin for so many nanoseconds, from when the clock shows `at`, or from a bit after all
/// of them are there if that is later. How much each has done, and when they began.
///
/// # Errors
/// If a thread does not start.
pub fn spin<S: System>(
    threads: usize,
    at: u64,
    nanoseconds: u64,
) -> Result<(Vec<u64>, u64), S::Error> {
    let begin = Arc::new(AtomicU64::new(at));
    let told = begin.clone();
    let team = Team::<S, u64>::make(threads, move |_| {
        let begin = told.load(Ordering::Acquire);
        wait_for::<S>(begin);
        spun::<S>(begin + nanoseconds)
    })?;
    // Threads that are made late would have less of a window that has begun.
    team.gather();
    let at = at.max(S::now() + SETTLING);
    begin.store(at, Ordering::Release);
    team.start();
    Ok((team.results(), at))
}

/// Spins until the clock shows `end`; how often.
fn spun<S: System>(end: u64) -> u64 {
    let (mut count, mut state) = (0, 1u64);
    while S::now() < end {
        for _ in 0..STEPS {
            state = black_box(state ^ state << 13);
            state ^= state >> 7;
        }
        count += 1;
    }
    count
}
