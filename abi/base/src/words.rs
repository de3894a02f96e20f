//! The words of the running thread, behind the GS register.
//!
//! Trampolines and runtime reach them by an offset from GS, on every platform. Here is the only
//! place that says which word is where: assembly takes the offsets below, which are constants.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, AtomicUsize};

/// The words that GS points to while code of the kernel or of a domain runs. The platform has a
/// block that begins with them for each processor (and loads it when it switches threads) or for
/// each thread (of a Linux process).
///
/// Only the running thread writes them. They are atomics because others read them: whoever has
/// stopped the world.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ThreadWords {
    /// The top call record; 0: the thread has made no call.
    pub top: AtomicUsize,
    /// The lowest address of the stack that kernel and domains may use.
    pub stack_low: AtomicUsize,
    /// Locks of the core that the thread holds. Counted in a Linux process only: elsewhere
    /// interrupts are off as long as one is held, and nobody has to ask.
    pub locks: AtomicUsize,
    /// The address of this block.
    pub own: AtomicUsize,
    /// A number that threads which run at the same time seldom share: the processor's, or in a
    /// Linux process the thread's.
    pub number: AtomicUsize,
}

/// Offset of [`ThreadWords::top`], for assembly.
pub const TOP: usize = offset_of!(ThreadWords, top);
/// Offset of [`ThreadWords::stack_low`].
pub const STACK_LOW: usize = offset_of!(ThreadWords, stack_low);
/// Offset of [`ThreadWords::locks`].
pub const LOCKS: usize = offset_of!(ThreadWords, locks);
/// Offset of [`ThreadWords::own`].
pub const OWN: usize = offset_of!(ThreadWords, own);
/// Offset of [`ThreadWords::number`].
pub const NUMBER: usize = offset_of!(ThreadWords, number);

/// Where the [`Counts`] of a processor (or thread) begin, from what GS points to.
pub const COUNTS: usize = 1024;
/// Calls that can be told apart while calls are counted.
pub const CELLS: usize = 4096;

/// Calls that were counted on one processor, or by one thread of a Linux process. Nobody else
/// writes there, and each is counted by one instruction relative to GS: so no count is lost, with
/// no lock and no atomic operation.
#[derive(Debug)]
#[repr(C, align(1024))]
pub struct Counts(pub [AtomicU64; CELLS]);

impl ThreadWords {
    /// All of them 0.
    pub const fn new() -> Self {
        ThreadWords {
            top: AtomicUsize::new(0),
            stack_low: AtomicUsize::new(0),
            locks: AtomicUsize::new(0),
            own: AtomicUsize::new(0),
            number: AtomicUsize::new(0),
        }
    }
}
