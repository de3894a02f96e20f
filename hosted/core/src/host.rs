//! The launcher's functions, the heap that comes from them, and what happens when the core itself
//! panics.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use hosted_core::Host;

static HOST: AtomicPtr<Host> = AtomicPtr::new(null_mut());

/// Makes the launcher's functions known.
pub fn set(host: &'static Host) {
    HOST.store(core::ptr::from_ref(host).cast_mut(), Ordering::Release);
}

/// The launcher's functions.
#[inline]
pub fn host() -> &'static Host {
    // SAFETY: the entry of the image stored a `&'static` before any other code of it ran.
    unsafe { &*HOST.load(Ordering::Relaxed) }
}

/// Text that the launcher lent.
///
/// # Safety
/// `start` is valid for `len` bytes for the lifetime that the caller chooses.
pub unsafe fn bytes<'a>(start: usize, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: by the caller's duty.
    unsafe { core::slice::from_raw_parts(start as *const u8, len) }
}

/// The core's heap: the launcher's.
struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// Bytes that the core's heap holds.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the core's heap holds.
pub fn heap_bytes() -> usize {
    USED.load(Ordering::Relaxed)
}

// SAFETY: the launcher's allocator gives every block once, aligned as asked.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = (host().heap_take)(layout.size(), layout.align()) as *mut u8;
        if !block.is_null() {
            USED.fetch_add(layout.size(), Ordering::Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `alloc` with the same layout.
        unsafe { (host().heap_give)(block as usize, layout.size(), layout.align()) };
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    crate::log::print(format_args!("the core failed: {info}"));
    (host().exit)(101)
}
