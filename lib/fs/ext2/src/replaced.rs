//! Inodes whose last name another one got by a rename, where there is no journal.
//!
//! On the disk they must not end before their name leads to the other, or a power cut between
//! leaves neither. All of a block of the inode table is written at once, with new inodes, to which
//! no name may lead before. So it is written twice: at first with the records of these as they
//! were, and once more behind the directories (see `writeback`).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::device::{BlockDevice, list};
use crate::error::Result;
use crate::transaction::Transaction;

/// Of so many a write-back is due.
pub(crate) const MOST: usize = 64;

/// A record as it was.
struct Old {
    block: u32,
    at: usize,
    record: Vec<u8>,
}

/// The inodes, since the last write-back.
#[derive(Default)]
pub(crate) struct Replaced(BTreeMap<u32, Old>);

impl Replaced {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The blocks that they lie in, sorted.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn blocks(&self) -> Result<Vec<u32>> {
        let mut blocks = list(self.0.values().map(|old| old.block))?;
        blocks.sort_unstable();
        blocks.dedup();
        Ok(blocks)
    }

    /// Makes the records in `data`, the content of `block`, what they were.
    pub(crate) fn restore(&self, block: u32, data: &mut [u8]) {
        for old in self.0.values().filter(|old| old.block == block) {
            data[old.at..old.at + old.record.len()].copy_from_slice(&old.record);
        }
    }

    /// Everything is on the disk.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes over what a transaction has noted; what was noted before stays, as it is older.
    pub(crate) fn absorb(&mut self, other: Replaced) {
        for (ino, old) in other.0 {
            self.0.entry(ino).or_insert(old);
        }
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Notes what `ino` is, whose name leads to another inode from now on.
    pub(crate) fn note_replaced(&mut self, ino: u32) -> Result<()> {
        if self.store.journal.is_some() {
            return Ok(());
        }
        let size = self.layout().inode_size;
        let (block, at) = self.inode_location(ino)?;
        let record = list(self.read(block)?[at..at + size].iter().copied())?;
        let block = block.number();
        self.replaced.0.insert(ino, Old { block, at, record });
        Ok(())
    }
}
