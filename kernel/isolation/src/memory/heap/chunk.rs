//! One chunk of a heap: its slots, their owners, and the list of free ones.

use super::Chunk;
use crate::memory::owner::Owner;
use crate::sync::point;
use abi::shared::{CHUNK_BYTES, ChunkHead, LARGE_OFFSET, LARGE_SHIFT, NO_OWNER, owner_cell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

/// The content of a free slot.
#[repr(C)]
pub(super) struct FreeSlot {
    /// Slot number of the next free one; 0: none.
    pub(super) next: u32,
}

impl Chunk {
    /// The head. It is shared with whoever asks for an owner; see [`ChunkHead`].
    ///
    /// # Safety
    /// The chunk is live as long as the head is used: an object in it is, or its list's lock is
    /// held.
    pub(super) unsafe fn head<'a>(self) -> &'a ChunkHead {
        // SAFETY: written when the chunk was made, by the caller's duty not given back yet, and
        // only its atomics change.
        unsafe { self.0.as_ref() }
    }

    /// A free slot, if there is one. The lock of the class is held.
    pub(super) fn take_slot(self) -> Option<NonNull<u8>> {
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
                self.top().store(head.first + used + 1, Ordering::Relaxed);
                head.first + used
            } else {
                return None;
            };
            head.used.store(used + 1, Ordering::Relaxed);
            Some(self.slot(slot))
        }
    }

    /// Puts a slot back; how many are in use then. The lock of the class is held.
    pub(super) fn put_slot(self, object: NonNull<u8>) -> u32 {
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
    pub(super) unsafe fn slot(self, number: u32) -> NonNull<u8> {
        // SAFETY: inside the chunk, by the caller's duty.
        unsafe {
            let offset = (number as usize) << self.head().shift;
            self.0.cast::<u8>().add(offset)
        }
    }

    /// Slots in use. The lock of the class is held.
    pub(super) fn used(self) -> u32 {
        // SAFETY: the chunk is in its class's list, so it is live.
        unsafe { self.head().used.load(Ordering::Relaxed) }
    }

    /// Bytes of memory that each object takes. The lock of the list is held.
    pub(super) fn object_bytes(self) -> usize {
        // SAFETY: the chunk is in its list, so it is live.
        unsafe { self.head() }.object_bytes()
    }

    /// One past the last slot that was ever in use: from there on all cells say that they are free,
    /// so that nobody need look at them. It stands in the cell of slot 0, which is never used.
    ///
    /// # Safety
    /// This is a chunk of many slots, and live as long as the word is used.
    unsafe fn top<'a>(self) -> &'a AtomicU32 {
        // SAFETY: the table follows the head, and has a cell for every slot; by the caller's duty.
        unsafe { self.0.add(1).cast::<AtomicU32>().as_ref() }
    }

    /// The owner cells of the slots from number `from` on that were ever in use, and the number of
    /// the first of them. The lock of the class is held as long as they are used.
    fn cells<'a>(self, from: u32) -> (u32, &'a [AtomicU32]) {
        // SAFETY: the chunk is in its class's list, so it is live. The table has a cell for every
        // slot.
        unsafe {
            let head = self.head();
            let end = match head.shift {
                LARGE_SHIFT => head.end,
                _ => self.top().load(Ordering::Relaxed).max(head.first),
            };
            let from = from.clamp(head.first, end);
            let table = self.0.add(1).cast::<AtomicU32>();
            let cells =
                NonNull::slice_from_raw_parts(table.add(from as usize), (end - from) as usize);
            (from, cells.as_ref())
        }
    }

    /// The first slot from `from` on that `owner` owns. The lock as for `cells`.
    pub(super) fn find(self, owner: Owner, from: u32) -> Option<u32> {
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
    pub(super) fn object(self, number: u32) -> NonNull<u8> {
        // SAFETY: the chunk is in its class's list, so it is live, and the slot lies in it.
        unsafe {
            match self.head().shift {
                LARGE_SHIFT => self.0.cast::<u8>().add(LARGE_OFFSET),
                _ => self.slot(number),
            }
        }
    }

    /// The objects of `owner`. The lock of the class is held as long as the iterator is used.
    pub(super) fn objects_of(self, owner: Owner) -> impl Iterator<Item = NonNull<u8>> {
        let mut from = 0;
        core::iter::from_fn(move || {
            let slot = self.find(owner, from)?;
            from = slot + 1;
            Some(self.object(slot))
        })
    }

    /// How many objects `owner` has. The lock as for `cells`.
    pub(super) fn count_of(self, owner: Owner) -> usize {
        let Some(first) = self.find(owner, 0) else {
            return 0;
        };
        let is_owners = |cell: &AtomicU32| cell.load(Ordering::Relaxed) == owner.number();
        let count = |cells: &[AtomicU32]| cells.iter().filter(|cell| is_owners(cell)).count();
        // By eights, because many chunks belong to one owner from end to end.
        let (eights, rest) = self.cells(first).1.as_chunks::<8>();
        let all = eights
            .iter()
            .map(|eight| match eight.iter().all(is_owners) {
                true => 8,
                false => count(eight),
            });
        all.sum::<usize>() + count(rest)
    }

    /// Owner and bytes of every object. The lock as for `objects_of`.
    pub(super) fn owners(self) -> impl Iterator<Item = (u32, usize)> {
        let bytes = self.object_bytes();
        let owners = self.cells(0).1.iter();
        let owners = owners.map(|cell| cell.load(Ordering::Relaxed));
        let owners = owners.filter(|owner| *owner != NO_OWNER);
        owners.map(move |owner| (owner, bytes))
    }

    /// Makes all slots free at once, without a look at the objects, whose memory is cold. The lock
    /// of the class is held, and all slots in use are the caller's.
    pub(super) fn clear(self) {
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

    /// Puts back every slot of `owner`. The lock of the class is held.
    pub(super) fn put_all_of(self, owner: Owner) {
        for object in self.objects_of(owner) {
            // SAFETY: a live object of the dead owner.
            unsafe { owner_cell(object).store(NO_OWNER, Ordering::Relaxed) };
            self.put_slot(object);
        }
    }
}
