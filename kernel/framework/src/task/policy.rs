//! What the framework asks of an injected scheduler, and the check of its answers.
//!
//! The policy keeps the ready threads in queues of its own and says which runs next, and until
//! when. It is safe code and not trusted: a thread that it names is run only if a compare-and-swap
//! moves that thread from READY to RUNNING; a processor number that it names is reduced to an
//! existing one; a moment that it names is not before the shortest slice. A bad policy can thus be
//! unfair, but cannot run a thread twice or run one that waits.
//!
//! Time and processors are arguments ([`Moment`]), so that policies need nothing of the framework
//! to be tested.

use super::thread::{Thread, ThreadRef};

/// In which order threads run. Each class goes before those above it in this list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// By shares of groups, and of threads in them.
    Fair,
    /// Until it waits; the greater priority first.
    Fifo(u8),
    /// In turn with others of its priority.
    RoundRobin(u8),
    /// The earliest deadline first. Who asks for it is refused unless the policy promises it, and
    /// runs on the processor that the policy names.
    Deadline {
        /// Nanoseconds that it may run in each period.
        runtime: u64,
        /// Nanoseconds.
        period: u64,
    },
}

/// What is asked for a thread beside its group. The policy brings any value into bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Its class.
    pub class: Class,
    /// Its weight in its group, in the fair class.
    pub weight: u32,
    /// A bit for each processor that it may run on; if none of them is there, all.
    pub affinity: u64,
}

impl Attributes {
    /// The usual ones.
    pub const NORMAL: Self = Self {
        class: Class::Fair,
        weight: 1024,
        affinity: u64::MAX,
    };
    /// Of the kernel's threads that all others wait for, and that run only for a moment at a time.
    pub const URGENT: Self = Self {
        class: Class::RoundRobin(100),
        ..Self::NORMAL
    };
}

/// What a group gets. The policy brings any value into bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Its part beside other groups; usually 1024.
    pub weight: u32,
    /// Most that it gets, in hundredths of one processor's time; 0: no limit.
    pub percent: u32,
}

/// When and where the policy is asked.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Nanoseconds since boot.
    pub now: u64,
    /// The processor that asks.
    pub cpu: usize,
    /// Processors that there are.
    pub online: usize,
}

/// Why a thread is handed to the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It was just made.
    New,
    /// It waited and was woken.
    Woken,
    /// As [`Woken`](Self::Woken), for work that can wait: the running thread need not give way at
    /// once.
    WokenLater,
    /// It ran and gave way or was preempted.
    Ran,
}

/// Why the policy is told what a thread has used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It goes on.
    Still,
    /// It was taken off.
    Preempted,
    /// It gave way by itself.
    Yielded,
    /// It waits now.
    Waits,
    /// It has ended.
    Ended,
}

/// Where a thread was queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Index of the processor whose queue it is in.
    pub cpu: usize,
    /// Whether the thread that runs there should give way at once.
    pub preempt: bool,
}

/// Who runs now.
pub struct Choice {
    /// `None`: nobody; the processor idles.
    pub thread: Option<ThreadRef>,
    /// When the policy is to be asked again at the latest, in nanoseconds since boot.
    pub until: u64,
}

/// Chooses which thread runs where. Called with interrupts disabled, on any processor, also by
/// several at once; must not block, and must not allocate but in `admit`.
pub trait Scheduler: Sync {
    /// Makes room for `threads` threads on `online` processors; whether there is. Called with
    /// interrupts enabled.
    fn admit(&self, threads: usize, online: usize) -> bool;

    /// Promises a thread `runtime` of each `period` nanoseconds on one of `online` processors;
    /// which. `None`: more than is left, or nonsense.
    fn promise(&self, _runtime: u64, _period: u64, _online: usize) -> Option<usize> {
        None
    }

    /// Takes back what was promised on processor `cpu`.
    fn release(&self, _cpu: usize, _runtime: u64, _period: u64) {}

    /// A group begins, which has no threads yet.
    fn open_group(&self, group: u32, share: Share);

    /// Takes over a ready thread.
    fn enqueue(&self, thread: ThreadRef, why: Reason, at: Moment) -> Placement;

    /// Gives up the thread that the processor shall run now.
    fn pick(&self, at: Moment) -> Choice;

    /// Whether nobody waits to whom a thread that gives way on processor `cpu` of `online` could
    /// give way: then it goes on without having been taken off.
    fn is_alone(&self, _cpu: usize, _online: usize) -> bool {
        false
    }

    /// A thread has run `used` nanoseconds since this was called, or it was picked, last.
    /// `in_service`: it is in the code of another group's domain or of the kernel, and may hold
    /// what others wait for.
    fn ran(&self, thread: &Thread, used: u64, left: Left, in_service: bool, at: Moment);

    /// The moment has come that `pick` gave, or this function; the thread's time has been counted.
    /// Until when the thread goes on; `None`: it gives way.
    fn slice_over(&self, thread: &Thread, in_service: bool, at: Moment) -> Option<u64>;
}
