//! A first-in first-out queue of threads that needs no memory: its links are in the threads.
//!
//! Each thread has one set of links, for the queue it is ready or waits in. It belongs to the queue
//! whose number is in `owner`; taking it over is a compare-and-swap from 0, so a thread cannot be
//! in two queues, and only the owning queue, through `&mut self`, touches the pointers. All
//! functions are therefore safe to offer to the policy crate. The queue holds a counted reference
//! to each member.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use super::thread::{Thread, ThreadRef};

/// One thread's place in one queue.
pub(super) struct Link {
    /// Number of the queue that the thread is in, or 0.
    owner: AtomicU64,
    neighbours: UnsafeCell<Neighbours>,
}

#[derive(Clone, Copy)]
struct Neighbours {
    next: *const Thread,
    previous: *const Thread,
}

const NOBODY: Neighbours = Neighbours {
    next: ptr::null(),
    previous: ptr::null(),
};

impl Link {
    pub(super) const fn new() -> Self {
        Self {
            owner: AtomicU64::new(0),
            neighbours: UnsafeCell::new(NOBODY),
        }
    }
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// A queue of threads, linked through the threads themselves.
pub struct RunQueue {
    /// This queue's number; 0 until the first push.
    number: u64,
    head: *const Thread,
    tail: *const Thread,
    length: usize,
}

// SAFETY: the pointers are counted references to threads, which are `Send` and `Sync`.
unsafe impl Send for RunQueue {}

impl RunQueue {
    /// An empty queue.
    pub const fn new() -> Self {
        Self {
            number: 0,
            head: ptr::null(),
            tail: ptr::null(),
            length: 0,
        }
    }

    /// Number of threads in the queue.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a thread at the end; gives it back if it is in a queue already.
    pub fn push_back(&mut self, thread: ThreadRef) -> Result<(), ThreadRef> {
        self.insert(self.tail, thread)
    }

    /// Adds a thread at the front; gives it back if it is in a queue already.
    pub fn push_front(&mut self, thread: ThreadRef) -> Result<(), ThreadRef> {
        self.insert(ptr::null(), thread)
    }

    /// Takes the first thread out.
    pub fn pop_front(&mut self) -> Option<ThreadRef> {
        // SAFETY: the queue holds a count of each member, so a non-null head is alive.
        let first = unsafe { self.head.as_ref() }?;
        Some(self.unlink(first))
    }

    /// Takes the first thread out for which `wanted` is true.
    pub fn pop_first(&mut self, wanted: impl Fn(&Thread) -> bool) -> Option<ThreadRef> {
        let mut at = self.head;
        // SAFETY: `at` is null or a member, which the queue's count keeps alive.
        while let Some(member) = unsafe { at.as_ref() } {
            if wanted(member) {
                return Some(self.unlink(member));
            }
            at = self.neighbours(member).next;
        }
        None
    }

    /// Takes `thread` out; `None` if it is not in this queue.
    pub fn remove(&mut self, thread: &Thread) -> Option<ThreadRef> {
        let owner = thread.link.owner.load(Ordering::Acquire);
        (owner != 0 && owner == self.number).then(|| self.unlink(thread))
    }

    /// Puts `thread` behind the member `previous`, or at the front if that is null.
    fn insert(&mut self, previous: *const Thread, thread: ThreadRef) -> Result<(), ThreadRef> {
        if self.number == 0 {
            self.number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        }
        let claim = thread.link.owner.compare_exchange(
            0,
            self.number,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if claim.is_err() {
            return Err(thread);
        }
        let node = Arc::into_raw(thread);
        // SAFETY: `node` carries the count just given up by `into_raw`, and `previous` is null or
        // a member; both are alive.
        let (node_ref, previous_ref) = unsafe { (&*node, previous.as_ref()) };
        let next = previous_ref.map_or(self.head, |member| self.neighbours(member).next);
        self.set_neighbours(node_ref, Neighbours { next, previous });
        self.set_next(previous, node);
        self.set_previous(next, node);
        self.length += 1;
        Ok(())
    }

    /// Takes a member out and gives up the queue's claim on its links.
    fn unlink(&mut self, member: &Thread) -> ThreadRef {
        let Neighbours { next, previous } = self.neighbours(member);
        self.set_next(previous, next);
        self.set_previous(next, previous);
        self.set_neighbours(member, NOBODY);
        self.length -= 1;
        member.link.owner.store(0, Ordering::Release);
        // SAFETY: takes back the count that `insert` put into the queue for this member; the
        // member is not linked any more, so this happens once.
        unsafe { Arc::from_raw(ptr::from_ref(member)) }
    }

    fn neighbours(&self, member: &Thread) -> Neighbours {
        // SAFETY: only the owning queue touches a member's links, and `&self` excludes writers.
        unsafe { *member.link.neighbours.get() }
    }

    fn set_neighbours(&mut self, member: &Thread, to: Neighbours) {
        // SAFETY: only the owning queue touches a member's links, and `&mut self` excludes others.
        unsafe { *member.link.neighbours.get() = to };
    }

    /// Makes `next` follow `member`, or head the queue if `member` is null.
    fn set_next(&mut self, member: *const Thread, next: *const Thread) {
        // SAFETY: `member` is null or a member, which the queue's count keeps alive.
        match unsafe { member.as_ref() } {
            None => self.head = next,
            Some(member) => {
                let old = self.neighbours(member);
                self.set_neighbours(member, Neighbours { next, ..old });
            }
        }
    }

    /// Makes `previous` precede `member`, or end the queue if `member` is null.
    fn set_previous(&mut self, member: *const Thread, previous: *const Thread) {
        // SAFETY: `member` is null or a member, which the queue's count keeps alive.
        match unsafe { member.as_ref() } {
            None => self.tail = previous,
            Some(member) => {
                let old = self.neighbours(member);
                self.set_neighbours(member, Neighbours { previous, ..old });
            }
        }
    }
}

impl Default for RunQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for RunQueue {
    fn drop(&mut self) {
        while self.pop_front().is_some() {}
    }
}
