//! The shared heap: allocation, ownership, and reclaim by owner. The layout is in `abi::shared`.
//!
//! There are two instances: one for the objects of domains ([`OBJECTS`]) and one for the kernel's
//! proxies ([`PROXIES`]), which are owned and moved in just the same way but need more than freeing
//! when their owner dies.
//!
//! Guarded by one lock per size class: the list of chunks, and in each chunk `used`, `free` and the
//! links of free slots. Interrupts are off meanwhile, so whoever goes through a heap holds it for
//! one chunk at a time. The owner table is written without the lock by whoever owns the object (a
//! move) and read without it by reclaim, which runs only when no thread can be inside the dead
//! owner any more, so that no move from or to it can be under way.
//!
//! A chunk that is given back is replaced in its list by the last one, and a new one is added at
//! the end. So whoever goes through a list backwards, with the lock for one chunk at a time, misses
//! none that was there when it began.

mod chunk;
mod looks;
mod search;

use crate::lock::Lock;
use crate::memory::owner::Owner;
use crate::platform::{PAGE, platform};
use crate::sync::{AtomicUsize, point};
use abi::shared::{
    CHUNK_BYTES, ChunkHead, LARGE_OFFSET, LARGE_SHIFT, LARGEST_SLOT, NO_OWNER, SMALLEST_SLOT,
    chunk_of, owner_cell, slot_size,
};
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

#[cfg(any(test, feature = "audit"))]
mod audit;
#[cfg(test)]
mod tests;

pub(crate) use search::Search;

/// Slot sizes 64, 128, ... 32 KiB.
const CLASSES: usize = (LARGEST_SLOT / SMALLEST_SLOT).trailing_zeros() as usize + 1;
/// The largest object, in bytes.
pub const LARGEST_OBJECT: usize = 64 * 1024 * 1024;

/// The objects that domains allocate.
pub static OBJECTS: SharedHeap = SharedHeap::new();
/// The proxies of the kernel.
pub static PROXIES: SharedHeap = SharedHeap::new();

/// A heap whose objects have owners.
pub struct SharedHeap {
    classes: [Lock<Class>; CLASSES],
    large: Lock<Vec<Chunk>>,
    bytes: AtomicUsize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Chunk(NonNull<ChunkHead>);

// SAFETY: a chunk is plain memory; the locks say who may touch what.
unsafe impl Send for Chunk {}

struct Class {
    chunks: Vec<Chunk>,
    /// Index of a chunk that probably has a free slot.
    hint: usize,
}

impl SharedHeap {
    const fn new() -> Self {
        SharedHeap {
            classes: [const {
                Lock::new(Class {
                    chunks: Vec::new(),
                    hint: 0,
                })
            }; CLASSES],
            large: Lock::new(Vec::new()),
            bytes: AtomicUsize::new(0),
        }
    }

    /// An object of at least `bytes` bytes, owned by `owner`; `None` if there is no
    /// memory. Its content is undefined, but zero if it is larger than a slot.
    pub fn allocate(&self, bytes: usize, owner: Owner) -> Option<NonNull<u8>> {
        self.allocate_if(bytes, owner, |_| true)
    }

    /// As [`allocate`](Self::allocate), but the heap grows only if `may_grow` says so for a number
    /// of pages.
    pub(crate) fn allocate_if(
        &self,
        bytes: usize,
        owner: Owner,
        may_grow: impl Fn(usize) -> bool,
    ) -> Option<NonNull<u8>> {
        let object = match slot_size(bytes) {
            Some(slot) => self.allocate_slot(slot, may_grow)?,
            None => self.allocate_large(bytes, may_grow)?,
        };
        point();
        // SAFETY: the object is live, and ours until it is returned.
        unsafe { owner_cell(object).store(owner.number(), Ordering::Relaxed) };
        Some(object)
    }

    /// Frees an object.
    ///
    /// # Safety
    /// `object` came from [`allocate`](Self::allocate) of this heap and is not used any more.
    pub unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: an object of this heap, by the caller's duty.
        let chunk = Chunk(unsafe { chunk_of(object) });
        #[cfg(test)]
        if crate::sync::is_broken(crate::sync::Broken::OwnerLate) {
            // SAFETY: the object is live until here; what follows is wrong on purpose.
            unsafe {
                // The chunk may go meanwhile; in the model its pages stay until the scene is over.
                let cell = owner_cell(object);
                self.free_slot(chunk, object, chunk.head().shift);
                crate::sync::spin();
                return cell.store(NO_OWNER, Ordering::Relaxed);
            }
        }
        point();
        // SAFETY: the object is live until here, so its chunk is.
        let shift = unsafe {
            owner_cell(object).store(NO_OWNER, Ordering::Relaxed);
            chunk.head().shift
        };
        if shift == LARGE_SHIFT {
            let mut large = self.large.lock();
            if let Some(index) = large.iter().position(|other| *other == chunk) {
                large.swap_remove(index);
            }
            drop(large);
            self.give_back(chunk);
        } else {
            self.free_slot(chunk, object, shift);
        }
    }

    /// Bytes of memory that the heap holds.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Frees every object of `owner`; how many.
    ///
    /// # Safety
    /// The owner is dead and has no thread inside, or its objects are not used any more.
    pub unsafe fn free_all_of(&self, owner: Owner) -> usize {
        let mut count = 0;
        for class in &self.classes {
            // Backwards, see above.
            let mut index = class.lock().chunks.len();
            while index > 0 {
                index -= 1;
                count += self.free_in_chunk(class, index, owner);
            }
        }
        count + self.free_large_of(owner)
    }

    /// Frees every object of `owner` in chunk number `index` of `class`; how many. A chunk in which
    /// nothing is left goes back as it is, if there are others: whoever gets its pages gets zeros.
    fn free_in_chunk(&self, class: &Lock<Class>, index: usize, owner: Owner) -> usize {
        let mut class = class.lock();
        let Some(&chunk) = class.chunks.get(index) else {
            return 0;
        };
        let count = chunk.count_of(owner);
        if count == 0 {
            return 0;
        }
        if count != chunk.used() as usize {
            chunk.put_all_of(owner);
        } else if class.chunks.len() == 1 {
            chunk.clear();
        } else {
            class.remove(index);
            drop(class);
            self.give_back(chunk);
        }
        count
    }

    fn free_large_of(&self, owner: Owner) -> usize {
        let mut count = 0;
        let mut index = self.large.lock().len();
        while index > 0 {
            index -= 1;
            let mut large = self.large.lock();
            let Some(&chunk) = large.get(index) else {
                continue;
            };
            if chunk.find(owner, 0).is_none() {
                continue;
            }
            large.swap_remove(index);
            drop(large);
            self.give_back(chunk);
            count += 1;
        }
        count
    }

    /// Goes on with `search` and writes what it finds next into `found`; how much, 0 at its end.
    /// The caller frees all of it before the search goes on.
    pub(crate) fn some_of(&self, search: &mut Search, found: &mut [NonNull<u8>]) -> usize {
        // Of one chunk only: what was found and not freed would be found again if its chunk went to
        // another place.
        while let Some(class) = self.classes.get(search.class) {
            let count = search.look(&class.lock(), found);
            if count > 0 {
                return count;
            }
        }
        0
    }

    /// Bytes of memory that an object of `bytes` bytes takes.
    pub(crate) fn footprint(bytes: usize) -> usize {
        abi::shared::footprint(bytes)
    }

    fn allocate_slot(&self, slot: usize, may_grow: impl Fn(usize) -> bool) -> Option<NonNull<u8>> {
        let shift = slot.trailing_zeros();
        let mut class = self.classes[(shift - SMALLEST_SLOT.trailing_zeros()) as usize].lock();
        if let Some(object) = class.take_slot() {
            return Some(object);
        }
        if !may_grow(CHUNK_BYTES / PAGE) {
            return None;
        }
        self.grow(&mut class, shift)
    }

    /// A slot in a new chunk of `class`, whose slots have this shift.
    #[cold]
    fn grow(&self, class: &mut Class, shift: u32) -> Option<NonNull<u8>> {
        class.chunks.try_reserve(1).ok()?;
        let chunk = self.new_chunk(shift)?;
        class.hint = class.chunks.len();
        class.chunks.push(chunk);
        chunk.take_slot()
    }

    fn free_slot(&self, chunk: Chunk, object: NonNull<u8>, shift: u32) {
        let mut class = self.classes[(shift - SMALLEST_SLOT.trailing_zeros()) as usize].lock();
        if chunk.put_slot(object) > 0 || class.chunks.len() == 1 {
            return;
        }
        if let Some(index) = class.chunks.iter().position(|other| *other == chunk) {
            class.remove(index);
        }
        drop(class);
        self.give_back(chunk);
    }

    fn allocate_large(
        &self,
        bytes: usize,
        may_grow: impl Fn(usize) -> bool,
    ) -> Option<NonNull<u8>> {
        let pages = abi::shared::footprint(bytes) / PAGE;
        if bytes > LARGEST_OBJECT || !may_grow(pages) {
            return None;
        }
        let chunk = self.take_pages(
            pages,
            ChunkHead {
                shift: LARGE_SHIFT,
                first: 0,
                end: 1,
                used: AtomicU32::new(1),
                free: AtomicU32::new(0),
                pages: 0,
            },
        )?;
        let mut large = self.large.lock();
        if large.try_reserve(1).is_err() {
            drop(large);
            self.give_back(chunk);
            return None;
        }
        large.push(chunk);
        // SAFETY: inside the chunk, which is longer than the offset.
        Some(unsafe { chunk.0.cast::<u8>().add(LARGE_OFFSET) })
    }

    fn new_chunk(&self, shift: u32) -> Option<Chunk> {
        let slots = (CHUNK_BYTES >> shift) as u32;
        let table = size_of::<ChunkHead>() + slots as usize * size_of::<u32>();
        let first = table.div_ceil(1 << shift) as u32;
        // In tests chunks come and go all the time.
        let slots = slots.min(if cfg!(test) { first + 4 } else { slots });
        self.take_pages(
            CHUNK_BYTES / PAGE,
            ChunkHead {
                shift,
                first,
                end: slots,
                used: AtomicU32::new(0),
                free: AtomicU32::new(0),
                pages: 0,
            },
        )
    }

    fn take_pages(&self, pages: usize, head: ChunkHead) -> Option<Chunk> {
        let chunk = platform().pages(pages)?.cast::<ChunkHead>();
        // SAFETY: fresh zeroed memory, larger than a head, aligned to a chunk (a power of two of
        // pages).
        unsafe {
            chunk.write(ChunkHead {
                pages: pages as u32,
                ..head
            })
        };
        self.bytes.fetch_add(pages * PAGE, Ordering::Relaxed);
        Some(Chunk(chunk))
    }

    fn give_back(&self, chunk: Chunk) {
        // SAFETY: no object of the chunk is live and no list names it, so nobody else has it.
        unsafe {
            let pages = chunk.head().pages as usize;
            self.bytes.fetch_sub(pages * PAGE, Ordering::Relaxed);
            platform().free_pages(chunk.0.cast(), pages);
        }
    }
}

impl Class {
    /// A free slot of one of its chunks.
    #[inline]
    fn take_slot(&mut self) -> Option<NonNull<u8>> {
        let hinted = self.chunks.get(self.hint).copied();
        hinted.and_then(Chunk::take_slot).or_else(|| self.search())
    }

    /// Takes chunk number `index` out of the list. The last one takes its place.
    fn remove(&mut self, index: usize) {
        self.chunks.swap_remove(index);
        if self.hint == self.chunks.len() {
            self.hint = index;
        }
    }

    #[cold]
    fn search(&mut self) -> Option<NonNull<u8>> {
        // From the hint on and round: it goes on only past chunks that were full.
        let count = self.chunks.len();
        let from = self.hint.min(count);
        let found = |index: usize| Some((index, self.chunks[index].take_slot()?));
        let (index, object) = (from..count).chain(0..from).find_map(found)?;
        self.hint = index;
        Some(object)
    }
}
