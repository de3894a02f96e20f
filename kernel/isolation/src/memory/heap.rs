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

use crate::lock::Lock;
use crate::memory::owner::Owner;
use crate::platform::{PAGE, platform};
use crate::sync::{AtomicUsize, point};
use abi::shared::{
    CHUNK_BYTES, ChunkHead, LARGE_OFFSET, LARGE_SHIFT, LARGEST_SLOT, NO_OWNER, SMALLEST_SLOT,
    chunk_of, owner_cell, slot_size,
};
use alloc::vec::Vec;
use core::ops::ControlFlow;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

#[cfg(any(test, feature = "audit"))]
mod audit;
#[cfg(test)]
mod tests;

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

    /// Bytes of memory in chunks that hold no object and are kept for the next one.
    pub fn spare_bytes(&self) -> usize {
        let mut bytes = 0;
        self.each_slotted(|chunk| bytes += CHUNK_BYTES * usize::from(chunk.used() == 0));
        bytes
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
                let mut class = class.lock();
                let Some(&chunk) = class.chunks.get(index) else {
                    continue;
                };
                let freed = chunk.put_all_of(owner);
                count += freed;
                if freed > 0 && chunk.used() == 0 && class.chunks.len() > 1 {
                    class.chunks.swap_remove(index);
                    class.hint = 0;
                    drop(class);
                    self.give_back(chunk);
                }
            }
        }
        count + self.free_large_of(owner)
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

    /// How many objects `owner` owns, as far as they do not change hands meanwhile.
    pub fn count_of(&self, owner: Owner) -> usize {
        let mut count = 0;
        self.each_chunk(|chunk| count += chunk.count_of(owner));
        count
    }

    /// Shows object number `index` of `owner` to `look`, while it cannot be freed. Objects with a
    /// chunk of their own are left out. What is made, freed or changes hands meanwhile may shift
    /// the numbers.
    pub(crate) fn with_nth<R>(
        &self,
        owner: Owner,
        index: usize,
        look: impl FnOnce(NonNull<u8>) -> R,
    ) -> Option<R> {
        let mut left = index;
        let mut look = Some(look);
        let found = self.search_slotted(|chunk| {
            let count = chunk.count_of(owner);
            if left >= count {
                left -= count;
                return ControlFlow::Continue(());
            }
            // It may have changed hands since it was counted.
            match (chunk.objects_of(owner).nth(left), look.take()) {
                (Some(object), Some(look)) => ControlFlow::Break(Some(look(object))),
                _ => ControlFlow::Break(None),
            }
        });
        found.flatten()
    }

    /// Shows every chunk of slots to `look` until that has seen enough, with the lock for this one
    /// alone.
    ///
    /// Forwards: what is made or moves to another place meanwhile may be missed, but nothing is
    /// seen twice.
    fn search_slotted<R>(&self, mut look: impl FnMut(Chunk) -> ControlFlow<R>) -> Option<R> {
        for class in &self.classes {
            let mut index = 0;
            loop {
                let class = class.lock();
                let Some(&chunk) = class.chunks.get(index) else {
                    break;
                };
                if let ControlFlow::Break(found) = look(chunk) {
                    return Some(found);
                }
                index += 1;
            }
        }
        None
    }

    /// Shows every chunk of slots to `look`, as [`search_slotted`](Self::search_slotted) does.
    fn each_slotted(&self, mut look: impl FnMut(Chunk)) {
        self.search_slotted::<()>(|chunk| {
            look(chunk);
            ControlFlow::Continue(())
        });
    }

    /// Shows every chunk to `look`, with the lock for this one alone.
    fn each_chunk(&self, mut look: impl FnMut(Chunk)) {
        self.each_slotted(&mut look);
        let mut index = 0;
        loop {
            let large = self.large.lock();
            let Some(&chunk) = large.get(index) else {
                break;
            };
            look(chunk);
            index += 1;
        }
    }

    /// Bytes of memory that an object of `bytes` bytes takes.
    pub(crate) fn footprint(bytes: usize) -> usize {
        abi::shared::footprint(bytes)
    }

    /// Bytes of memory of the objects of `owner`, as far as they do not change hands meanwhile.
    pub(crate) fn bytes_of(&self, owner: Owner) -> usize {
        let mut sum = 0;
        self.each_chunk(|chunk| sum += chunk.count_of(owner) * chunk.object_bytes());
        sum
    }

    /// Tells `look` the owner and the bytes of every object. A lock is held for one chunk at a
    /// time, so what is allocated or changes hands meanwhile is told or not.
    pub(crate) fn for_each_owner(&self, mut look: impl FnMut(u32, usize)) {
        self.each_chunk(|chunk| chunk.owners().for_each(|(owner, bytes)| look(owner, bytes)));
    }

    fn allocate_slot(&self, slot: usize, may_grow: impl Fn(usize) -> bool) -> Option<NonNull<u8>> {
        let shift = slot.trailing_zeros();
        let mut class = self.classes[(shift - SMALLEST_SLOT.trailing_zeros()) as usize].lock();
        loop {
            let count = class.chunks.len();
            for step in 0..count {
                let index = (class.hint + step) % count;
                if let Some(object) = class.chunks[index].take_slot() {
                    class.hint = index;
                    return Some(object);
                }
            }
            if !may_grow(CHUNK_BYTES / PAGE) {
                return None;
            }
            class.chunks.try_reserve(1).ok()?;
            let chunk = self.new_chunk(shift)?;
            class.chunks.push(chunk);
            class.hint = count;
        }
    }

    fn free_slot(&self, chunk: Chunk, object: NonNull<u8>, shift: u32) {
        let mut class = self.classes[(shift - SMALLEST_SLOT.trailing_zeros()) as usize].lock();
        if chunk.put_slot(object) > 0 || class.chunks.len() == 1 {
            return;
        }
        if let Some(index) = class.chunks.iter().position(|other| *other == chunk) {
            class.chunks.swap_remove(index);
            class.hint = 0;
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

/// How far a search for the objects (of at most [`LARGEST_SLOT`] bytes) of one owner has come, who
/// is dead and has no thread inside. Each is found once if it is freed then, however chunks come
/// and go meanwhile: it goes backwards.
pub(crate) struct Search {
    owner: Owner,
    class: usize,
    /// Of so many chunks, from the first on, something may not have been seen yet.
    left: usize,
    /// The slot from which on it was not seen in the last of them.
    slot: u32,
}

impl Search {
    /// A search that has seen nothing.
    pub(crate) fn new(owner: Owner) -> Self {
        Search {
            owner,
            class: 0,
            left: usize::MAX,
            slot: 0,
        }
    }

    /// Looks at one chunk of `class`, the one where the search is; how many objects it found.
    fn look(&mut self, class: &Class, found: &mut [NonNull<u8>]) -> usize {
        #[cfg(test)]
        if (class.chunks.len() + 1..usize::MAX).contains(&self.left)
            && crate::sync::is_broken(crate::sync::Broken::ChunkLost)
        {
            self.left = 0;
        }
        if self.left > class.chunks.len() {
            // The class is new, or the chunk was its last and has gone to the place of another one
            // since.
            (self.left, self.slot) = (class.chunks.len(), 0);
        }
        let Some(index) = self.left.checked_sub(1) else {
            (self.class, self.left) = (self.class + 1, usize::MAX);
            return 0;
        };
        for (count, place) in found.iter_mut().enumerate() {
            let Some(slot) = class.chunks[index].find(self.owner, self.slot) else {
                (self.left, self.slot) = (index, 0);
                return count;
            };
            *place = class.chunks[index].object(slot);
            self.slot = slot + 1;
        }
        found.len()
    }
}

/// The content of a free slot.
#[repr(C)]
struct FreeSlot {
    /// Slot number of the next free one; 0: none.
    next: u32,
}

impl Chunk {
    /// The head. It is shared with whoever asks for an owner; see [`ChunkHead`].
    ///
    /// # Safety
    /// The chunk is live as long as the head is used: an object in it is, or its list's lock is
    /// held.
    unsafe fn head<'a>(self) -> &'a ChunkHead {
        // SAFETY: written when the chunk was made, by the caller's duty not given back yet, and
        // only its atomics change.
        unsafe { self.0.as_ref() }
    }

    /// A free slot, if there is one. The lock of the class is held.
    fn take_slot(self) -> Option<NonNull<u8>> {
        // SAFETY: the chunk is in its class's list, so it is live; the lock is held. Slots that
        // were never used are those from `first + used` on as long as the free list is empty:
        // `free` counts down only after `put_slot` counted it up.
        unsafe {
            let head = self.head();
            let (used, free) = (
                head.used.load(Ordering::Relaxed),
                head.free.load(Ordering::Relaxed),
            );
            let slot = if free != 0 {
                let next = self.slot(free).cast::<FreeSlot>().as_ref().next;
                head.free.store(next, Ordering::Relaxed);
                free
            } else if head.first + used < head.end {
                head.first + used
            } else {
                return None;
            };
            head.used.store(used + 1, Ordering::Relaxed);
            Some(self.slot(slot))
        }
    }

    /// Puts a slot back; how many are in use then. The lock of the class is held.
    fn put_slot(self, object: NonNull<u8>) -> u32 {
        // SAFETY: as in `take_slot`; the slot is free now, so its content is ours.
        unsafe {
            let head = self.head();
            let slot = (object.addr().get() & (CHUNK_BYTES - 1)) >> head.shift;
            let next = head.free.load(Ordering::Relaxed);
            object.cast::<FreeSlot>().write(FreeSlot { next });
            head.free.store(slot as u32, Ordering::Relaxed);
            let used = head.used.load(Ordering::Relaxed) - 1;
            head.used.store(used, Ordering::Relaxed);
            used
        }
    }

    /// # Safety
    /// `number` is a slot of this chunk of many.
    unsafe fn slot(self, number: u32) -> NonNull<u8> {
        // SAFETY: inside the chunk, by the caller's duty.
        unsafe {
            let offset = (number as usize) << self.head().shift;
            self.0.cast::<u8>().add(offset)
        }
    }

    /// Slots in use. The lock of the class is held.
    fn used(self) -> u32 {
        // SAFETY: the chunk is in its class's list, so it is live.
        unsafe { self.head().used.load(Ordering::Relaxed) }
    }

    /// Bytes of memory that each object takes. The lock of the list is held.
    fn object_bytes(self) -> usize {
        // SAFETY: the chunk is in its list, so it is live.
        let head = unsafe { self.head() };
        match head.shift {
            LARGE_SHIFT => head.pages as usize * PAGE,
            shift => 1 << shift,
        }
    }

    /// The owner cells of the slots from number `from` on, and the number of the first of them. The
    /// lock of the class is held as long as they are used.
    fn cells<'a>(self, from: u32) -> (u32, &'a [AtomicU32]) {
        // SAFETY: the chunk is in its class's list, so it is live. The table has a cell for every
        // slot.
        unsafe {
            let head = self.head();
            let from = from.clamp(head.first, head.end);
            let table = self.0.add(1).cast::<AtomicU32>();
            let cells =
                NonNull::slice_from_raw_parts(table.add(from as usize), (head.end - from) as usize);
            (from, cells.as_ref())
        }
    }

    /// The first slot from `from` on that `owner` owns. The lock as for `cells`.
    fn find(self, owner: Owner, from: u32) -> Option<u32> {
        point();
        let is_owners = |cell: &AtomicU32| cell.load(Ordering::Acquire) == owner.number();
        let (first, cells) = self.cells(from);
        // By eights, because most that is looked at belongs to others.
        let (eights, _) = cells.as_chunks::<8>();
        let others = eights
            .iter()
            .take_while(|eight| !eight.iter().any(is_owners));
        let skipped = 8 * others.count();
        let index = cells[skipped..].iter().position(is_owners)?;
        Some(first + (skipped + index) as u32)
    }

    /// The object in slot `number`, which the chunk has.
    fn object(self, number: u32) -> NonNull<u8> {
        // SAFETY: the chunk is in its class's list, so it is live, and the slot lies in it.
        unsafe {
            match self.head().shift {
                LARGE_SHIFT => self.0.cast::<u8>().add(LARGE_OFFSET),
                _ => self.slot(number),
            }
        }
    }

    /// The objects of `owner`. The lock of the class is held as long as the iterator is used.
    fn objects_of(self, owner: Owner) -> impl Iterator<Item = NonNull<u8>> {
        let mut from = 0;
        core::iter::from_fn(move || {
            let slot = self.find(owner, from)?;
            from = slot + 1;
            Some(self.object(slot))
        })
    }

    fn count_of(self, owner: Owner) -> usize {
        let is_owners = |cell: &&AtomicU32| cell.load(Ordering::Relaxed) == owner.number();
        self.cells(0).1.iter().filter(is_owners).count()
    }

    /// Owner and bytes of every object. The lock as for `objects_of`.
    fn owners(self) -> impl Iterator<Item = (u32, usize)> {
        let bytes = self.object_bytes();
        let owners = self.cells(0).1.iter();
        let owners = owners.map(|cell| cell.load(Ordering::Relaxed));
        let owners = owners.filter(|owner| *owner != NO_OWNER);
        owners.map(move |owner| (owner, bytes))
    }

    /// Makes all slots free at once, without a look at the objects, whose memory is cold. The lock
    /// of the class is held, and all slots in use are the caller's.
    fn clear(self) {
        // SAFETY: the chunk is in its class's list, so it is live. With no slot in use and an empty
        // free list all slots count as never used.
        let head = unsafe { self.head() };
        head.used.store(0, Ordering::Relaxed);
        head.free.store(0, Ordering::Relaxed);
        let free = |cell: &AtomicU32| cell.store(NO_OWNER, Ordering::Relaxed);
        let (eights, rest) = self.cells(0).1.as_chunks::<8>();
        eights.iter().for_each(|eight| eight.iter().for_each(free));
        rest.iter().for_each(free);
    }

    /// Puts back every slot of `owner`; how many. The lock of the class is held.
    fn put_all_of(self, owner: Owner) -> usize {
        if self.find(owner, 0).is_none() {
            return 0;
        }
        let count = self.count_of(owner);
        if count == self.used() as usize {
            self.clear();
            return count;
        }
        for object in self.objects_of(owner) {
            // SAFETY: a live object of the dead owner.
            unsafe { owner_cell(object).store(NO_OWNER, Ordering::Relaxed) };
            self.put_slot(object);
        }
        count
    }
}
