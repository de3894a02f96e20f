//! Nodes that are used again, and found by number without a lock.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use isolation::memory::grown::{Grown, Settled};

/// What a node takes besides its body, in bytes.
const HEAD_BYTES: usize = core::mem::size_of::<Node<()>>();

/// A node. Its body comes once and stays; who uses it changes.
pub(super) struct Node<T> {
    /// Who uses it now, as the pool's user says; its upper half counts the users.
    tenant: AtomicU64,
    /// While nobody uses it: the next such one, plus one; 0: there is none.
    next: AtomicU32,
    body: Settled<T>,
}

impl<T> Node<T> {
    /// What is kept in it.
    #[inline]
    pub(super) fn body(&self) -> Option<&T> {
        self.body.get()
    }

    /// Whom it serves, and since how many others.
    pub(super) fn tenant(&self) -> u64 {
        self.tenant.load(Ordering::Acquire)
    }
}

/// All nodes of one kind that an object has.
pub(super) struct Nodes<T>(Grown<Node<T>>);

/// Which of them are in use. It lies under the object's lock.
#[derive(Default)]
pub(super) struct Book {
    /// The first one that was used before, plus one.
    free: u32,
    /// How many were.
    count: u32,
    /// Those from here on were never used.
    fresh: u32,
    /// Those from here on have no body.
    ready: u32,
}

impl Book {
    /// How many nodes can be taken.
    pub(super) fn left(&self) -> u32 {
        self.count + (self.ready - self.fresh)
    }

    /// The node that is prepared next.
    pub(super) fn next(&self) -> u32 {
        self.ready
    }

    /// The node with this number has a body now.
    pub(super) fn is_ready(&mut self, number: u32) {
        self.ready = self.ready.max(number + 1);
    }
}

impl<T> Nodes<T> {
    pub(super) const fn new() -> Self {
        Nodes(Grown::new())
    }

    /// The node with this number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&Node<T>> {
        self.0.get(number as usize)
    }

    /// What it costs to prepare the node with this number, in bytes. The first node of a part of
    /// the table pays for the heads of all of them.
    pub(super) fn cost(number: u32) -> usize {
        let number = number as usize;
        let heads = match (number + 1).is_power_of_two() {
            true => Grown::<Node<T>>::step(number),
            false => 0,
        };
        heads * HEAD_BYTES + size_of::<T>()
    }

    /// Gives the node with this number a body, if it has none. `None`: there is no memory.
    /// Otherwise, whether this call did it, and not somebody else's.
    pub(super) fn prepare(&self, number: u32, body: impl FnOnce() -> T) -> Option<bool> {
        let empty = || Node {
            tenant: AtomicU64::new(0),
            next: AtomicU32::new(0),
            body: Settled::none(),
        };
        if !self.0.grow(number as usize, empty) {
            return None;
        }
        let node = self.0.get(number as usize)?;
        if node.body().is_some() {
            return Some(false);
        }
        node.body.settle(body())
    }

    /// Takes a node for `tenant`, which has only a lower half; its number.
    pub(super) fn take(&self, book: &mut Book, tenant: u32) -> Option<u32> {
        let number = match book.free {
            0 if book.fresh == book.ready => return None,
            0 => {
                book.fresh += 1;
                book.fresh - 1
            }
            free => {
                let node = self.get(free - 1)?;
                book.free = node.next.load(Ordering::Relaxed);
                book.count -= 1;
                free - 1
            }
        };
        let node = self.get(number)?;
        let users = (node.tenant() >> 32) + 1;
        node.tenant
            .store(users << 32 | u64::from(tenant), Ordering::Release);
        Some(number)
    }

    /// Takes back a node that nobody uses any more.
    pub(super) fn give(&self, book: &mut Book, number: u32) {
        let Some(node) = self.get(number) else {
            return;
        };
        node.tenant
            .store(node.tenant() >> 32 << 32, Ordering::Release);
        node.next.store(book.free, Ordering::Relaxed);
        book.free = number + 1;
        book.count += 1;
    }
}
