//! The heap: entries in chunks that never move, the earliest deadline first.
//!
//! No entry is due before its parent. The children of the entry at place `p` are at `2p + 1` and
//! `2p + 2`.

use crate::{CHUNK, Room, Timer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::{replace, swap, take};
use core::num::NonZeroU64;

/// A timer that is set.
pub(crate) struct Entry<T> {
    pub(crate) deadline: u64,
    pub(crate) period: Option<NonZeroU64>,
    pub(crate) timer: Arc<Timer<T>>,
}

pub(crate) struct Heap<T> {
    /// Each has room for [`CHUNK`] entries; all before the last entry are full.
    chunks: Vec<Vec<Entry<T>>>,
    length: usize,
}

impl<T> Heap<T> {
    pub(crate) const fn new() -> Self {
        Heap {
            chunks: Vec::new(),
            length: 0,
        }
    }

    /// How many entries find room.
    pub(crate) fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Takes the chunk from `room`, if that was made for one more. A table that is too small is
    /// replaced: 16 times as fast as the entries would be moved, and only when their number has
    /// doubled.
    pub(crate) fn extend(&mut self, room: &mut Room<T>) {
        let wanted = self.chunks.len() + 1;
        if self.chunks.capacity() < wanted {
            if room.table.capacity() < wanted {
                return;
            }
            room.table.append(&mut self.chunks);
            self.chunks = replace(&mut room.table, take(&mut self.chunks));
        }
        if room.chunk.capacity() >= CHUNK {
            self.chunks.push(take(&mut room.chunk));
        }
    }

    /// The last chunk, which is empty.
    pub(crate) fn pop_chunk(&mut self) -> Option<Vec<Entry<T>>> {
        let is_empty = self.chunks.last().is_some_and(Vec::is_empty);
        is_empty.then(|| self.chunks.pop()).flatten()
    }

    /// All memory, if there are no entries.
    pub(crate) fn take_room(&mut self) -> Vec<Vec<Entry<T>>> {
        match self.length {
            0 => take(&mut self.chunks),
            _ => Vec::new(),
        }
    }

    /// The entry at a place where there is one.
    pub(crate) fn at(&self, place: usize) -> &Entry<T> {
        &self.chunks[place / CHUNK][place % CHUNK]
    }

    pub(crate) fn first(&self) -> Option<&Entry<T>> {
        self.chunks.first()?.first()
    }

    /// Adds an entry, for which there is room.
    pub(crate) fn push(&mut self, entry: Entry<T>) {
        let place = self.length;
        assert!(place < self.room(), "a place was booked for each timer");
        entry.timer.note_place(place);
        self.chunks[place / CHUNK].push(entry);
        self.length += 1;
        self.rise(place);
    }

    /// Takes the entry at `place` out.
    pub(crate) fn remove(&mut self, place: usize) -> Arc<Timer<T>> {
        let last = self.length - 1;
        if place != last {
            self.swap(place, last);
        }
        let entry = self.chunks[last / CHUNK].pop();
        let entry = entry.expect("the last entry is in the last chunk that has any");
        self.length = last;
        if place != last {
            self.settle(place);
        }
        entry.timer.note_end();
        entry.timer
    }

    /// Gives the entry at `place` another deadline.
    pub(crate) fn change(&mut self, place: usize, deadline: u64, period: Option<NonZeroU64>) {
        let entry = &mut self.chunks[place / CHUNK][place % CHUNK];
        (entry.deadline, entry.period) = (deadline, period);
        self.settle(place);
    }

    /// Moves an entry to where its deadline belongs.
    fn settle(&mut self, place: usize) {
        if self.rise(place) == place {
            self.sink(place);
        }
    }

    /// Moves an entry before those that are due later; where it is then.
    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.at(parent).deadline <= self.at(place).deadline {
                break;
            }
            self.swap(parent, place);
            place = parent;
        }
        place
    }

    /// Moves an entry behind those that are due earlier.
    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..self.length.min(2 * place + 3);
            let first = children.min_by_key(|&child| self.at(child).deadline);
            match first {
                Some(child) if self.at(child).deadline < self.at(place).deadline => {
                    self.swap(place, child);
                    place = child;
                }
                _ => return,
            }
        }
    }

    /// Exchanges two entries, of which the first has the lower place.
    fn swap(&mut self, low: usize, high: usize) {
        let (front, back) = self.chunks.split_at_mut(high / CHUNK);
        match front.get_mut(low / CHUNK) {
            None => back[0].swap(low % CHUNK, high % CHUNK),
            Some(chunk) => swap(&mut chunk[low % CHUNK], &mut back[0][high % CHUNK]),
        }
        self.at(low).timer.note_place(low);
        self.at(high).timer.note_place(high);
    }
}
