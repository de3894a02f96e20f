//! What is cached of one file: its chunks by their place, and its readers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::queue::Id;
use crate::stream::Readers;

/// A file. Chunks do not overlap.
pub(crate) struct File {
    pub(crate) version: u64,
    /// Its length, if that is known.
    pub(crate) size: Option<u64>,
    /// By offset: length in bytes, and the chunk.
    chunks: BTreeMap<u64, (usize, Id)>,
    pub(crate) readers: Readers,
}

impl File {
    pub(crate) fn new(version: u64) -> Self {
        File {
            version,
            size: None,
            chunks: BTreeMap::new(),
            readers: Readers::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The chunk with the byte at `offset`: where it starts, and its name.
    pub(crate) fn chunk_at(&self, offset: u64) -> Option<(u64, Id)> {
        let (&start, &(bytes, id)) = self.chunks.range(..=offset).next_back()?;
        (offset - start < bytes as u64).then_some((start, id))
    }

    /// The chunks that have bytes of `from..to`.
    pub(crate) fn chunks_in(&self, from: u64, to: u64) -> Vec<(u64, Id)> {
        let first = self.chunk_at(from).map_or(from, |(start, _)| start);
        let inside = self.chunks.range(first..to.max(first));
        inside.map(|(start, (_, id))| (*start, *id)).collect()
    }

    pub(crate) fn overlaps(&self, offset: u64, bytes: usize) -> bool {
        self.chunk_at(offset).is_some() || self.free_from(offset, bytes) < bytes
    }

    /// How many of `bytes` bytes from `offset` on, which is not cached, lie before the next chunk.
    pub(crate) fn free_from(&self, offset: u64, bytes: usize) -> usize {
        let next = self.chunks.range(offset..).next();
        next.map_or(bytes, |(start, _)| ((start - offset) as usize).min(bytes))
    }

    pub(crate) fn attach(&mut self, offset: u64, bytes: usize, id: Id) {
        self.chunks.insert(offset, (bytes, id));
    }

    pub(crate) fn detach(&mut self, offset: u64) {
        self.chunks.remove(&offset);
    }

    /// Lets go of all chunks that have bytes behind `size`, or of the page that it lies in.
    pub(crate) fn cut(&mut self, size: u64) -> impl Iterator<Item = Id> + use<> {
        let first = self.chunk_at(size).map_or(size, |(start, _)| start);
        let gone = self.chunks.split_off(&first);
        gone.into_values().map(|(_, id)| id)
    }
}
