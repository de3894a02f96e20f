//! Items that are found by number, in chunks that are allocated before a lock is taken and never
//! move.

use alloc::vec::Vec;
use core::mem::{replace, size_of, take};

/// Items in a chunk.
pub(crate) const CHUNK: usize = 64;

struct Chunk<T, P> {
    items: Vec<T>,
    _payment: P,
}

/// Memory for more items, that was allocated before it is known whether it is needed.
pub(crate) struct Room<T, P> {
    /// Where all chunks find room, if their old place is full.
    place: Vec<Chunk<T, P>>,
    chunk: Option<Chunk<T, P>>,
}

/// Items by number.
pub(crate) struct Chunks<T, P>(Vec<Chunk<T, P>>);

/// What a chunk is charged with, in bytes: its items, and its place among the chunks.
pub(crate) const fn chunk_bytes<T>() -> usize {
    CHUNK * size_of::<T>() + 64
}

impl<T, P> Room<T, P> {
    /// Room for `chunks` chunks, and the last of them. `None`: there is no memory.
    pub(crate) fn new(chunks: usize, payment: P, item: impl Fn() -> T) -> Option<Self> {
        let (mut place, mut items) = (Vec::new(), Vec::new());
        place.try_reserve_exact(chunks.next_power_of_two()).ok()?;
        items.try_reserve_exact(CHUNK).ok()?;
        items.resize_with(CHUNK, item);
        let chunk = Some(Chunk {
            items,
            _payment: payment,
        });
        Some(Room { place, chunk })
    }
}

impl<T, P> Chunks<T, P> {
    pub(crate) const fn new() -> Self {
        Chunks(Vec::new())
    }

    /// How many chunks there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Item number `number`, which there is.
    pub(crate) fn item(&mut self, number: u32) -> &mut T {
        let number = number as usize;
        &mut self.0[number / CHUNK].items[number % CHUNK]
    }

    /// Takes a chunk from `room`, if that was made for one more; the number of its first item. The
    /// rest is to be dropped without the lock.
    pub(crate) fn extend(&mut self, room: &mut Room<T, P>) -> Option<u32> {
        let wanted = self.0.len() + 1;
        if self.0.capacity() < wanted {
            if room.place.capacity() < wanted {
                return None;
            }
            room.place.append(&mut self.0);
            self.0 = replace(&mut room.place, take(&mut self.0));
        }
        let chunk = room.chunk.take()?;
        let first = (self.0.len() * CHUNK) as u32;
        self.0.push(chunk);
        Some(first)
    }
}
