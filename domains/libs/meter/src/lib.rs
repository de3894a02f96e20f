//! How long a lock is held, for who measures what part of a work is done one after the other.
//!
//! Whoever has the lock says when he got it and when he gives it back. Where the machine's clock
//! counts instructions the sum is exact but for the readings of the clock themselves. A meter that
//! is off costs a load and a branch.
#![no_std]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use domain_rt::{log, time};

/// The meter of one lock. Only who has the lock changes it.
pub struct Meter {
    /// What the lock guards, as the log has it.
    name: &'static str,
    is_on: bool,
    since: AtomicU64,
    nanoseconds: AtomicU64,
    turns: AtomicU64,
}

impl Meter {
    /// A meter that measures if it `is_on`.
    pub fn new(name: &'static str, is_on: bool) -> Self {
        Meter {
            name,
            is_on,
            since: AtomicU64::new(0),
            nanoseconds: AtomicU64::new(0),
            turns: AtomicU64::new(0),
        }
    }

    /// The caller has just got the lock.
    pub fn begin(&self) {
        if self.is_on {
            self.since.store(time::now(), Ordering::Relaxed);
        }
    }

    /// The caller is about to give the lock back.
    pub fn end(&self) {
        if self.is_on {
            let held = time::now().saturating_sub(self.since.load(Ordering::Relaxed));
            // Nobody else does this meanwhile.
            let add = |to: &AtomicU64, more: u64| {
                to.store(to.load(Ordering::Relaxed) + more, Ordering::Relaxed);
            };
            add(&self.nanoseconds, held);
            add(&self.turns, 1);
        }
    }

    /// Writes to the log what was measured since the last [reset](Self::reset). It is not exact
    /// while others take the lock.
    pub fn tell(&self) {
        if self.is_on {
            let nanoseconds = self.nanoseconds.load(Ordering::Relaxed);
            let turns = self.turns.load(Ordering::Relaxed);
            log!("held {}: {nanoseconds} ns, {turns} turns", self.name);
        }
    }

    /// Begins anew.
    pub fn reset(&self) {
        self.nanoseconds.store(0, Ordering::Relaxed);
        self.turns.store(0, Ordering::Relaxed);
    }
}
