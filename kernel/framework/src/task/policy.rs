//! What the framework asks of an injected scheduler, and the check of its answers.
//!
//! The policy keeps the ready threads in queues of its own and says which runs next. It is safe
//! code and not trusted: a thread that it names is run only if a compare-and-swap moves that thread
//! from READY to RUNNING; a processor number that it names is reduced to an existing one. A bad
//! policy can thus be unfair, but cannot run a thread twice or run one that waits.

use super::thread::ThreadRef;

/// Why a thread is handed to the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It was just made.
    New,
    /// It waited and was woken.
    Woken,
    /// As [`Woken`](Self::Woken), for work that can wait: the running thread need not give way at once.
    WokenLater,
    /// It ran and gave way or was preempted.
    Yielded,
}

/// Where a thread was queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Index of the processor whose queue it is in.
    pub cpu: usize,
    /// Whether the thread that runs there should give way at once.
    pub preempt: bool,
}

/// Chooses which thread runs where. Called with interrupts disabled, on any processor, also by
/// several at once; must not block and must not allocate in `enqueue`.
pub trait Scheduler: Sync {
    /// Takes over a ready thread. `cpu` is the processor that this call runs on.
    fn enqueue(&self, thread: ThreadRef, why: Reason, cpu: usize) -> Placement;

    /// Gives up the thread that processor `cpu` shall run now; `None` makes it idle.
    fn pick(&self, cpu: usize) -> Option<ThreadRef>;

    /// Told every 10 ms of running; returns whether `current` should give way on `cpu`.
    fn tick(&self, cpu: usize, current: &ThreadRef) -> bool;
}
