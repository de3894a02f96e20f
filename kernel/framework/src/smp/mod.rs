//! Several processors: starting them, asking things of each other, stopping all but one.
//!
//! One interrupt vector carries all requests; a word per processor says which are pending
//! ([`request`]). What keeps two processors from waiting for each other for ever:
//!
//! - a request to flush translations is also served by a processor that spins for any lock, waits
//!   for anything here, or is parked; it needs no lock;
//! - an idle processor is not asked to flush or to park at all: it does both, where it missed
//!   something, before it runs a thread again ([`catch_up`]);
//! - a request to call a function, or to park, is served where interrupts are enabled, or in the
//!   waits of this module, whose callers hold no spin lock.

mod call;
mod cpu_local;
mod flush;
mod request;
mod start;
mod stop;

pub use call::call_all;
pub use cpu_local::CpuLocal;
pub use flush::flush_everywhere;
pub use stop::{ThreadView, World, stop_world};

pub(crate) use flush::{flush_table, leave_table, poll_flush};
pub(crate) use request::{handle as request_arrived, request_reschedule};
pub(crate) use start::{arrive, enter_boot_processor, start_processors};

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::controller;
use crate::arch::cpu::cpu_index;

/// Processors that run threads; they have the indices below this number.
static ONLINE: AtomicUsize = AtomicUsize::new(1);

/// How many processors run threads. Their indices are 0 up to this number.
#[inline]
pub fn online() -> usize {
    ONLINE.load(Ordering::SeqCst)
}

/// The indices of all processors that run threads, but the calling one. Interrupts must be off.
fn others() -> impl Iterator<Item = usize> {
    let here = cpu_index();
    (0..online()).filter(move |index| *index != here)
}

/// What an idle processor does before it runs a thread: forgets translations that it was not asked
/// to forget while idle, and waits while the world is stopped. Interrupts are off.
pub(crate) fn catch_up() {
    flush::catch_up();
    stop::park(core::ptr::null_mut());
    flush::catch_up();
}

/// Stops all other processors for good, whatever they are doing, for a kernel that gives up.
pub fn halt_others() {
    let _irq = crate::sync::IrqOff::new();
    if online() > 1 {
        controller::expect_halt();
        others().for_each(controller::halt);
    }
}
