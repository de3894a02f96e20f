//! Requests from one processor to another: a word of pending bits each, and one vector.
//!
//! Whoever sets the first bit of an empty word sends the interrupt. Bits are also taken out
//! without the interrupt, by waits that serve them; the interrupt then finds nothing to do.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use super::{call, flush, stop};
use crate::arch::trap::TrapFrame;
use crate::arch::{MAX_CPUS, controller, cpu};
use crate::sync::IrqOff;
use crate::task;

/// Forget translations.
pub(super) const FLUSH: u32 = 1;
/// Call a function.
pub(super) const CALL: u32 = 2;
/// Park until the world goes on.
pub(super) const STOP: u32 = 4;
/// Look for a thread to run.
pub(super) const RESCHEDULE: u32 = 8;

static PENDING: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];

/// Asks the processor `index`, another one, for `what`. Interrupts must be off.
pub(super) fn send(index: usize, what: u32) {
    if PENDING[index].fetch_or(what, Ordering::SeqCst) == 0 {
        controller::request(index);
    }
}

/// Takes the bit `what` from this processor's word; says whether it was set.
pub(super) fn take(what: u32) -> bool {
    let pending = &PENDING[cpu::cpu_index()];
    pending.load(Ordering::Relaxed) & what != 0
        && pending.fetch_and(!what, Ordering::SeqCst) & what != 0
}

/// Makes another processor pick a thread: the running one gives way, an idle one looks.
pub(crate) fn request_reschedule(index: usize) {
    let _irq = IrqOff::new();
    send(index, RESCHEDULE);
}

/// The request interrupt.
pub(crate) fn handle(frame: &mut TrapFrame) {
    controller::end();
    loop {
        let taken = PENDING[cpu::cpu_index()].swap(0, Ordering::SeqCst);
        if taken == 0 {
            break;
        }
        serve(taken, frame);
    }
    task::preempt_from(frame);
}

fn serve(taken: u32, frame: &mut TrapFrame) {
    if taken & FLUSH != 0 {
        flush::serve();
    }
    if taken & CALL != 0 {
        call::serve();
    }
    if taken & RESCHEDULE != 0 {
        let flag = &cpu::this_cpu().need_resched;
        flag.store(true, Ordering::Relaxed);
    }
    if taken & STOP != 0 {
        stop::park(frame);
    }
}

/// Serves what may be served in a wait of this module: the caller holds no spin lock.
pub(super) fn poll() {
    flush::poll_flush();
    if take(CALL) {
        call::serve();
    }
    if take(STOP) {
        stop::park(ptr::null_mut());
    }
}
