//! The kernel heap: slabs of equal slots for small objects, whole pages for large ones.
//!
//! A slab is 4 KiB (slots of up to 256 bytes) or 16 KiB (up to 2048), naturally aligned, with its
//! header in the last 64 bytes, so the slab of a slot is found by masking the address. Slabs with
//! both used and free slots are in a list per class; an empty slab goes back to the frame
//! allocator, except that one per class is kept as a spare. A failed allocation is a null pointer,
//! never a panic.
//!
//! ```text
//!   class lock guards: the list, the spare, the headers and the free slots of all slabs of that class
//! ```

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::PAGE_SIZE;
use super::frames::{alloc_pages_dirty, free_pages};
use crate::spin::IrqLock;

const CLASSES: [usize; 14] = [
    16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
];
const HEADER_BYTES: usize = 64;

/// The last 64 bytes of a slab.
#[repr(C)]
struct Header {
    previous: *mut Header,
    next: *mut Header,
    free_slots: *mut FreeSlot,
    /// Slots in use.
    used: usize,
    /// Slots from this one on were never used.
    fresh: usize,
    /// Whether the slab is in its class's list.
    listed: bool,
}

/// A free slot.
struct FreeSlot {
    next: *mut FreeSlot,
}

/// Pages of the empty slabs that are kept for the next allocations.
static CACHED_PAGES: AtomicUsize = AtomicUsize::new(0);

/// How many pages the heap holds without needing them.
pub(super) fn cached_pages() -> usize {
    CACHED_PAGES.load(Ordering::Relaxed)
}

/// What small objects of the kernel take: pages of slabs, but for the empty ones, and bytes of
/// slots in use. For tests: a lock is held as long as slabs of one size are counted.
#[cfg(feature = "selftest")]
pub fn small_objects() -> (usize, usize) {
    let of_classes = HEAP.classes.iter().map(|class| class.lock().in_use());
    of_classes.fold((0, 0), |sum, (pages, bytes)| (sum.0 + pages, sum.1 + bytes))
}

/// The slabs of one slot size.
struct Class {
    size: usize,
    /// Slabs with used slots and free ones.
    first: *mut Header,
    /// An empty slab, in no list, or null.
    spare: *mut Header,
    /// How many there are, the spare one included.
    #[cfg(feature = "selftest")]
    slabs: usize,
}

// SAFETY: the pointers lead to slabs that belong to the class alone; whoever has the class (under
// its lock) may follow them on any processor.
unsafe impl Send for Class {}

/// The heap.
struct KernelHeap {
    classes: [IrqLock<Class>; CLASSES.len()],
}

#[global_allocator]
static HEAP: KernelHeap = KernelHeap::new();

impl KernelHeap {
    const fn new() -> Self {
        let mut classes = [const { IrqLock::new(Class::new(0)) }; CLASSES.len()];
        let mut i = 0;
        while i < CLASSES.len() {
            classes[i] = IrqLock::new(Class::new(CLASSES[i]));
            i += 1;
        }
        Self { classes }
    }

    /// The class for a layout; `None` if it takes whole pages.
    fn class(&self, layout: Layout) -> Option<&IrqLock<Class>> {
        let fits = |size: &usize| *size >= layout.size() && size.is_multiple_of(layout.align());
        let index = CLASSES.iter().position(fits)?;
        Some(&self.classes[index])
    }
}

/// How many pages a large layout takes. Page runs are aligned to the power of two above their
/// length, up to 2 MiB, which covers any alignment once the length is at least that.
fn large_pages(layout: Layout) -> Option<usize> {
    const LARGEST_ALIGNMENT: usize = 512 * PAGE_SIZE;
    if layout.align() > LARGEST_ALIGNMENT {
        return None;
    }
    Some(layout.size().max(layout.align()).div_ceil(PAGE_SIZE))
}

// SAFETY: slots of a class are at least as large and as aligned as asked (`class`), page runs too
// (`large_pages`); a slot or run is handed out once until it is given back; nothing here unwinds.
unsafe impl GlobalAlloc for KernelHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.class(layout) {
            Some(class) => class.lock().alloc(),
            None => large_pages(layout)
                .and_then(alloc_pages_dirty)
                .map_or(ptr::null_mut(), NonNull::as_ptr),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match self.class(layout) {
            // SAFETY: the caller gives back what `alloc` gave out for this layout, so the pointer
            // is a used slot of this class.
            Some(class) => unsafe { class.lock().free(pointer) },
            None => {
                let pages = large_pages(layout).expect("the layout was allocated");
                let pointer = NonNull::new(pointer).expect("dealloc of an allocation");
                // SAFETY: as above, and runs of pages come from `alloc_pages_dirty`.
                unsafe { free_pages(pointer, pages) };
            }
        }
    }
}

impl Class {
    const fn new(size: usize) -> Self {
        Self {
            size,
            first: ptr::null_mut(),
            spare: ptr::null_mut(),
            #[cfg(feature = "selftest")]
            slabs: 0,
        }
    }

    /// Bytes of a slab.
    fn slab_bytes(&self) -> usize {
        if self.size <= 256 {
            PAGE_SIZE
        } else {
            4 * PAGE_SIZE
        }
    }

    /// Slots in a slab.
    fn capacity(&self) -> usize {
        (self.slab_bytes() - HEADER_BYTES) / self.size
    }

    /// Pages of slabs with used slots, and bytes of these.
    #[cfg(feature = "selftest")]
    fn in_use(&self) -> (usize, usize) {
        let slabs = self.slabs - usize::from(!self.spare.is_null());
        let (mut slots, mut at) = (slabs * self.capacity(), self.first);
        // SAFETY: slabs in the list are live and guarded by this class's lock: the caller has it.
        while let Some(header) = unsafe { at.as_ref() } {
            slots -= self.capacity() - header.used;
            at = header.next;
        }
        (slabs * self.slab_bytes() / PAGE_SIZE, slots * self.size)
    }

    /// Takes a slot; null if there is no memory.
    fn alloc(&mut self) -> *mut u8 {
        if self.first.is_null() && !self.take_spare() && !self.grow() {
            return ptr::null_mut();
        }
        let header_pointer = self.first;
        // SAFETY: slabs in the list are live and guarded by this class's lock, which we hold.
        let header = unsafe { &mut *header_pointer };
        header.used += 1;
        let slot = if header.free_slots.is_null() {
            header.fresh += 1;
            let base = header_pointer as usize + HEADER_BYTES - self.slab_bytes();
            (base + (header.fresh - 1) * self.size) as *mut u8
        } else {
            let slot = header.free_slots;
            // SAFETY: free slots hold a valid link, written by `free`.
            header.free_slots = unsafe { (*slot).next };
            slot.cast()
        };
        if header.used == self.capacity() {
            self.unlink(header_pointer);
        }
        slot
    }

    /// Gives back a slot.
    ///
    /// # Safety
    /// `pointer` is a used slot of this class.
    unsafe fn free(&mut self, pointer: *mut u8) {
        let base = pointer as usize & !(self.slab_bytes() - 1);
        let header_pointer = (base + self.slab_bytes() - HEADER_BYTES) as *mut Header;
        // SAFETY: the slot is in use, so its slab is live, and the lock is held.
        let header = unsafe { &mut *header_pointer };
        let slot = pointer.cast::<FreeSlot>();
        // SAFETY: the slot is no longer used by anyone and has room for a link.
        unsafe {
            slot.write(FreeSlot {
                next: header.free_slots,
            });
        };
        header.free_slots = slot;
        header.used -= 1;
        let (listed, empty) = (header.listed, header.used == 0);
        if !listed && !empty {
            self.link(header_pointer);
        }
        if empty {
            if listed {
                self.unlink(header_pointer);
            }
            self.retire(header_pointer);
        }
    }

    /// Puts the spare slab into use. Returns whether there was one.
    fn take_spare(&mut self) -> bool {
        let spare = core::mem::replace(&mut self.spare, ptr::null_mut());
        if spare.is_null() {
            return false;
        }
        CACHED_PAGES.fetch_sub(self.slab_bytes() / PAGE_SIZE, Ordering::Relaxed);
        self.link(spare);
        true
    }

    /// Adds a slab. Returns whether there was memory for it.
    fn grow(&mut self) -> bool {
        let Some(base) = alloc_pages_dirty(self.slab_bytes() / PAGE_SIZE) else {
            return false;
        };
        let header = (base.as_ptr() as usize + self.slab_bytes() - HEADER_BYTES) as *mut Header;
        // SAFETY: the header lies in the new pages, which are ours alone.
        unsafe {
            header.write(Header {
                previous: ptr::null_mut(),
                next: ptr::null_mut(),
                free_slots: ptr::null_mut(),
                used: 0,
                fresh: 0,
                listed: false,
            });
        }
        #[cfg(feature = "selftest")]
        (self.slabs += 1);
        self.link(header);
        true
    }

    /// Keeps an empty slab, which is in no list, as the spare one, or gives it back to the frame
    /// allocator if there is one already.
    fn retire(&mut self, header: *mut Header) {
        let pages = self.slab_bytes() / PAGE_SIZE;
        if self.spare.is_null() {
            self.spare = header;
            CACHED_PAGES.fetch_add(pages, Ordering::Relaxed);
            return;
        }
        #[cfg(feature = "selftest")]
        (self.slabs -= 1);
        let base = header as usize + HEADER_BYTES - self.slab_bytes();
        let base = NonNull::new(base as *mut u8).expect("slabs are not at 0");
        // SAFETY: `grow` allocated these pages; all slots are free and the slab is off the list.
        unsafe { free_pages(base, pages) };
    }

    /// Puts a slab at the head of the list.
    fn link(&mut self, pointer: *mut Header) {
        // SAFETY: the slab and the list's head are live slabs of this class, under its lock.
        unsafe {
            (*pointer).listed = true;
            (*pointer).previous = ptr::null_mut();
            (*pointer).next = self.first;
            if let Some(first) = self.first.as_mut() {
                first.previous = pointer;
            }
        }
        self.first = pointer;
    }

    /// Takes a slab out of the list.
    fn unlink(&mut self, pointer: *mut Header) {
        // SAFETY: the slab and its neighbours are live slabs of this class, under its lock.
        unsafe {
            let header = &mut *pointer;
            header.listed = false;
            match header.previous.as_mut() {
                Some(previous) => previous.next = header.next,
                None => self.first = header.next,
            }
            if let Some(next) = header.next.as_mut() {
                next.previous = header.previous;
            }
        }
    }
}
