//! Data that threads on all processors use at once, in a part for each.

/// How many parts there are. Where there are more processors, some share one.
pub(crate) const PARTS: usize = 8;

/// In lines of memory of its own, so that writing to one part takes no other from its processor.
#[repr(align(64))]
pub(crate) struct Part<T>(pub(crate) T);

/// A value for each processor: a count, or a store of things at hand.
///
/// Which part is meant by [`mine`](Self::mine) is a hint: the thread may be on another processor in
/// the next moment, and two threads take turns on one. So a part is shared data as any, an atomic
/// or something behind a lock; what is won is that two processors seldom meet there.
///
/// ```
/// use core::sync::atomic::{AtomicU64, Ordering};
/// let calls = domain_rt::processors::PerProcessor::new(|| AtomicU64::new(0));
/// calls.mine().fetch_add(1, Ordering::Relaxed);
/// let sum: u64 = calls.all().map(|part| part.load(Ordering::Relaxed)).sum();
/// assert_eq!(sum, 1);
/// ```
///
/// ```compile_fail,E0277
/// fn shareable<T: Sync>(_: T) {}
/// let parts = domain_rt::processors::PerProcessor::new(|| core::cell::Cell::new(1));
/// shareable(parts);
/// ```
pub struct PerProcessor<T>(pub(crate) [Part<T>; PARTS]);

impl<T> PerProcessor<T> {
    /// A part for each processor.
    pub fn new(mut make: impl FnMut() -> T) -> Self {
        PerProcessor(core::array::from_fn(|_| Part(make())))
    }

    /// The part of the processor that runs this.
    pub fn mine(&self) -> &T {
        &self.0[number() % PARTS].0
    }

    /// All parts.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|part| &part.0)
    }
}

/// A number that threads which run at the same time seldom share.
#[cfg(target_os = "none")]
fn number() -> usize {
    let number;
    // SAFETY: GS points to the words of the running thread whenever code of a domain runs; this
    // only reads one of them.
    unsafe {
        core::arch::asm!("mov {}, gs:[{at}]", out(reg) number, at = const abi::words::NUMBER,
            options(nostack, preserves_flags, readonly))
    };
    number
}

/// In tests on the host nobody asks for more.
#[cfg(not(target_os = "none"))]
fn number() -> usize {
    0
}
