//! The block of each processor. The machine has a register that points to it.
//!
//! It begins with the words of the running thread, which trampolines and runtime reach through that
//! register.

use abi::words::{self, Counts, ThreadWords};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::MAX_CPUS;
use super::machine::cpu::Own;

pub use super::machine::cpu::this_cpu;
#[cfg(feature = "selftest")]
pub(crate) use super::machine::cpu::{Features, features};
pub(crate) use super::machine::cpu::{is_emulated, log_features, place, sched_word};

static BLOCKS: [PerCpu; MAX_CPUS] = [const { PerCpu::new() }; MAX_CPUS];

/// Words of a block for the task module's use.
pub(crate) const SCHED_WORDS: usize = 8;

/// One processor's private data. All fields are atomics so that a shared reference suffices;
/// only their own processor writes them unless a field says otherwise.
#[repr(C, align(64))]
pub struct PerCpu {
    /// Of the thread that runs on this processor; the number is the processor's.
    pub words: ThreadWords,
    /// What the machine keeps there for itself.
    pub(super) own: Own,
    /// Depth of fault handling, to stop a fault inside the fault handler.
    pub(crate) fault_depth: AtomicUsize,
    /// Set by an interrupt that wants the running thread to give way as soon as it may.
    pub need_resched: AtomicBool,
    /// The program's thread whose vector registers are newer here than in memory, or 0; the word
    /// owns a counted reference.
    pub(crate) user_live: AtomicUsize,
    /// The number of the program's thread whose vector registers were loaded here last.
    pub(crate) user_id: AtomicU64,
    /// Words for the task module's use.
    pub(crate) sched: [AtomicUsize; SCHED_WORDS],
    /// Calls that were counted here.
    pub counts: Counts,
}

impl PerCpu {
    /// A block that belongs to no processor yet.
    const fn new() -> Self {
        Self {
            words: ThreadWords::new(),
            own: Own::new(),
            fault_depth: AtomicUsize::new(0),
            need_resched: AtomicBool::new(false),
            user_live: AtomicUsize::new(0),
            user_id: AtomicU64::new(0),
            sched: [const { AtomicUsize::new(0) }; SCHED_WORDS],
            counts: Counts([const { AtomicU64::new(0) }; words::CELLS]),
        }
    }
}

// What points to the block points to the words.
const _: () = assert!(core::mem::offset_of!(PerCpu, words) == 0);
const _: () = assert!(core::mem::offset_of!(PerCpu, counts) == words::COUNTS);

/// Index of the processor this code runs on.
#[inline]
pub fn cpu_index() -> usize {
    this_cpu().words.number.load(Ordering::Relaxed)
}

/// The block of processor `index`, also from another processor.
pub fn block(index: usize) -> &'static PerCpu {
    &BLOCKS[index]
}
