//! What the personality holds for the processes of one job, and how much that may be.
//!
//! A *job* is a pipeline or background list of a shell, with all that it starts; only the first
//! process of a session can begin one. So what a program takes in here it takes from itself and its
//! like, and nobody gets more by starting more.
//!
//! Charged are pipes, descriptors, and processes with their arguments and environment, until they
//! were waited for.

use core::sync::atomic::{AtomicUsize, Ordering};

use alloc::sync::Arc;
use interfaces::{Errno, RpcError};

/// For an open descriptor with what it leads to.
pub const DESCRIPTOR: usize = 384;
/// For a pipe without what is in it.
pub const PIPE: usize = 512;
/// For a process without its arguments, its environment and its descriptors.
pub const PROCESS: usize = 4096;

/// Processes of a job whose ends are told before they are cleared away, at a time: so that one
/// which starts program after program does not get ahead of that.
const CLEARED_LATER: usize = 4;

/// What is held for a job, in bytes.
pub struct Ledger {
    held: AtomicUsize,
    limit: usize,
    /// Places of [`CLEARED_LATER`] that are taken.
    later: AtomicUsize,
}

impl Ledger {
    /// One for which at most `limit` bytes are held.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Ledger {
            held: AtomicUsize::new(0),
            limit,
            later: AtomicUsize::new(0),
        })
    }

    /// Takes a place among those that are cleared away later, if there is one.
    pub fn clear_later(self: &Arc<Self>) -> Option<Later> {
        let more = |taken: usize| (taken < CLEARED_LATER).then_some(taken + 1);
        let taken = self
            .later
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Later(self.clone()))
    }

    /// Charges `bytes` more.
    ///
    /// # Errors
    /// `NoMemory` over the limit.
    pub fn take(&self, bytes: usize) -> Result<(), Errno> {
        let more = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let taken = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|_| Errno::Rpc(RpcError::NoMemory))
    }

    /// Takes a charge of `bytes` back.
    pub fn give(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A place of [`CLEARED_LATER`].
pub struct Later(Arc<Ledger>);

impl Drop for Later {
    fn drop(&mut self) {
        self.0.later.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A charge that ends with what it is for.
pub struct Charge {
    ledger: Arc<Ledger>,
    bytes: usize,
}

impl Charge {
    /// Charges `ledger` with `bytes`.
    ///
    /// # Errors
    /// `NoMemory` over the limit.
    pub fn new(ledger: &Arc<Ledger>, bytes: usize) -> Result<Self, Errno> {
        ledger.take(bytes)?;
        Ok(Charge {
            ledger: ledger.clone(),
            bytes,
        })
    }

    /// Makes it `bytes`, if that is not more than the job may have; whether it is so.
    pub fn set(&mut self, bytes: usize) -> bool {
        let fits = match bytes.checked_sub(self.bytes) {
            Some(more) => self.ledger.take(more).is_ok(),
            None => {
                self.ledger.give(self.bytes - bytes);
                true
            }
        };
        if fits {
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn nobody_gets_more_than_the_limit_and_all_comes_back() {
        let ledger = Ledger::new(1000);
        let mut first = Charge::new(&ledger, 600).expect("it fits");
        assert!(Charge::new(&ledger, 401).is_err());
        let second = Charge::new(&ledger, 400).expect("it fits");
        assert!(!first.set(601));
        assert!(first.set(100) && first.set(600) && !first.set(usize::MAX));
        drop(second);
        assert!(first.set(1000));
        drop(first);
        assert!(ledger.take(1000).is_ok() && ledger.take(1).is_err());
        ledger.give(1000);
        assert!(ledger.take(usize::MAX).is_err());
    }

    #[test]
    fn few_are_cleared_away_later_at_a_time() {
        let ledger = Ledger::new(0);
        let mut places: Vec<_> = (0..CLEARED_LATER).map(|_| ledger.clear_later()).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(ledger.clear_later().is_none());
        places.pop();
        assert!(ledger.clear_later().is_some() && ledger.clear_later().is_some());
        places.clear();
        assert_eq!(ledger.later.load(Ordering::Relaxed), 0);
    }
}
