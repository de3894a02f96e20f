//! Objects that have left their domain, and what its control block knows of those that are to be
//! dropped. [`crate::call::handle`] makes exports, [`crate::call::drops`] ends them.

use super::BlockRef;
use super::account::Charge;
use crate::lock::Lock;
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize};
use abi::handle::RawHandle;
use alloc::boxed::Box;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// An object that has left its domain. When its last proxy is gone it is the *orphan* that
/// [`crate::call::drops`] takes care of.
pub(crate) struct Export {
    /// Proxies that point here.
    pub(crate) proxies: AtomicUsize,
    /// The object, by the one reference that crossed.
    pub(crate) object: RawHandle,
    /// Its domain.
    pub(crate) domain: BlockRef,
    /// Without proxies: the next one in a row.
    next: Option<NonNull<Export>>,
    /// Whose memory this is, until the object's drop is over: the exporter's, or that of the domain
    /// which was given an object of the kernel.
    _charge: Option<Charge>,
}

// SAFETY: what it holds is the one reference to an object that may be used from any thread inside
// its domain; the next one is touched by whoever has the row alone.
unsafe impl Send for Export {}

impl Export {
    /// Of `object`, an object of `domain`'s, for which `charge` is charged. Nobody has it yet.
    pub(crate) fn new(object: RawHandle, domain: BlockRef, charge: Option<Charge>) -> Self {
        if let BlockRef::Domain(block) = &domain {
            block.counters.exports.fetch_add(1, Ordering::Relaxed);
        }
        Export {
            proxies: AtomicUsize::new(0),
            object,
            domain,
            next: None,
            _charge: charge,
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        if let BlockRef::Domain(block) = &self.domain {
            // With all that was done by way of it, for who finds none left.
            block.counters.exports.fetch_sub(1, Ordering::Release);
        }
    }
}

/// An object that no handle leads to any more.
pub(crate) type Orphan = Box<Export>;

/// What a domain's control block knows of its drops.
pub(crate) struct Drops {
    /// One has waited, for longer than a moment.
    pub(crate) may_wait: AtomicBool,
    /// Somebody has waited in vain for the one that is under way.
    pub(crate) late: AtomicBool,
    /// How many helpers have carried out, modulo 2^32.
    pub(crate) done: AtomicU32,
    pub(crate) queue: Lock<Queue>,
}

/// Drops that were left to helpers.
pub(crate) struct Queue {
    pub(crate) waiting: Row,
    /// How many were ever left to helpers, modulo 2^32.
    pub(crate) left: u32,
    /// A helper is in the drops, or called for.
    pub(crate) has_helper: bool,
}

/// Orphans in their order, linked through themselves.
pub(crate) struct Row {
    first: Option<NonNull<Export>>,
    last: Option<NonNull<Export>>,
}

// SAFETY: the orphans in a row belong to it alone, and may be sent.
unsafe impl Send for Row {}

impl Row {
    const EMPTY: Row = Row {
        first: None,
        last: None,
    };

    pub(crate) fn push(&mut self, orphan: Orphan) {
        let orphan = NonNull::from(Box::leak(orphan));
        match self.last.replace(orphan) {
            None => self.first = Some(orphan),
            // SAFETY: the last one belongs to the row.
            Some(last) => unsafe { (*last.as_ptr()).next = Some(orphan) },
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Orphan> {
        // SAFETY: from `push`, and off the row from here on.
        let mut orphan = unsafe { Box::from_raw(self.first?.as_ptr()) };
        self.first = orphan.next.take();
        if self.first.is_none() {
            self.last = None;
        }
        Some(orphan)
    }
}

impl Drops {
    pub(crate) const fn new() -> Self {
        Drops {
            may_wait: AtomicBool::new(false),
            late: AtomicBool::new(false),
            done: AtomicU32::new(0),
            queue: Lock::new(Queue {
                waiting: Row::EMPTY,
                left: 0,
                has_helper: false,
            }),
        }
    }

    /// Whether a drop has waited.
    #[cfg(test)]
    pub(crate) fn may_wait(&self) -> bool {
        self.may_wait.load(Ordering::Relaxed)
    }

    /// As if a drop had waited.
    #[cfg(test)]
    pub(crate) fn may_wait_now(&self) {
        self.may_wait.store(true, Ordering::Relaxed);
    }
}
