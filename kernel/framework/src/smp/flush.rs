//! TLB shootdown: making other processors forget translations, or leave a page table.
//!
//! Each processor has a request of its own, so two that ask at the same time do not wait for each
//! other's to end. A processor that is asked finds by whom in a word of its own.
//!
//! ```text
//!   asks:    fill the request -> waiting = those asked -> set its bit in the word of each -> interrupt
//!            -> serve others until waiting = 0
//!   serves:  take the word -> for each bit: do what that request says -> clear its own bit in waiting
//! ```

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

/// What one processor asks of others. Only it writes the first three, while `waiting` is 0.
struct Request {
    start: AtomicUsize,
    pages: AtomicUsize,
    /// The table to leave, or 0.
    table: AtomicU64,
    /// A bit for each processor that has still to do it.
    waiting: AtomicU32,
}

static REQUESTS: [Request; MAX_CPUS] = [const {
    Request {
        start: AtomicUsize::new(0),
        pages: AtomicUsize::new(0),
        table: AtomicU64::new(0),
        waiting: AtomicU32::new(0),
    }
}; MAX_CPUS];

/// By whom each processor is asked: a bit for each that has a request for it.
static ASKED: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];

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
    let (start, pages, table) = match wish {
        Wish::Forget(start, pages) => (start, pages, 0),
        Wish::Leave(root) => (0, 0, root),
    };
    let here = cpu_index();
    let own = &REQUESTS[here];
    own.start.store(start, Ordering::Relaxed);
    own.pages.store(pages, Ordering::Relaxed);
    own.table.store(table, Ordering::Relaxed);
    own.waiting.store(mask, Ordering::Relaxed);
    for index in others().filter(|index| mask & 1 << index != 0) {
        ASKED[index].fetch_or(1 << here, Ordering::SeqCst);
        request::send(index, request::FLUSH);
    }
    // Those that are asked may be asking this one.
    while own.waiting.load(Ordering::Acquire) != 0 {
        poll_flush();
        relax();
    }
}

/// Forgets everything, if this processor missed a shootdown while idle. Interrupts are off.
pub(super) fn catch_up() {
    let missed = &MISSED[cpu_index()];
    if missed.load(Ordering::SeqCst) && missed.swap(false, Ordering::SeqCst) {
        page::flush_all();
    }
}

/// Does what others ask of this processor. Interrupts are off.
pub(super) fn serve() {
    let here = cpu_index();
    let mut asked = ASKED[here].swap(0, Ordering::SeqCst);
    while asked != 0 {
        let request = &REQUESTS[asked.trailing_zeros() as usize];
        match request.table.load(Ordering::Relaxed) {
            0 => {
                let start = request.start.load(Ordering::Relaxed);
                tlb::flush_local(start, request.pages.load(Ordering::Relaxed));
            }
            root => spaces::leave(root),
        }
        request.waiting.fetch_and(!(1 << here), Ordering::Release);
        asked &= asked - 1;
    }
}

/// Serves shootdowns if there are any. For loops that wait with interrupts off; needs no lock.
#[inline]
pub(crate) fn poll_flush() {
    if ASKED[cpu_index()].load(Ordering::Relaxed) != 0 {
        serve_with_interrupts_off();
    }
}

#[cold]
fn serve_with_interrupts_off() {
    let _irq = IrqOff::new();
    serve();
}
