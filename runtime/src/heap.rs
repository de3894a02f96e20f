//! The private heap of a domain: objects inside pages that the kernel gave and recorded.
//!
//! Objects of up to 32 KiB come from free lists, one for each power of two, filled from runs of 16 pages;
//! larger ones are runs of pages of their own and go back to the kernel when they are freed. When the domain
//! dies the kernel takes all runs back without running a destructor.

use abi::api::api;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};

const PAGE: usize = 4096;
const RUN_PAGES: usize = 16;
const SMALLEST: usize = 16;
const LARGEST: usize = 32 * 1024;
const CLASSES: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;

/// The allocator of the image.
#[global_allocator]
static HEAP: Heap = Heap {
    held: AtomicBool::new(false),
    lists: UnsafeCell::new(Lists::EMPTY),
};

struct Heap {
    held: AtomicBool,
    lists: UnsafeCell<Lists>,
}

// SAFETY: `lists` is used only by who holds `held`.
unsafe impl Sync for Heap {}

struct Lists {
    /// First free object of each class; each holds the address of the next.
    free: [*mut u8; CLASSES],
    /// The rest of the last run.
    next: usize,
    end: usize,
}

impl Lists {
    const EMPTY: Lists = Lists {
        free: [null_mut(); CLASSES],
        next: 0,
        end: 0,
    };

    fn take(&mut self, class: usize) -> *mut u8 {
        let object = self.free[class];
        if object.is_null() {
            return self.carve(SMALLEST << class);
        }
        // SAFETY: a free object holds the address of the next; it is at least 16 bytes long.
        self.free[class] = unsafe { object.cast::<*mut u8>().read() };
        object
    }

    fn put(&mut self, class: usize, object: *mut u8) {
        // SAFETY: the object is free now, so its first word is ours.
        unsafe { object.cast::<*mut u8>().write(self.free[class]) };
        self.free[class] = object;
    }

    /// A new object of `size` bytes (a power of two) from the last run, or from a new one.
    fn carve(&mut self, size: usize) -> *mut u8 {
        let start = self.next.next_multiple_of(size);
        if self.next != 0 && start + size <= self.end {
            self.next = start + size;
            return start as *mut u8;
        }
        let run = (api().pages_alloc)(RUN_PAGES);
        if !run.is_null() {
            self.next = run as usize + size;
            self.end = run as usize + RUN_PAGES * PAGE;
        }
        run
    }
}

/// The class of a small object, or `None` for one with pages of its own.
fn class_of(layout: Layout) -> Option<usize> {
    let size = layout
        .size()
        .max(layout.align())
        .max(SMALLEST)
        .next_power_of_two();
    (size <= LARGEST).then(|| (size / SMALLEST).trailing_zeros() as usize)
}

impl Heap {
    fn with<R>(&self, work: impl FnOnce(&mut Lists) -> R) -> R {
        while self.held.swap(true, Ordering::Acquire) {
            (api().yield_now)();
        }
        // SAFETY: we hold the lock.
        let result = work(unsafe { &mut *self.lists.get() });
        self.held.store(false, Ordering::Release);
        result
    }
}

// SAFETY: every object is aligned to its class's size (runs are aligned to their own size, which is at least
// that) or to a page, and given to one owner at a time.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class_of(layout) {
            Some(class) => self.with(|lists| lists.take(class)),
            // Runs are aligned to a page; a power of two of pages is aligned to itself.
            None if layout.align() > PAGE => (api().pages_alloc)(
                layout
                    .size()
                    .max(layout.align())
                    .div_ceil(PAGE)
                    .next_power_of_two(),
            ),
            None => (api().pages_alloc)(layout.size().div_ceil(PAGE)),
        }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        match class_of(layout) {
            Some(class) => self.with(|lists| lists.put(class, object)),
            // SAFETY: the start of a run; the kernel knows its length.
            None => unsafe { (api().pages_free)(object, layout.size().div_ceil(PAGE)) },
        }
    }
}
