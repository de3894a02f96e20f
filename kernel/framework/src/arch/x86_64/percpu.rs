//! The per-processor block that GS points to.
//!
//! It begins with the words of the running thread, which trampolines and runtime reach through GS.

use abi::words::ThreadWords;
use core::sync::atomic::{AtomicBool, AtomicUsize};

/// One processor's private data. All fields are atomics so that a shared reference suffices;
/// only their own processor writes them unless a field says otherwise.
#[repr(C, align(64))]
pub struct PerCpu {
    /// Of the thread that runs on this processor; the number is the processor's.
    pub words: ThreadWords,
    /// The user stack pointer while the system-call entry switches stacks.
    pub(crate) user_rsp: AtomicUsize,
    /// Kernel stack pointer to return to when user mode traps.
    pub(crate) kernel_rsp: AtomicUsize,
    /// Register area of the user context that runs on this processor, or 0.
    pub(crate) user_context: AtomicUsize,

    /// Depth of fault handling, to stop a fault inside the fault handler.
    pub(crate) fault_depth: AtomicUsize,
    /// Set by an interrupt that wants the running thread to give way as soon as it may.
    pub need_resched: AtomicBool,
    /// Words for the task module's use.
    pub(crate) sched: [AtomicUsize; 8],
}

impl PerCpu {
    /// A block that belongs to no processor yet.
    pub(super) const fn new() -> Self {
        Self {
            words: ThreadWords::new(),
            user_rsp: AtomicUsize::new(0),
            kernel_rsp: AtomicUsize::new(0),
            user_context: AtomicUsize::new(0),
            fault_depth: AtomicUsize::new(0),
            need_resched: AtomicBool::new(false),
            sched: [const { AtomicUsize::new(0) }; 8],
        }
    }
}

// GS points to the block, and to the words.
const _: () = assert!(core::mem::offset_of!(PerCpu, words) == 0);
