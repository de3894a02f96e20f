//! What all processors may look at of one, without a lock.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::NEVER;
use crate::heap::NIL;
use crate::queue::Sign;
use crate::task::Class;

/// Rank of a fair thread on a processor; real-time ones follow by priority.
pub(crate) const FAIR: u32 = 1;
/// Rank of one with a deadline.
pub(crate) const DEADLINE: u32 = 1_000;

/// What all processors may look at of one.
#[repr(align(64))]
pub(crate) struct Processor {
    pub idle: AtomicBool,
    /// Rank of the running thread; 0: none.
    pub rank: AtomicU32,
    pub group: AtomicU32,
    /// Virtual time of the running thread when it was counted last, which was at `since`.
    pub thread: AtomicU64,
    pub since: AtomicU64,
    pub look_at: AtomicU64,
    pub next: AtomicU64,
    pub next_group: AtomicU32,
    pub next_thread: AtomicU64,
    pub length: AtomicUsize,
    pub urgent: AtomicBool,
    pub floor: AtomicU64,
    /// Millionths of its time that deadlines were promised.
    pub promised: AtomicU32,
}

impl Processor {
    pub(crate) const fn new() -> Self {
        Self {
            idle: AtomicBool::new(false),
            rank: AtomicU32::new(0),
            group: AtomicU32::new(0),
            thread: AtomicU64::new(0),
            since: AtomicU64::new(0),
            look_at: AtomicU64::new(0),
            next: AtomicU64::new(NEVER),
            next_group: AtomicU32::new(NIL),
            next_thread: AtomicU64::new(NEVER),
            length: AtomicUsize::new(0),
            urgent: AtomicBool::new(false),
            floor: AtomicU64::new(0),
            promised: AtomicU32::new(0),
        }
    }

    pub(crate) fn show(&self, sign: Sign) {
        self.next.store(sign.next, Ordering::Relaxed);
        self.next_group.store(sign.group, Ordering::Relaxed);
        self.next_thread.store(sign.thread, Ordering::Relaxed);
        self.length.store(sign.length, Ordering::Relaxed);
        self.urgent.store(sign.urgent, Ordering::Relaxed);
        self.floor.store(sign.floor, Ordering::Relaxed);
    }

    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.next() != NEVER || self.urgent.load(Ordering::Relaxed)
    }

    /// Whether it was idle; it is not any more.
    pub(crate) fn claim(&self) -> bool {
        self.idle.load(Ordering::Relaxed) && self.idle.swap(false, Ordering::AcqRel)
    }
}

/// What classes are compared by.
pub(crate) fn rank_of(class: Class) -> u32 {
    match class {
        Class::Fair => FAIR,
        Class::Fifo(priority) | Class::RoundRobin(priority) => FAIR + 1 + u32::from(priority),
        Class::Deadline { .. } => DEADLINE,
    }
}
