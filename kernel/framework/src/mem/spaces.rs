//! Which page tables each processor may have loaded.
//!
//! The kernel half is the same in all of them, so a processor keeps a user table loaded while it
//! runs threads that have none, and while it is idle. Whoever changes or frees a user table has to
//! know where it may be in use:
//!
//! ```text
//!   load:    coming = new -> (fence) -> in use = new -> loaded = new
//!   change:  store the entry -> (fence) -> read coming, then loaded, of each processor -> flush where either is it
//!   free:    (nobody can load it any more) read likewise -> have those load the kernel's -> free
//! ```
//!
//! A processor that is missed by a change has not begun to load the table when `coming` was read,
//! so it will see the new entry; or it had left it already when `loaded` was read. The order of the
//! two reads matters: the other way round a processor that just arrives is seen neither as loaded
//! (too early) nor as coming (it is on to the next one). Loading a table forgets all translations
//! of the one before, as there are no process-context identifiers in use.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::arch::cpu::cpu_index;
use crate::arch::{MAX_CPUS, page};

/// Physical addresses of top-level tables, 0 before the first: what a processor is about to load,
/// or has loaded.
static COMING: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
/// What a processor had loaded when it last finished loading.
static LOADED: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// Loads the table `root` on the calling processor, unless it is loaded already.
///
/// # Safety
/// Interrupts are off. The table shares the kernel half, and is freed only after
/// [`crate::smp::leave_table`].
#[inline]
pub(crate) unsafe fn load(root: u64) {
    let here = cpu_index();
    if LOADED[here].load(Ordering::Relaxed) != root {
        // SAFETY: by the caller's duty.
        unsafe { change(here, root) };
    }
}

/// Whether the calling processor has `root` loaded. Interrupts are off.
#[inline]
pub(crate) fn is_loaded(root: u64) -> bool {
    LOADED[cpu_index()].load(Ordering::Relaxed) == root
}

/// Loads another table on the calling processor, `here`.
///
/// # Safety
/// As of [`load`].
#[cold]
unsafe fn change(here: usize, root: u64) {
    COMING[here].store(root, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    // SAFETY: the caller vouches for the table.
    unsafe { page::load_root(root) };
    LOADED[here].store(root, Ordering::SeqCst);
}

/// Has the calling processor load the kernel's own table if it has `root` loaded. Interrupts are
/// off.
pub(crate) fn leave(root: u64) {
    if is_loaded(root) {
        // SAFETY: the kernel's own table is never freed.
        unsafe { load(super::kernel_table()) };
    }
}

/// The processors that may have `root` loaded, a bit each. Entries that were changed before the
/// call are seen by all others that load it.
pub(crate) fn holders(root: u64) -> u32 {
    fence(Ordering::SeqCst);
    (0..MAX_CPUS).fold(0, |mask, index| {
        let coming = COMING[index].load(Ordering::SeqCst) == root;
        let loaded = LOADED[index].load(Ordering::SeqCst) == root;
        mask | u32::from(coming || loaded) << index
    })
}
