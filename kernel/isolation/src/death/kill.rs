//! How a domain dies, and how everything that it owned comes back.
//!
//! 1. *Death*: `alive` is cleared (the first reason wins). From now on calls into the domain fail.
//!    This and what a thread itself does on its way out is in [`crate::call::end`].
//! 2. *Leaving*: every thread that is inside leaves, its caller gets the error. The thread in which
//!    the crash happened leaves at once. For the others the reaper stops the world, again and again
//!    until nobody is inside: a thread whose instruction pointer is in the dead image is put into
//!    the error stub of its top record; one that waits on the dead domain's behalf is woken; one
//!    that is deeper, in a domain that the dead one called, finishes that call, and its proxy finds
//!    [`CALLER_DEAD`](crate::call::CALLER_DEAD) when it returns. A thread in kernel text is never
//!    touched: it may own something. It is met again on its way out. Where nobody can be inside the
//!    world is not stopped.
//! 3. *Reclaim* (in [`crate::death::undertaker`]), when no record of any thread names the domain:
//!    proxies that it held, shared objects, private heap, image. The order matters: dropping
//!    proxies runs other domains' code and ends kernel objects (which stops devices), freeing
//!    memory comes last.

mod reaper;
mod watchdog;

#[cfg(test)]
pub(crate) use reaper::usher_out;
pub(crate) use reaper::{Patience, reaper_round};
pub(crate) use watchdog::leave_if_late;
use watchdog::runs_code_of;
pub use watchdog::{Culprit, fault, tick};

use crate::call::end::begin_reclaim;
use crate::call::handle;
use crate::call::thread::with_root;
use crate::domain::{self, CRASH_NEXT, ControlBlock, Died, Reason, SHORT, budget, queues};
use crate::klog;
use crate::memory::heap::OBJECTS;
use crate::platform::{Attributes, platform};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Milliseconds that one scheduler tick stands for.
pub const TICK_MS: u32 = 10;
/// Nanoseconds between two looks at threads that have not left yet: at first, and when it takes
/// long.
const LOOK_AGAIN: u64 = 1_000_000;
const LOOK_AGAIN_LATER: u64 = 8_000_000;
/// Nanoseconds between two looks for each thread that there is, at the least: some twenty times
/// what a look at it takes.
const LOOK_PAUSE: u64 = 2_000;
/// Nanoseconds for which work waits for a helper to be idle before there is one more. The model's
/// clock counts looks at it.
const HELP_AFTER: u64 = if cfg!(test) { 2 } else { 10_000_000 };

/// Starts the reaper. Called once at boot.
///
/// # Panics
/// If there is no memory for its thread.
pub fn init() {
    domain::prepare_events();
    // Room for the usual number from the start, so that no death leaves the queues larger.
    queues::make_room(LOOKED_AT).expect("there is memory for the first domains at boot");
    crate::death::undertaker::init();
    platform()
        .spawn("reaper", reaper, 0, &Attributes::URGENT)
        .expect("memory for the first thread");
}

/// Ends `block` from outside, for `reason`. Returns when it is dead; it may be the caller's own
/// domain, in which case the caller is unwound on its way out of the kernel.
pub fn kill(block: &Arc<ControlBlock>, reason: Reason) {
    if block.die(reason) == Died::Now {
        // That it was ended by right is told when it is cleared away: one line for each program
        // that ends.
        if reason != Reason::Killed {
            klog!("{}: domain {} ended: {:?}", block.name(), block.id, reason);
        }
        begin_reclaim(block);
    }
}

/// Threads that clear away what dead domains owned; there are more when much is to be done, and one
/// at the least.
#[cfg(feature = "faults")]
pub fn helpers() -> u32 {
    crate::death::undertaker::helpers()
}

/// What becomes of [`ask_to_crash`].
#[must_use = "a domain that is dead, or is to crash already, does not crash once more"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashRequest {
    /// Its next call makes it panic.
    Noted,
    /// It is dead, or somebody has asked before.
    TooLate,
}

/// Makes the domain panic inside its next call.
pub fn ask_to_crash(block: &ControlBlock) -> CrashRequest {
    let next = |alive| (alive == block.open() || alive == SHORT).then_some(CRASH_NEXT);
    match block
        .alive
        .fetch_update(Ordering::SeqCst, Ordering::Relaxed, next)
    {
        Ok(_) => CrashRequest::Noted,
        Err(_) => CrashRequest::TooLate,
    }
}

/// The first function of the reaper's thread.
extern "C" fn reaper(_: usize) {
    with_root(|| {
        let mut patience = Patience::default();
        patience.dying.reserve(LOOKED_AT);
        patience.busy.reserve(LOOKED_AT);
        loop {
            reaper_round(&mut patience);
        }
    })
}

/// How many dead domains the reaper can look at together where there is no memory for more.
const LOOKED_AT: usize = 64;

/// Frees everything that the dead domain owned. Nobody is inside. [`State::Gone`] is to be entered
/// next.
pub(crate) fn reclaim(block: &Arc<ControlBlock>) {
    let handles = handle::release_all_of(block.owner());
    // SAFETY: it is dead, and nobody is inside.
    let objects = unsafe { OBJECTS.free_all_of(block.owner()) };
    let bytes = block.free_memory();
    budget::close(block);
    domain::forget(block.id);
    block.tell_lost(block.take_lost_lines());
    let how = match block.reason() {
        Reason::Killed => "ended, ",
        _ => "",
    };
    klog!(
        "{}: domain {} {how}cleared away: {bytes} bytes, {objects} shared objects, {handles} handles",
        block.name(),
        block.id
    );
}
