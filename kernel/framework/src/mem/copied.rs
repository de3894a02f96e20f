//! How many bytes the kernel has copied for domains: so that a test can say how often a byte of a
//! file is copied on its way.
//!
//! Nobody but the kernel can reach a page of a memory object or the memory of a program. So what
//! goes from one to the other is either copied at once, or counted twice.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::MAX_CPUS;
use crate::arch::cpu::cpu_index;

/// Between what was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// A page of a memory object and a program.
    PageAndProgram,
    /// A page of a memory object and a domain, or the kernel.
    PageAndDomain,
    /// A program and a domain, or the kernel.
    ProgramAndDomain,
}

/// A processor's counts, in a line of the cache of their own.
#[repr(align(64))]
struct Counts([AtomicU64; 3]);

static COUNTS: [Counts; MAX_CPUS] = [const { Counts([const { AtomicU64::new(0) }; 3]) }; MAX_CPUS];

/// So many bytes more.
#[inline]
pub(crate) fn count(between: Between, bytes: usize) {
    // Whoever is moved to another processor in between counts there: nothing is lost.
    COUNTS[cpu_index()].0[between as usize].fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Bytes that all processors have copied since boot.
pub fn bytes(between: Between) -> u64 {
    let counts = COUNTS.iter().map(|counts| &counts.0[between as usize]);
    counts.map(|count| count.load(Ordering::Relaxed)).sum()
}
