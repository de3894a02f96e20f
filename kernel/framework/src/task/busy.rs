//! How long each processor has run threads, and how much of that nobody was charged with yet.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::MAX_CPUS;
use crate::arch::cpu::cpu_index;
use crate::time::{Stopwatch, now_ns};

/// A processor's account. Written by its own processor with interrupts off.
#[repr(align(64))]
struct Account {
    /// Runs while a thread does. What the scheduler needs between two threads counts as idleness.
    watch: Stopwatch,
    /// How much of it [`take_busy_ns`] has given.
    taken: AtomicU64,
    /// Until when the running thread's time was told to the policy.
    told: AtomicU64,
}

static ACCOUNTS: [Account; MAX_CPUS] = [const {
    Account {
        watch: Stopwatch::new(),
        taken: AtomicU64::new(0),
        told: AtomicU64::new(0),
    }
}; MAX_CPUS];

/// A thread goes on at `now` on processor `here`, the caller's.
pub(super) fn begins(here: usize, now: u64) {
    ACCOUNTS[here].watch.start(now);
    ACCOUNTS[here].told.store(now, Ordering::Relaxed);
}

/// It is taken off.
pub(super) fn ends(here: usize, now: u64) {
    ACCOUNTS[here].watch.stop(now);
}

/// Nanoseconds that the running thread has used on processor `here`, the caller's, since this was
/// asked last.
pub(super) fn take_used(here: usize, now: u64) -> u64 {
    let told = &ACCOUNTS[here].told;
    let used = now.saturating_sub(told.load(Ordering::Relaxed));
    told.store(now, Ordering::Relaxed);
    used
}

/// Nanoseconds that all processors together have run threads since boot.
pub fn busy_ns() -> u64 {
    let now = now_ns();
    let each = ACCOUNTS.iter().map(|account| account.watch.read(now));
    each.sum()
}

/// Nanoseconds that the calling processor has run threads since it last asked. Interrupts are off.
pub fn take_busy_ns() -> u64 {
    let account = &ACCOUNTS[cpu_index()];
    let busy = account.watch.read(now_ns());
    let taken = account.taken.load(Ordering::Relaxed);
    account.taken.store(busy.max(taken), Ordering::Relaxed);
    busy.saturating_sub(taken)
}
