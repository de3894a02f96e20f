//! Threads: creation and end, the context switch, scheduling, and waiting on a word of memory.
//!
//! ```text
//!            spawn                 picked by a processor (compare-and-swap)
//!   (new) ----------> READY <------------------------------------+
//!                       ^  \------------> RUNNING ---- yield, preempted, once its context is saved
//!              woken    |                  |    \
//!                       |                  v     v
//!                    BLOCKED <-------- BLOCKING  EXITED (stack freed by the reaper)
//!                              context     |
//!                              saved       +--woken before that--> WOKEN --context saved--> READY
//! ```
//!
//! The state is one atomic word per thread. Only the change READY to RUNNING lets a processor load
//! a thread's context, and a thread becomes READY only after its context was saved completely; so
//! whatever the injected [`Scheduler`] answers, no thread runs twice. Idle is not a thread: a
//! processor without one halts on its scheduler stack.
//!
//! Saved contexts have two forms: a thread that gave way by itself keeps its callee-saved
//! registers on its stack; one that was preempted has its whole [`TrapFrame`] copied into it.
//!
//! [`TrapFrame`]: crate::arch::trap::TrapFrame

mod busy;
mod group;
mod life;
mod policy;
mod preempt;
mod queue;
mod sched;
mod table;
mod thread;
mod wait;

pub use busy::{busy_ns, take_busy_ns};
pub use group::{Group, MAX_GROUPS, join_group};
pub use life::{DEFAULT_STACK_PAGES, exit, join, reap, spawn, spawn_as, start};
pub use policy::{Attributes, Choice, Class, Left, Moment, Placement, Reason, Scheduler, Share};
pub use preempt::{AtomicContext, PreemptOff, may_sleep, preempt_point};
pub use queue::RunQueue;
pub use sched::{ServiceHook, refusals, set_service_hook, yield_now};
pub use table::for_each;
pub use thread::{POLICY_WORDS, Thread, ThreadId, ThreadRef};
pub use wait::{
    WaitResult, clear_interrupt, interrupt, interrupt_marked, sleep_until, wait_on,
    wait_uninterrupted, wake, wake_later,
};

pub(crate) use life::exit_from_entry;
pub(crate) use preempt::preempt_from;
#[cfg(feature = "selftest")]
pub(crate) use sched::{inject, policy as scheduler};
pub(crate) use sched::{is_idle, run_processor, slice_over};
pub(crate) use thread::State;
pub(crate) use wait::time_out;

/// The id of the running thread, or `None` on a processor that runs none.
pub fn current_id() -> Option<ThreadId> {
    sched::current().map(|thread| thread.id())
}

/// The running thread, or `None` on a processor that runs none.
pub fn current() -> Option<ThreadRef> {
    sched::current().map(Thread::to_ref)
}

/// The living thread with this id.
pub fn find(id: ThreadId) -> Option<ThreadRef> {
    table::find(id)
}

/// Number of living threads.
pub fn count() -> usize {
    table::count()
}
