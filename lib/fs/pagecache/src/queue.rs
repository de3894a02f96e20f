//! Which chunk goes when room is needed.
//!
//! Two queues and a memory of what has gone, after S3-FIFO (Yang and others, "FIFO queues are all
//! you need for cache eviction", SOSP '23):
//!
//! - A new chunk comes to the end of the *small* queue. When room is needed and that has more than
//!   a tenth of the budget, its first chunk goes; or, if it was used again since it came, moves to
//!   the end of the *main* queue.
//! - Otherwise the first chunk of the main queue goes; or, if it was used since it came there, to
//!   its end again.
//! - Places of chunks that went from the small queue are remembered for as long as as many chunks
//!   would take to pass through the main queue. One that comes back comes to the main queue at
//!   once.
//!
//! *Used again* means: bytes were read that had been read before. Someone who reads a chunk piece
//! by piece from its start to its end uses it once.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::Buffer;

/// The name of a chunk. It is not used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    slot: usize,
    generation: u64,
}

/// A chunk that went.
pub(crate) struct Gone<B> {
    pub(crate) file: u64,
    pub(crate) offset: u64,
    pub(crate) buffer: Arc<B>,
}

struct Chunk<B> {
    generation: u64,
    file: u64,
    offset: u64,
    buffer: Arc<B>,
    /// Up to where it was read.
    mark: usize,
    /// It was used again.
    again: bool,
    in_main: bool,
}

impl<B: Buffer> Chunk<B> {
    /// Bytes of memory that it takes.
    fn footprint(&self) -> usize {
        B::footprint(self.buffer.len())
    }
}

/// All chunks.
pub(crate) struct Queue<B> {
    slots: Vec<Option<Chunk<B>>>,
    unused: Vec<usize>,
    generation: u64,
    small: VecDeque<Id>,
    main: VecDeque<Id>,
    /// Bytes of memory of the chunks in the small queue.
    small_bytes: usize,
    /// Bytes of memory of all chunks.
    bytes: usize,
    count: usize,
    past: VecDeque<(u64, u64)>,
    past_set: BTreeSet<(u64, u64)>,
}

impl<B: Buffer> Queue<B> {
    pub(crate) fn new() -> Self {
        Queue {
            slots: Vec::new(),
            unused: Vec::new(),
            generation: 0,
            small: VecDeque::new(),
            main: VecDeque::new(),
            small_bytes: 0,
            bytes: 0,
            count: 0,
            past: VecDeque::new(),
            past_set: BTreeSet::new(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a chunk.
    pub(crate) fn add(&mut self, file: u64, offset: u64, buffer: Arc<B>) -> Id {
        self.generation += 1;
        let in_main = self.past_set.contains(&(file, offset));
        let bytes = B::footprint(buffer.len());
        let chunk = Chunk {
            generation: self.generation,
            file,
            offset,
            buffer,
            mark: 0,
            again: false,
            in_main,
        };
        let slot = self.unused.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(slot) {
            Some(place) => *place = Some(chunk),
            None => self.slots.push(Some(chunk)),
        }
        let id = Id {
            slot,
            generation: self.generation,
        };
        self.count += 1;
        self.bytes += bytes;
        match in_main {
            true => self.main.push_back(id),
            false => {
                self.small_bytes += bytes;
                self.small.push_back(id);
            }
        }
        self.tidy();
        id
    }

    fn get(&mut self, id: Id) -> Option<&mut Chunk<B>> {
        let chunk = self.slots.get_mut(id.slot)?.as_mut()?;
        (chunk.generation == id.generation).then_some(chunk)
    }

    /// Length of a chunk in bytes.
    pub(crate) fn length(&self, id: Id) -> usize {
        let chunk = self.slots.get(id.slot).and_then(Option::as_ref);
        chunk.map_or(0, |chunk| chunk.buffer.len())
    }

    /// Notes that up to `length` bytes are read from `from` on; the buffer, and where they end.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub(crate) fn touch(&mut self, id: Id, from: usize, length: usize) -> (Arc<B>, usize) {
        let chunk = self
            .get(id)
            .expect("a file names only chunks that are there");
        let to = chunk.buffer.len().min(from.saturating_add(length));
        chunk.again |= from < chunk.mark;
        chunk.mark = chunk.mark.max(to);
        (chunk.buffer.clone(), to)
    }

    /// The content of a chunk for change, unless somebody is reading it.
    pub(crate) fn bytes_mut(&mut self, id: Id) -> Option<&mut [u8]> {
        let chunk = self.get(id)?;
        Arc::get_mut(&mut chunk.buffer).map(|buffer| &mut buffer[..])
    }

    /// Removes a chunk.
    pub(crate) fn remove(&mut self, id: Id) {
        if self.get(id).is_some() {
            self.take(id.slot);
        }
    }

    fn take(&mut self, slot: usize) -> Option<Chunk<B>> {
        let chunk = self.slots.get_mut(slot)?.take()?;
        self.unused.push(slot);
        self.count -= 1;
        self.bytes -= chunk.footprint();
        if !chunk.in_main {
            self.small_bytes -= chunk.footprint();
        }
        Some(chunk)
    }

    /// Lets the chunk that is worth least go, in a cache for `budget` bytes.
    pub(crate) fn evict(&mut self, budget: usize) -> Option<Gone<B>> {
        loop {
            let from_small = self.small_bytes > budget / 10 || self.main.is_empty();
            let id = match from_small {
                true => self.small.pop_front(),
                false => self.main.pop_front(),
            };
            let Some(id) = id else {
                if self.main.is_empty() && self.small.is_empty() {
                    return None;
                }
                continue;
            };
            let Some(chunk) = self.get(id) else {
                continue;
            };
            let bytes = chunk.footprint();
            if core::mem::take(&mut chunk.again) {
                chunk.in_main = true;
                if from_small {
                    self.small_bytes -= bytes;
                }
                self.main.push_back(id);
                continue;
            }
            let gone = self.take(id.slot)?;
            if from_small {
                self.remember((gone.file, gone.offset));
            }
            return Some(Gone {
                file: gone.file,
                offset: gone.offset,
                buffer: gone.buffer,
            });
        }
    }

    /// Remembers the place of a chunk that went; as many as there are chunks.
    fn remember(&mut self, place: (u64, u64)) {
        if self.past_set.insert(place) {
            self.past.push_back(place);
        }
        while self.past.len() > self.count.max(16) {
            if let Some(oldest) = self.past.pop_front() {
                self.past_set.remove(&oldest);
            }
        }
    }

    /// Drops names of removed chunks from the queues before they outnumber the others.
    fn tidy(&mut self) {
        if self.small.len() + self.main.len() <= 2 * self.count + 64 {
            return;
        }
        let slots = &self.slots;
        let lives = |id: &Id| {
            slots[id.slot]
                .as_ref()
                .is_some_and(|chunk| chunk.generation == id.generation)
        };
        self.small.retain(lives);
        self.main.retain(lives);
    }
}
