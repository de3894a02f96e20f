//! The processor time and the calls of a domain.

use super::ControlBlock;
use crate::sync::AtomicU64;
use abi::words;
use core::sync::atomic::Ordering;

/// Places that counts are spread over, so that processors do not write the same cache line: a power
/// of two.
pub(super) const PLACES: usize = 8;

/// Calls into a domain from one place. Alone on its cache line.
#[repr(align(64))]
pub(super) struct Calls(pub(super) AtomicU64);

/// The word of the running thread at this offset; see [`abi::words`].
#[inline(always)]
pub(crate) fn word<const AT: usize>() -> usize {
    let word: usize;
    // SAFETY: GS points to the words of the running thread whenever kernel or domain code runs.
    unsafe {
        core::arch::asm!("mov {}, gs:[{at}]", out(reg) word, at = const AT, options(nostack, preserves_flags, pure, readonly))
    };
    word
}

/// The place where the running thread counts.
#[inline(always)]
pub(super) fn place() -> usize {
    word::<{ words::NUMBER }>() % PLACES
}

impl ControlBlock {
    /// Counts a call. Two threads that count at one place may lose a count; that is the price of no
    /// atomic operation.
    #[inline(always)]
    pub fn count_call(&self) {
        let Calls(calls) = &self.calls[place()];
        calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Calls into it since its start.
    pub fn calls(&self) -> u64 {
        let calls = self.calls.iter();
        calls
            .map(|Calls(calls)| calls.load(Ordering::Relaxed))
            .sum()
    }

    /// Charges it with `ns` nanoseconds of processor time, at the end of which its code was met.
    /// The only place that does is [`crate::death::kill::tick`].
    pub(crate) fn charge(&self, ns: u64) {
        self.counters.own_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Nanoseconds of processor time that its code has used, by samples: see
    /// [`crate::death::kill::tick`].
    pub fn own_ns(&self) -> u64 {
        self.counters.own_ns.load(Ordering::Relaxed)
    }

    /// A thread that it created, with `stack` bytes of stack, has ended after `ns` nanoseconds on
    /// processors.
    pub(crate) fn thread_ended(&self, ns: u64, stack: usize) {
        self.counters.threads_ns.fetch_add(ns, Ordering::Relaxed);
        self.give_thread(stack);
    }

    /// Nanoseconds of processor time that those of its threads used which have ended, in it and in
    /// the domains that they called.
    pub fn threads_ns(&self) -> u64 {
        self.counters.threads_ns.load(Ordering::Relaxed)
    }
}
