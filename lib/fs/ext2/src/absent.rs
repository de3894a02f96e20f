//! Blocks that are read from the device while others use the file system.
//!
//! The file system belongs to who has the lock around it, and the device is slow. So an operation
//! may be attempted ([`FileSystem::attempt_cached`]): where it needs a block that is not cached it
//! is given up, the block is read without the lock, and it is attempted again. That it can be given
//! up is what transactions are for: until the first one is made visible an operation has done
//! nothing. From there on it reads for itself.
//!
//! What was read without the lock may be old when it comes: somebody else may have loaded the same
//! block meanwhile, changed it, had it written and given up again. So the cache knows which blocks
//! are being read, and one that anything is done to meanwhile is not taken.

use alloc::vec::Vec;

use crate::cache::Reading;
use crate::device::{BlockDevice, DeviceError, zeroes};
use crate::fs::FileSystem;
use crate::store::Store;

/// What became of an operation that was attempted.
pub enum Attempt<T> {
    /// It is done, with this result.
    Done(T),
    /// It has done nothing, for want of this.
    Missing(Load),
}

/// Blocks that are to be read without the file system. Each is to come back to
/// [`loaded`](FileSystem::loaded), whatever becomes of it.
#[derive(Debug)]
#[must_use]
pub struct Load {
    reading: Reading,
    sector: u64,
    bytes: usize,
}

impl Load {
    /// Reads the blocks from the device.
    ///
    /// # Errors
    /// The device's; no memory.
    pub fn read<D: BlockDevice>(&self, device: &D) -> Result<Vec<u8>, DeviceError> {
        let mut content = zeroes(self.bytes, self.bytes)?;
        device.read(self.sector, &mut content)?;
        Ok(content)
    }
}

impl<D: BlockDevice> FileSystem<D> {
    /// Does `operation`, one of this file system's, unless it needs a block that is not cached
    /// before it has changed anything. Where [`commit`](Self::commit), [`sync`](Self::sync) and
    /// their like need one, they read it.
    pub fn attempt_cached<T>(&mut self, operation: impl FnOnce(&mut Self) -> T) -> Attempt<T> {
        // What is in a journal that is not replayed is put together from several places.
        self.store.defers = self.store.overlay.is_empty();
        let streams = (self.streams, self.next_stream);
        let result = operation(self);
        self.store.defers = false;
        if self.store.missing.is_some() {
            (self.streams, self.next_stream) = streams;
        }
        match self.store.missing.take() {
            None => Attempt::Done(result),
            Some((reading, bytes)) => Attempt::Missing(Load {
                sector: self.store.sector(reading.blocks().start),
                reading,
                bytes,
            }),
        }
    }

    /// Takes what was read; nothing, if it could not be.
    pub fn loaded(&mut self, load: Load, content: Option<Vec<u8>>) {
        self.store.reads += 1;
        let old = self.store.cache.end_reading(&load.reading);
        let content = content.filter(|content| content.len() == load.bytes);
        let (Some(content), first) = (content, load.reading.blocks().start) else {
            return;
        };
        // Backwards, so that the block that was asked for is the newest.
        let size = self.store.layout.block_size;
        let blocks = load.reading.blocks().zip(content.chunks_exact(size)).rev();
        for (number, data) in blocks.filter(|(number, _)| old >> (number - first) & 1 == 0) {
            self.store.cache.insert_clean(number, data);
        }
    }
}

impl<D: BlockDevice> Store<D> {
    /// Whether an operation that needs `count` blocks from `first` on, none of which is cached, is
    /// given up for them.
    pub(crate) fn gives_up_for(&mut self, first: u32, count: u32) -> bool {
        if !self.defers {
            return false;
        }
        let size = self.layout.block_size;
        let reading = self.cache.begin_reading(first, count);
        self.missing = reading.map(|reading| {
            let bytes = reading.blocks().len() * size;
            (reading, bytes)
        });
        self.missing.is_some()
    }

    /// From here on the operation that is attempted has done something: what it needs it waits for.
    pub(crate) fn stay(&mut self) {
        debug_assert!(self.missing.is_none(), "it would have been given up");
        self.defers = false;
    }
}
