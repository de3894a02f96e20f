//! Forgetting translations, here and on the other processors.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::PAGE_SIZE;
use crate::arch::page;

/// Beyond this many pages the whole TLB is dropped instead.
const ONE_BY_ONE: usize = 32;

/// Flushes a range everywhere: start address and pages.
pub(crate) type Shootdown = fn(usize, usize);

static SHOOTDOWN: AtomicUsize = AtomicUsize::new(0);

/// Installs the function that flushes on all processors, this one included. It returns when all
/// have done so. It is called with no lock of the memory module held, with interrupts on or off;
/// while it waits it must serve the shootdowns of others.
pub(crate) fn set_shootdown(flush: Shootdown) {
    SHOOTDOWN.store(flush as usize, Ordering::Release);
}

/// Flushes `pages` pages from `start` on this processor, which keeps the table that it has loaded.
/// Kernel image and direct map are global and never change, so dropping the rest is enough.
pub(crate) fn flush_local(start: usize, pages: usize) {
    if pages > ONE_BY_ONE {
        page::flush_all();
        return;
    }
    for index in 0..pages {
        page::flush_page(start + index * PAGE_SIZE);
    }
}

/// Flushes on all processors.
pub(crate) fn flush_everywhere(start: usize, pages: usize) {
    let flush = SHOOTDOWN.load(Ordering::Acquire);
    if flush == 0 {
        flush_local(start, pages);
        return;
    }
    // SAFETY: `set_shootdown` alone stores non-zero values, and those are `Shootdown`s.
    let flush: Shootdown = unsafe { core::mem::transmute(flush) };
    flush(start, pages);
}
