//! Who is told what threads and interrupts do: nobody, most of the time.

use core::sync::atomic::{AtomicUsize, Ordering};

/// A function that is told, with a kind of [`abi::events`] and its value. Interrupts are off, and
/// it may be on any stack.
pub type Watcher = fn(u32, u64);

static WATCHER: AtomicUsize = AtomicUsize::new(0);

/// Has `watcher` be told from now on, or nobody. One that was told before may be in the middle of
/// it.
pub fn set_watcher(watcher: Option<Watcher>) {
    WATCHER.store(
        watcher.map_or(0, |watcher| watcher as usize),
        Ordering::Release,
    );
}

/// Tells the watcher, if there is one. Interrupts are off.
#[inline]
pub(crate) fn tell(kind: u32, value: u64) {
    let watcher = WATCHER.load(Ordering::Acquire);
    if watcher != 0 {
        // SAFETY: only `Watcher`s and 0 are ever stored.
        let watcher: Watcher = unsafe { core::mem::transmute(watcher) };
        watcher(kind, value);
    }
}
