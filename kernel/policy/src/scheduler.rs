//! Round robin with a queue per processor.
//!
//! Threads that were just woken run before those that used up a time slice, so that a thread that
//! answers a device or a person does not stand behind one that computes; but the latter get their
//! turn at least every [`TURN_NS`]. A woken thread goes to an idle processor: the one where
//! it is woken, the one where it ran last, or any. A processor with nothing to do takes from the longest queue.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use framework::arch::MAX_CPUS;
use framework::sync::SpinLock;
use framework::task::{Placement, Reason, RunQueue, Scheduler, ThreadRef};
use framework::{smp, time};

/// Longest time in nanoseconds for which woken threads keep the others waiting.
const TURN_NS: u64 = 10_000_000;

/// The ready threads of one processor.
struct Ready {
    /// Woken since they ran last.
    woken: RunQueue,
    /// New, or used their time slice.
    others: RunQueue,
}

/// What the policy knows of one processor.
struct Processor {
    ready: SpinLock<Ready>,
    /// Threads in both queues.
    length: AtomicUsize,
    /// Found nothing to run and was given nothing since.
    idle: AtomicBool,
    /// The thread that runs there came from `woken`.
    runs_woken: AtomicBool,
    /// When a thread from `others` was picked last, or there was none.
    last_turn: AtomicU64,
}

/// The scheduler.
pub struct RoundRobin {
    processors: [Processor; MAX_CPUS],
}

impl RoundRobin {
    /// A scheduler without threads.
    pub const fn new() -> Self {
        Self {
            processors: [const {
                Processor {
                    ready: SpinLock::new(Ready {
                        woken: RunQueue::new(),
                        others: RunQueue::new(),
                    }),
                    length: AtomicUsize::new(0),
                    idle: AtomicBool::new(false),
                    runs_woken: AtomicBool::new(false),
                    last_turn: AtomicU64::new(0),
                }
            }; MAX_CPUS],
        }
    }

    /// The processor, if it is idle: claimed by clearing its flag.
    fn claim(&self, cpu: usize) -> Option<usize> {
        let idle = &self.processors[cpu].idle;
        let claimed = idle.load(Ordering::Relaxed) && idle.swap(false, Ordering::AcqRel);
        claimed.then_some(cpu)
    }

    /// Claims an idle processor, `first` if that is.
    fn claim_idle(&self, first: usize) -> Option<usize> {
        let online = smp::online();
        (0..online).find_map(|step| self.claim((first + step) % online))
    }

    fn shortest(&self) -> usize {
        (0..smp::online())
            .min_by_key(|cpu| self.processors[*cpu].length.load(Ordering::Relaxed))
            .unwrap_or(0)
    }

    /// Where a thread shall wait for its turn.
    fn place(&self, thread: &ThreadRef, why: Reason, here: usize) -> usize {
        let last = thread.cpu() % smp::online();
        match why {
            Reason::New => self.claim_idle(here).unwrap_or_else(|| self.shortest()),
            // An idle processor that takes the interrupt which wakes the thread is awake already.
            Reason::Woken | Reason::WokenLater => self
                .claim(here)
                .or_else(|| self.claim_idle(last))
                .unwrap_or(last),
            Reason::Yielded => {
                let alone = self.processors[here].length.load(Ordering::Relaxed) == 0;
                let elsewhere = if alone { None } else { self.claim_idle(here) };
                elsewhere.unwrap_or(here)
            }
        }
    }

    /// Takes a thread from the processor with the longest queue.
    fn steal(&self, here: usize) -> Option<ThreadRef> {
        let length = |cpu: usize| self.processors[cpu].length.load(Ordering::Relaxed);
        let victim = (0..smp::online())
            .filter(|cpu| *cpu != here && length(*cpu) > 0)
            .max_by_key(|cpu| length(*cpu))?;
        self.processors[victim].take().map(|(thread, _)| thread)
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new()
    }
}

impl Processor {
    /// The next ready thread, and whether it was woken.
    fn take(&self) -> Option<(ThreadRef, bool)> {
        let mut ready = self.ready.lock();
        let now = time::now_ns();
        if ready.others.is_empty() {
            self.last_turn.store(now, Ordering::Relaxed);
        }
        let their_turn = now - self.last_turn.load(Ordering::Relaxed).min(now) > TURN_NS;
        let picked = if their_turn || ready.woken.is_empty() {
            self.last_turn.store(now, Ordering::Relaxed);
            ready.others.pop_front().map(|thread| (thread, false))
        } else {
            ready.woken.pop_front().map(|thread| (thread, true))
        };
        if picked.is_some() {
            self.length.fetch_sub(1, Ordering::Relaxed);
        }
        picked
    }

    fn put(&self, thread: ThreadRef, woken: bool) {
        let mut ready = self.ready.lock();
        let queue = if woken {
            &mut ready.woken
        } else {
            &mut ready.others
        };
        if queue.push_back(thread).is_ok() {
            self.length.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Scheduler for RoundRobin {
    fn enqueue(&self, thread: ThreadRef, why: Reason, here: usize) -> Placement {
        let cpu = self.place(&thread, why, here);
        let woken = matches!(why, Reason::Woken | Reason::WokenLater);
        let processor = &self.processors[cpu];
        processor.put(thread, woken);
        Placement {
            cpu,
            preempt: why == Reason::Woken && !processor.runs_woken.load(Ordering::Relaxed),
        }
    }

    fn pick(&self, here: usize) -> Option<ThreadRef> {
        let processor = &self.processors[here];
        processor.idle.store(false, Ordering::Relaxed);
        let picked = processor
            .take()
            .or_else(|| self.steal(here).map(|thread| (thread, false)));
        let Some((thread, woken)) = picked else {
            processor.runs_woken.store(false, Ordering::Relaxed);
            processor.idle.store(true, Ordering::Release);
            return None;
        };
        processor.runs_woken.store(woken, Ordering::Relaxed);
        Some(thread)
    }

    fn tick(&self, here: usize, _current: &ThreadRef) -> bool {
        let processor = &self.processors[here];
        processor.runs_woken.store(false, Ordering::Relaxed);
        processor.length.load(Ordering::Relaxed) > 0
    }
}
