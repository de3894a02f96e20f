//! TLB shootdown: making all processors forget translations.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::{others, request};
use crate::arch::cpu::cpu_index;
use crate::mem::tlb;
use crate::sync::IrqOff;

/// Taken by the processor whose shootdown is under way; guards the three below.
static BUSY: AtomicBool = AtomicBool::new(false);
static START: AtomicUsize = AtomicUsize::new(0);
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// A bit for each processor that has still to flush.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// Flushes `pages` pages from address `start` on all processors; returns when all have done so.
///
/// May be called with interrupts off and with spin locks held.
pub fn flush_everywhere(start: usize, pages: usize) {
    let _irq = IrqOff::new();
    tlb::flush_local(start, pages);
    let mask = others().fold(0, |mask, index| mask | 1 << index);
    if mask == 0 {
        return;
    }
    while BUSY.swap(true, Ordering::Acquire) {
        poll_flush();
        core::hint::spin_loop();
    }
    START.store(start, Ordering::Relaxed);
    PAGES.store(pages, Ordering::Relaxed);
    WAITING.store(mask, Ordering::SeqCst);
    others().for_each(|index| request::send(index, request::FLUSH));
    while WAITING.load(Ordering::Acquire) != 0 {
        core::hint::spin_loop();
    }
    BUSY.store(false, Ordering::Release);
}

/// Does what the shootdown under way asks of this processor.
pub(super) fn serve() {
    let bit = 1 << cpu_index();
    if WAITING.load(Ordering::Acquire) & bit != 0 {
        tlb::flush_local(START.load(Ordering::Relaxed), PAGES.load(Ordering::Relaxed));
        WAITING.fetch_and(!bit, Ordering::Release);
    }
}

/// Serves a shootdown if there is one. For loops that wait with interrupts off; needs no lock.
#[inline]
pub(crate) fn poll_flush() {
    if WAITING.load(Ordering::Relaxed) != 0 {
        serve_with_interrupts_off();
    }
}

#[cold]
fn serve_with_interrupts_off() {
    let _irq = IrqOff::new();
    serve();
}
