//! The search for all that one dead domain owns.

use super::Class;
use crate::memory::owner::Owner;
use core::ptr::NonNull;

/// How far a search for the objects (of at most [`LARGEST_SLOT`] bytes) of one owner has come, who
/// is dead and has no thread inside. Each is found once if it is freed then, however chunks come
/// and go meanwhile: it goes backwards.
pub(crate) struct Search {
    owner: Owner,
    pub(super) class: usize,
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
    pub(super) fn look(&mut self, class: &Class, found: &mut [NonNull<u8>]) -> usize {
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
