//! Looks at all of a heap: who has how much.

use super::{Chunk, SharedHeap};
use crate::memory::owner::Owner;
use abi::shared::CHUNK_BYTES;
use core::ops::ControlFlow;
use core::ptr::NonNull;

impl SharedHeap {
    /// Bytes of memory in chunks that hold no object and are kept for the next one.
    pub fn spare_bytes(&self) -> usize {
        let mut bytes = 0;
        self.each_slotted(|chunk| bytes += CHUNK_BYTES * usize::from(chunk.used() == 0));
        bytes
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
}
