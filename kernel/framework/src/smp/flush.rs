//! TLB shootdown: making other processors forget translations, or leave a page table.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::{others, request};
use crate::arch::cpu::cpu_index;
use crate::arch::{MAX_CPUS, page};
use crate::mem::{spaces, tlb};
use crate::sync::{IrqOff, relax};
use crate::task;

/// What processors are asked to do.
#[derive(Clone, Copy)]
enum Wish {
    /// To forget the translations of so many pages from an address on.
    Forget(usize, usize),
    /// To load the kernel's own table if they have this one loaded.
    Leave(u64),
}

/// Taken by the processor whose shootdown is under way; guards the four below.
static BUSY: AtomicBool = AtomicBool::new(false);
static START: AtomicUsize = AtomicUsize::new(0);
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// The table to leave, or 0.
static TABLE: AtomicU64 = AtomicU64::new(0);
/// A bit for each processor that has still to do it.
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
    flush_on(u32::MAX, start, pages);
}

/// Flushes pages of the user table `root`, whose entries were changed before, wherever it is
/// loaded; returns when that is done. May be called as [`flush_everywhere`].
pub(crate) fn flush_table(root: u64, start: usize, pages: usize) {
    flush_on(spaces::holders(root), start, pages);
}

/// Has every processor leave the user table `root`, which nobody can load any more; returns when
/// all have. May be called as [`flush_everywhere`].
pub(crate) fn leave_table(root: u64) {
    let _irq = IrqOff::new();
    spaces::leave(root);
    // Idle ones as well: what is idle walks the table for its own addresses.
    ask(mask_of(spaces::holders(root), |_| true), Wish::Leave(root));
}

/// Flushes on the processors of `mask`.
fn flush_on(mask: u32, start: usize, pages: usize) {
    let _irq = IrqOff::new();
    if mask & 1 << cpu_index() != 0 {
        tlb::flush_local(start, pages);
    }
    ask(mask_of(mask, must_be_asked), Wish::Forget(start, pages));
}

/// Those other processors of `mask` that are `wanted`.
fn mask_of(mask: u32, wanted: impl Fn(usize) -> bool) -> u32 {
    others()
        .filter(|index| mask & 1 << index != 0 && wanted(*index))
        .fold(0, |mask, index| mask | 1 << index)
}

/// Asks the processors of `mask`, and returns when they have done it. Interrupts are off.
fn ask(mask: u32, wish: Wish) {
    if mask == 0 {
        return;
    }
    while BUSY.swap(true, Ordering::Acquire) {
        poll_flush();
        relax();
    }
    let (start, pages, table) = match wish {
        Wish::Forget(start, pages) => (start, pages, 0),
        Wish::Leave(root) => (0, 0, root),
    };
    START.store(start, Ordering::Relaxed);
    PAGES.store(pages, Ordering::Relaxed);
    TABLE.store(table, Ordering::Relaxed);
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
        page::flush_all();
    }
}

/// Does what the shootdown under way asks of this processor.
pub(super) fn serve() {
    let bit = 1 << cpu_index();
    if WAITING.load(Ordering::Acquire) & bit != 0 {
        match TABLE.load(Ordering::Relaxed) {
            0 => tlb::flush_local(START.load(Ordering::Relaxed), PAGES.load(Ordering::Relaxed)),
            root => spaces::leave(root),
        }
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
