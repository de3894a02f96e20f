//! The call chain: how control enters a domain and always finds its way out.
//!
//! ARCHITECTURE.md, "The life of a call", tells it as a story; decision 0001 says why it is so. A
//! proxy keeps a [`Record`] in its stack frame and links it into the thread's chain (publish), then
//! tests that the callee is alive, then calls through a small naked trampoline that writes the
//! callee-saved registers, the stack pointer and the return slot into the record and jumps on. The
//! method returns straight to the proxy. If the callee dies instead, the thread is put back to
//! where the trampoline was called, but into a *stub* that returns a valid `Err(DomainCrashed)` of
//! the method's own type. There is no unwinder and no function that returns twice.
//!
//! States of a record: linked (from [`enter`] to [`leave`]); while linked, [`CALLER_DEAD`] and
//! [`CALLEE_DEAD`] may be set on it by the thread itself (in [`end`]) or while the world is
//! stopped. Then the proxy drops the result, and goes on unwinding ([`unwind_further`]) instead of
//! returning into a dead domain, or gives an error instead of what a dead domain returned.

mod asked;
pub mod count;
pub(crate) mod drops;
pub(crate) mod end;
mod guarded;
pub mod handle;
mod landing;
mod method;
mod proxy;
pub(crate) mod stack;
pub mod thread;
mod uncrossed;

pub(crate) use guarded::{data_of, guarded_as};
pub use guarded::{guarded, internal};
pub use landing::{offsets, resume};
pub use method::Method;
pub(crate) use uncrossed::{clear_failure, note_failure};
pub use uncrossed::{failure, has_failed, has_handles};

pub use crate::domain::UNBOUNDED;
use crate::domain::queues;
use crate::domain::{ALIVE, Admitted, CRASH_NEXT, ControlBlock, DEAD};
use abi::RpcError;
use asked::Restock;
use core::sync::atomic::{AtomicU32, Ordering};
use thread::{set_top, stack_low, top};

/// One call from a domain (or the kernel) into a domain, on the stack of the calling thread.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Record {
    /// The record below it in the chain.
    pub previous: *mut Record,
    /// The callee.
    pub domain: *const ControlBlock,
    /// [`CALLER_DEAD`], [`CALLEE_DEAD`], [`COUNTED`] and [`DROP`], or 0.
    pub state: u32,
    /// Scheduler ticks that were spent in the callee itself.
    pub ticks: u32,
    /// Why something could not cross, as [`note_failure`] wrote it; 0: everything could.
    failure: u32,
    /// Stack pointer at the trampoline: it points to the return address into the proxy.
    pub(crate) sp: usize,
    rbx: usize,
    pub(crate) rbp: usize,
    r12: usize,
    r13: usize,
    r14: usize,
    r15: usize,
    /// First argument register: the return slot, where the result is returned in memory.
    rdi: usize,
    /// What is called.
    pub method: *const Method,
}

/// Record state: the domain that made this call is dead; do not return into it.
pub const CALLER_DEAD: u32 = 1;
/// Record state: the callee has died while the call was under way. What it still returned is
/// dropped.
pub const CALLEE_DEAD: u32 = 4;
/// Record state: the call counts as one of those that are under way in a domain with a budget for
/// them.
pub const COUNTED: u32 = 2;
/// Record state: the call is the drop of an object whose last handle went elsewhere.
pub(crate) const DROP: u32 = 8;

/// Stack that must be left for a call. A callee that needs no more than this less what the kernel's
/// own functions need cannot be made to overflow by a caller who has used up the rest; and every
/// kernel object makes do with it.
pub const CALL_RESERVE: usize = 32 * 1024;

/// Defines a function that is called where something is not as usual. It preserves all registers,
/// so that the way around it, which every call goes, need not keep anything in places that survive
/// it.
macro_rules! off_the_path {
    ($(#[$attribute:meta])* $visible:vis unsafe fn $name:ident($($argument:tt)*) -> $result:ty $body:block) => {
        $(#[$attribute])*
        #[cfg(target_os = "none")]
        #[cold]
        #[inline(never)]
        $visible unsafe extern "rust-cold" fn $name($($argument)*) -> $result $body

        $(#[$attribute])*
        #[cfg(not(target_os = "none"))]
        #[cold]
        #[inline(never)]
        $visible unsafe fn $name($($argument)*) -> $result $body
    };
}

/// What [`enter`] says of a call.
#[must_use = "only a call that is `Free` may be made at once"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It may be made.
    Free,
    /// [`admit`] must follow, which has the last word.
    AskAdmit,
}

impl Entered {
    #[inline(always)]
    fn when(is_free: bool) -> Self {
        if is_free {
            Entered::Free
        } else {
            Entered::AskAdmit
        }
    }
}

/// Links `record` for a call into `block`. [`leave`] ends it.
///
/// # Safety
/// `record` is valid for writes, in the caller's frame, until `leave`.
#[inline(always)]
pub unsafe fn enter(record: *mut Record, block: *const ControlBlock) -> Entered {
    // Before anything is linked: if what follows runs into the guard page, the caller is to blame.
    if stack_is_low(record) {
        return Entered::AskAdmit;
    }
    // SAFETY: see above; `block` is alive in memory as long as the proxy that names it.
    unsafe {
        (*record).previous = top();
        (*record).domain = block;
        (*record).state = 0;
        (*record).ticks = 0;
        (*record).failure = 0;
        #[cfg(test)]
        if crate::sync::is_broken(crate::sync::Broken::TestFirst) {
            let alive = (*block).alive.load(Ordering::Relaxed) == ALIVE;
            crate::sync::spin();
            set_top(record);
            return Entered::when(alive);
        }
        set_top(record);
        // A killer clears `alive` and then stops every processor; whoever published before that
        // stop is seen by it, whoever publishes after it sees `alive` cleared. So plain accesses
        // are enough.
        Entered::when((*block).alive.load(Ordering::Relaxed) == ALIVE)
    }
}

/// Whether too little stack is left below `record` for a call.
#[inline(always)]
fn stack_is_low(record: *const Record) -> bool {
    // Signed: in a Linux process there is some stack below the lowest that may be used.
    ((record as usize).wrapping_sub(stack_low()) as isize) < CALL_RESERVE as isize
}

/// How a call has ended.
#[must_use = "what the dead return counts for nothing, and nobody may return into them"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// As it should.
    Returned,
    /// The callee died meanwhile: its result counts for nothing, the caller gets an error.
    CalleeDied,
    /// The caller died meanwhile, and perhaps the callee as well: [`unwind_further`] must follow.
    CallerDied,
}

/// What [`leave`] says of a call.
#[must_use = "a call that is not `Clean` has an outcome to be asked for"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It ended as it should, and there is no more to do.
    Clean,
    /// [`outcome`] must follow.
    AskOutcome,
}

/// Unlinks `record`.
///
/// # Safety
/// `record` is the top record, linked by [`enter`].
#[inline(always)]
pub unsafe fn leave(record: *mut Record) -> Left {
    // SAFETY: see above. Volatile, because another processor may have written it while the world
    // stood.
    unsafe {
        set_top((*record).previous);
        crate::sync::point();
        if (&raw const (*record).state).read_volatile() == 0 {
            Left::Clean
        } else {
            Left::AskOutcome
        }
    }
}

off_the_path! {
    /// Looks again at what [`enter`] did not let in at once. The call of `method` can be made
    /// nevertheless if it only has to be counted, or frees memory in a domain that is short of it.
    /// Also carries out a crash that was asked for.
    ///
    /// # Errors
    /// Why the call cannot be made; the record is not linked then.
    ///
    /// # Safety
    /// `enter` said [`Entered::AskAdmit`] of just these.
    pub unsafe fn admit(
        record: *mut Record,
        block: *const ControlBlock,
        method: &'static Method,
    ) -> Result<(), RpcError> {
        if stack_is_low(record) {
            return Err(RpcError::StackLow);
        }
        // SAFETY: the record is linked and the block in memory, by the caller's duty.
        unsafe {
            // First, and with no register in use that would have to be preserved: it is what
            // callers meet most, and nothing can change it.
            if (*block).alive.load(Ordering::Relaxed) == DEAD {
                abandon(record);
                return Err(RpcError::DomainCrashed);
            }
            admit_living(record, block, method)
        }
    }
}

off_the_path! {
    /// [`admit`] for a callee that was not dead a moment ago.
    ///
    /// # Errors
    /// As [`admit`].
    ///
    /// # Safety
    /// As that of [`admit`], and enough stack is left.
    unsafe fn admit_living(
        record: *mut Record,
        block: *const ControlBlock,
        method: &'static Method,
    ) -> Result<(), RpcError> {
        // SAFETY: the record is linked and the block in memory, by the caller's duty.
        unsafe {
            let Err(error) = admit_linked(record, block, method) else {
                return Ok(());
            };
            // Not linked any more. Who is refused for want of memory has the domain look for some,
            // now and then.
            if error != RpcError::NoMemory
                || asked::restock(&*block) == Restock::NotTried
            {
                return Err(error);
            }
            match enter(record, block) {
                Entered::Free => Ok(()),
                Entered::AskAdmit => admit_linked(record, block, method),
            }
        }
    }
}

/// Unlinks `record`, whose call is not made. If the caller has died the thread goes on to leave it,
/// also if the reaper has not seen this record: it was linked for a moment, and who calls the dead
/// again and again is nearly always in here, where no reaper touches him.
///
/// # Safety
/// `record` is the top record, and nothing was handed over that has not been dropped.
#[inline(always)]
unsafe fn abandon(record: *mut Record) {
    // SAFETY: by the caller's duty.
    unsafe {
        if leave(record) == Left::AskOutcome && outcome(record) == Outcome::CallerDied {
            unwind_further(record);
        }
    }
    end::leave_if_dead();
}

/// What [`admit`] does once there is enough stack.
///
/// # Errors
/// As [`admit`]; the record is not linked any more then.
///
/// # Safety
/// As that of [`admit`], and enough stack is left.
unsafe fn admit_linked(
    record: *mut Record,
    block: *const ControlBlock,
    method: &Method,
) -> Result<(), RpcError> {
    // SAFETY: the record is linked and the block in memory, by the caller's duty.
    unsafe {
        let error = match (*block).admit(method.frees) {
            Ok(Admitted::Uncounted) => return Ok(()),
            Ok(Admitted::Counted) => {
                // One instruction, because the world may be stopped before or after it, and the
                // state changed.
                AtomicU32::from_ptr(&raw mut (*record).state).fetch_or(COUNTED, Ordering::Relaxed);
                return Ok(());
            }
            Err(error) => error,
        };
        abandon(record);
        if (*block).alive.load(Ordering::Relaxed) == CRASH_NEXT {
            asked::crash_as_asked(&*block);
        }
        Err(error)
    }
}

off_the_path! {
    /// How the call of `record` has ended, which is not as usual. Ends its count if it was counted.
    ///
    /// # Safety
    /// [`leave`] has just said that there is more to do for `record`, whose frame still stands.
    pub unsafe fn outcome(record: *const Record) -> Outcome {
        // SAFETY: by the caller's duty. The callee's block is in memory: the caller, from whom the
        // thread has not returned, holds the proxy that names it.
        unsafe {
            let state = (&raw const (*record).state).read_volatile();
            if state & COUNTED != 0 {
                (*(*record).domain).give_call();
            }
            if state & CALLEE_DEAD != 0 {
                queues::has_left();
            }
            match state {
                _ if state & CALLER_DEAD != 0 => Outcome::CallerDied,
                _ if state & CALLEE_DEAD != 0 => Outcome::CalleeDied,
                _ => Outcome::Returned,
            }
        }
    }
}

off_the_path! {
    /// Ends a call in which a value could not be handed over: leaves `record`; what was noted in
    /// it.
    ///
    /// # Safety
    /// `record` is the top record, and what was to be handed over has been dropped.
    pub unsafe fn give_up(record: *mut Record) -> RpcError {
        // SAFETY: by the caller's duty.
        unsafe {
            let error = failure(record).unwrap_or(RpcError::Refused);
            abandon(record);
            error
        }
    }
}

/// Goes on unwinding after `record` was left and its caller found dead.
///
/// # Safety
/// `record` was just unlinked by [`leave`] and its frame still stands.
#[cold]
#[inline(never)]
pub unsafe fn unwind_further(record: *mut Record) -> ! {
    // SAFETY: the caller is a dead domain, so it was entered through a record, which is now the
    // top.
    unsafe { resume((*record).previous) }
}
