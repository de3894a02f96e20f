//! Calls of functions of a domain's own runtime, whose addresses it gave when it started: to panic,
//! and to look for memory.

use super::{Method, UNBOUNDED, guarded, internal};
use crate::domain::{CRASH_NEXT, ControlBlock};
use crate::platform::platform;
use core::sync::atomic::Ordering;

static CRASH: Method = internal("crash", UNBOUNDED);

/// Carries out what was asked for by [`ask_to_crash`](crate::death::kill::ask_to_crash): makes the
/// domain's own runtime panic. One caller does it, others go on.
pub(crate) fn crash_as_asked(block: &ControlBlock) {
    if block
        .alive
        .compare_exchange(
            CRASH_NEXT,
            block.open(),
            Ordering::SeqCst,
            Ordering::Relaxed,
        )
        .is_err()
    {
        return;
    }
    let entry = block.crash_entry.load(Ordering::Relaxed);
    if entry != 0 {
        // SAFETY: the address was given by the runtime of this very domain for this.
        unsafe {
            let panic: unsafe extern "C" fn(*mut u8) = core::mem::transmute(entry);
            let _ = guarded(block, &CRASH, panic, core::ptr::null_mut());
        }
    }
}

static RESTOCK: Method = internal("restock", 0);

/// Nanoseconds between two looks for memory by a domain that is short of it, on behalf of calls
/// that are refused.
const RESTOCK_EVERY: u64 = 10_000_000;

/// Whether a domain that is short of memory has looked for some.
#[must_use = "after a look a call that was refused may come in"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restock {
    /// It has.
    Looked,
    /// It has not: it did so a moment ago, or has died meanwhile.
    NotTried,
}

/// Has the runtime of a domain that is short of memory look whether there is some now.
pub(crate) fn restock(block: &ControlBlock) -> Restock {
    let entry = block.restock_entry.load(Ordering::Relaxed);
    let last = block.counters.restocked.load(Ordering::Relaxed);
    let now = platform().now();
    if entry == 0
        || last != 0 && now.saturating_sub(last) < RESTOCK_EVERY
        || block
            .counters
            .restocked
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
    {
        return Restock::NotTried;
    }
    // SAFETY: the address was given by the runtime of this very domain for this.
    unsafe {
        let look: unsafe extern "C" fn(*mut u8) = core::mem::transmute(entry);
        match guarded(block, &RESTOCK, look, core::ptr::null_mut()) {
            Ok(()) => Restock::Looked,
            Err(_) => Restock::NotTried,
        }
    }
}
