//! TLB shootdown: making all processors forget translations.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::{others, request};
use crate::arch::cpu::cpu_index;
use crate::arch::{MAX_CPUS, regs};
use crate::mem::tlb;
use crate::sync::{IrqOff, relax};
use crate::task;

/// Taken by the processor whose shootdown is under way; guards the three below.
static BUSY: AtomicBool = AtomicBool::new(false);
static START: AtomicUsize = AtomicUsize::new(0);
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// A bit for each processor that has still to flush.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// Set for a processor that was idle during a shootdown.
static MISSED: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];

/// Whether processor `index` has to be asked; if not, it is told to catch up later. The order is
/// what counts: first note what it misses, then see whether it is idle. It does the reverse.
fn must_be_asked(index: usize) -> bool {
    MISSED[index].store(true, Ordering::SeqCst);
    !task::is_idle(index)
}

/// Flushes `pages` pages from address `start` on all processors; returns when all have done so.
///
/// May be called with interrupts off and with spin locks held.
pub fn flush_everywhere(start: usize, pages: usize) {
    let _irq = IrqOff::new();
    tlb::flush_local(start, pages);
    let mask = others()
        .filter(|index| must_be_asked(*index))
        .fold(0, |mask, index| mask | 1 << index);
    if mask == 0 {
        return;
    }
    while BUSY.swap(true, Ordering::Acquire) {
        poll_flush();
        relax();
    }
    START.store(start, Ordering::Relaxed);
    PAGES.store(pages, Ordering::Relaxed);
    WAITING.store(mask, Ordering::SeqCst);
    others()
        .filter(|index| mask & 1 << index != 0)
        .for_each(|index| request::send(index, request::FLUSH));
    while WAITING.load(Ordering::Acquire) != 0 {
        relax();
    }
    BUSY.store(false, Ordering::Release);
}

/// Forgets everything, if this processor missed a shootdown while idle. Interrupts are off.
pub(super) fn catch_up() {
    let missed = &MISSED[cpu_index()];
    if missed.load(Ordering::SeqCst) && missed.swap(false, Ordering::SeqCst) {
        regs::flush_tlb();
    }
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
