//! The per-processor block that GS points to.
//!
//! The offsets of the words up to `user_context` are fixed: generated code of the isolation half
//! and the trap and user-mode entry assembly use them. New fields go behind them.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// One processor's private data. All fields are atomics so that a shared reference suffices;
/// only their own processor writes them unless a field says otherwise.
#[repr(C, align(64))]
pub struct PerCpu {
    /// gs:[0]: top call record of the running thread.
    pub top_record: AtomicUsize,
    /// gs:[8]: lowest usable stack address of the running thread.
    pub stack_low: AtomicUsize,
    /// gs:[16]: isolation block of the running thread, opaque to the framework.
    pub isolation_block: AtomicUsize,
    /// gs:[24]: address of this block.
    pub self_pointer: AtomicUsize,
    /// gs:[32]: index of this processor.
    pub cpu_index: AtomicU64,
    /// gs:[40]: the user stack pointer while the system-call entry switches stacks.
    pub(crate) user_rsp: AtomicUsize,
    /// gs:[48]: kernel stack pointer to return to when user mode traps.
    pub(crate) kernel_rsp: AtomicUsize,
    /// gs:[56]: register area of the user context that runs on this processor, or 0.
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
            top_record: AtomicUsize::new(0),
            stack_low: AtomicUsize::new(0),
            isolation_block: AtomicUsize::new(0),
            self_pointer: AtomicUsize::new(0),
            cpu_index: AtomicU64::new(0),
            user_rsp: AtomicUsize::new(0),
            kernel_rsp: AtomicUsize::new(0),
            user_context: AtomicUsize::new(0),
            fault_depth: AtomicUsize::new(0),
            need_resched: AtomicBool::new(false),
            sched: [const { AtomicUsize::new(0) }; 8],
        }
    }
}

const _: () = {
    assert!(core::mem::offset_of!(PerCpu, isolation_block) == 16);
    assert!(core::mem::offset_of!(PerCpu, self_pointer) == 24);
    assert!(core::mem::offset_of!(PerCpu, cpu_index) == 32);
    assert!(core::mem::offset_of!(PerCpu, user_rsp) == 40);
    assert!(core::mem::offset_of!(PerCpu, kernel_rsp) == 48);
    assert!(core::mem::offset_of!(PerCpu, user_context) == 56);
};
