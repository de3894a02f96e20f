//! Deadlines of waiting threads, the ends of slices and the sampling tick, on one one-shot timer
//! per processor.
//!
//! A waiting thread stands in the queue of the processor where it went to sleep, a heap by
//! deadline, in which it has a place from its birth: so waiting takes no memory, and with ten
//! thousand that wait the logarithm of that. The tick exists only while a thread runs: an idle
//! processor's timer stays armed for the nearest deadline, or at most once more for a tick that is
//! no longer wanted.
//!
//! Ticks fall on fixed moments, a grid, whether the processor was idle in between or not. Processor
//! time is charged to whoever is met at a tick; if ticks counted from the end of idleness instead,
//! work in pieces shorter than a tick would never be met.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use deadlines::{Deadlines, NoPlace, Room};

use crate::arch::MAX_CPUS;
use crate::arch::cpu::cpu_index;
use crate::arch::trap::TrapFrame;
use crate::arch::{clock, controller};
use crate::mem::NoMemory;
use crate::smp;
use crate::sync::SpinLock;
use crate::task::{self, Thread, ThreadId};
use crate::time::{now_ns, tsc_at};

/// Nanoseconds between two ticks.
pub const TICK_NS: u64 = 10_000_000;
/// Shortest time for which a policy may let a thread run.
const SHORTEST_SLICE: u64 = 20_000;
/// The most waits that one interrupt ends.
const AT_ONCE: usize = 32;
/// No deadline.
const NEVER: u64 = u64::MAX;

struct Timer {
    queue: SpinLock<Deadlines<ThreadId>>,
    /// When the next tick is due; `NEVER` while the processor is idle. Its own processor's.
    next_tick: AtomicU64,
    /// When the policy is to be asked about the running thread, or again by an idle processor. Its
    /// own processor's.
    slice_end: AtomicU64,
    /// What the hardware is armed for; `NEVER` if it is not. Its own processor's.
    armed: AtomicU64,
}

static TIMERS: [Timer; MAX_CPUS] = [const {
    Timer {
        queue: SpinLock::new(Deadlines::new()),
        next_tick: AtomicU64::new(NEVER),
        slice_end: AtomicU64::new(NEVER),
        armed: AtomicU64::new(NEVER),
    }
}; MAX_CPUS];

/// Counts of a processor's timer per second.
static RATE: AtomicU64 = AtomicU64::new(0);
static HOOK: AtomicUsize = AtomicUsize::new(0);

/// A function called at every tick, in interrupt context, with the interrupted frame.
pub type TickHook = fn(&mut TrapFrame);

/// Installs the tick hook.
///
/// # Safety
/// The hook changes the frame only so that the interrupted thread may go on from it.
pub unsafe fn set_tick_hook(hook: TickHook) {
    swap_tick_hook(Some(hook));
}

/// Installs another hook, or none, and returns the one before.
pub(crate) fn swap_tick_hook(hook: Option<TickHook>) -> Option<TickHook> {
    let old = HOOK.swap(hook.map_or(0, |hook| hook as usize), Ordering::AcqRel);
    // SAFETY: only `TickHook`s and 0 are ever stored.
    (old != 0).then(|| unsafe { core::mem::transmute::<usize, TickHook>(old) })
}

pub(super) fn set_rate(rate: u64) {
    RATE.store(rate, Ordering::Relaxed);
}

/// Makes the calling processor's timer ready.
pub(crate) fn enable_on_this_processor() {
    clock::enable();
}

/// Arms this processor's timer for `deadline`, unless it fires earlier anyway. Interrupts are off.
fn arm(timer: &Timer, deadline: u64) {
    if deadline >= timer.armed.load(Ordering::Relaxed) {
        return;
    }
    timer.armed.store(deadline, Ordering::Relaxed);
    let left = u128::from(deadline.saturating_sub(now_ns()));
    let count = left * u128::from(RATE.load(Ordering::Relaxed)) / 1_000_000_000 + 1;
    clock::arm(tsc_at(deadline), u32::try_from(count).unwrap_or(u32::MAX));
}

/// Puts the running thread, whose deadline is set, into this processor's queue. Interrupts are off.
pub(crate) fn schedule(thread: &Thread) {
    let here = cpu_index();
    let timer = &TIMERS[here];
    let (deadline, alarm) = (thread.deadline_ns(), thread.alarm());
    alarm.processor.store(here, Ordering::Relaxed);
    // Whether that is the earliest `arm` sees for itself.
    let _ = timer.queue.lock().set(&alarm.timer, deadline, None);
    arm(timer, deadline);
}

/// Takes the thread out of the queue that `schedule` put it in, if it still is there.
pub(crate) fn cancel(thread: &Thread) {
    let Alarm {
        processor, timer, ..
    } = thread.alarm();
    let timers = &TIMERS[processor.load(Ordering::Relaxed)];
    let removed = timers.queue.lock().cancel(timer);
    drop(removed);
}

/// What ends the waits of one thread when their time is over, and its places in the queues.
pub(crate) struct Alarm {
    timer: Arc<deadlines::Timer<ThreadId>>,
    /// In the queues of how many processors it has a place: of the first.
    places: usize,
    /// The processor in whose queue it was put last.
    processor: AtomicUsize,
}

impl Alarm {
    /// The alarm of the thread `id`, with a place in the queue of each processor.
    pub fn new(id: ThreadId) -> Result<Self, NoMemory> {
        let timer = Arc::try_new(deadlines::Timer::new(id)).map_err(|_| NoMemory)?;
        let mut alarm = Alarm {
            timer,
            places: 0,
            processor: AtomicUsize::new(0),
        };
        for timer in &TIMERS[..smp::online()] {
            book(timer)?;
            alarm.places += 1;
        }
        Ok(alarm)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        for timer in &TIMERS[..self.places] {
            let forgotten = timer.queue.lock().forget(&self.timer);
            drop(forgotten);
        }
    }
}

/// Books a place for one more thread.
fn book(timer: &Timer) -> Result<(), NoMemory> {
    loop {
        let booked = timer.queue.lock().book();
        let chunks = match booked {
            Ok(()) => return Ok(()),
            Err(NoPlace::Full) => return Err(NoMemory),
            Err(NoPlace::Grow(chunks)) => chunks,
        };
        // What is left of it is dropped here, behind the lock.
        let mut room = Room::new(chunks).ok_or(NoMemory)?;
        timer.queue.lock().extend(&mut room);
    }
}

/// The next moment of a tick after `now`. Each processor has moments of its own, so that they do
/// not all want the scheduler's locks at once.
fn next_tick(now: u64, processor: usize) -> u64 {
    let phase = TICK_NS / MAX_CPUS as u64 * (processor % MAX_CPUS) as u64;
    let ticks = (now + TICK_NS - phase) / TICK_NS;
    ticks * TICK_NS + phase
}

/// A thread is about to run here, at most until the moment `until` without the policy being asked.
/// Interrupts are off.
pub(crate) fn thread_runs(now: u64, until: u64) {
    let here = cpu_index();
    let timer = &TIMERS[here];
    set_slice_end(timer, now, until);
    if timer.next_tick.load(Ordering::Relaxed) == NEVER {
        let next = next_tick(now, here);
        timer.next_tick.store(next, Ordering::Relaxed);
        arm(timer, next);
    }
}

/// This processor has nothing to run until the moment `until` at the earliest, unless it is told
/// so. Interrupts are off.
pub(crate) fn processor_idles(until: u64) {
    let timer = &TIMERS[cpu_index()];
    timer.next_tick.store(NEVER, Ordering::Relaxed);
    set_slice_end(timer, now_ns(), until);
}

fn set_slice_end(timer: &Timer, now: u64, until: u64) {
    let end = until.max(now.saturating_add(SHORTEST_SLICE));
    timer.slice_end.store(end, Ordering::Relaxed);
    arm(timer, end);
}

/// The timer interrupt.
pub(crate) fn handle(frame: &mut TrapFrame) {
    controller::end();
    let here = cpu_index();
    let timer = &TIMERS[here];
    timer.armed.store(NEVER, Ordering::Relaxed);
    let begin = now_ns();
    expire(timer);
    let now = now_ns();
    if timer.next_tick.load(Ordering::Relaxed) <= now {
        timer
            .next_tick
            .store(next_tick(now, here), Ordering::Relaxed);
        call_hook(frame);
    }
    if timer.slice_end.load(Ordering::Relaxed) <= now {
        timer.slice_end.store(NEVER, Ordering::Relaxed);
        if let Some(until) = task::slice_over(here, now) {
            let end = until.max(now + SHORTEST_SLICE);
            timer.slice_end.store(end, Ordering::Relaxed);
        }
    }
    // Where thousands are due together, others have as much time in between as a few of them took.
    let pause = now + now.saturating_sub(begin);
    let nearest = timer.queue.lock().next().map(|next| next.max(pause));
    let next_tick = timer.next_tick.load(Ordering::Relaxed);
    let slice_end = timer.slice_end.load(Ordering::Relaxed);
    let next = nearest.unwrap_or(NEVER).min(next_tick).min(slice_end);
    if next != NEVER {
        arm(timer, next);
    }
    task::preempt_from(frame);
}

/// Ends waits whose deadline has passed, a few of them.
fn expire(timer: &Timer) {
    for _ in 0..AT_ONCE {
        let now = now_ns();
        let mut due = [const { None }];
        timer.queue.lock().take_due(now, &mut due);
        match due {
            [Some(due)] => task::time_out(*due.timer.value(), now),
            [None] => return,
        }
    }
}

fn call_hook(frame: &mut TrapFrame) {
    let hook = HOOK.load(Ordering::Acquire);
    if hook != 0 {
        // SAFETY: only `TickHook`s and 0 are ever stored.
        let hook: TickHook = unsafe { core::mem::transmute(hook) };
        hook(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_fall_on_a_grid_of_each_processor() {
        for processor in 0..MAX_CPUS {
            let first = next_tick(0, processor);
            assert!(first > 0 && first <= TICK_NS);
            for now in [
                0,
                1,
                TICK_NS - 1,
                TICK_NS,
                7 * TICK_NS + 12_345,
                u64::MAX >> 8,
            ] {
                let next = next_tick(now, processor);
                assert!(next > now && next <= now + TICK_NS, "{now}: {next}");
                assert_eq!((next - first) % TICK_NS, 0);
                assert_eq!(next_tick(next, processor), next + TICK_NS);
            }
        }
        assert_ne!(next_tick(0, 0), next_tick(0, 1));
    }
}
