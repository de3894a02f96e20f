//! Content of files that somebody else writes to the device: where it is to go.
//!
//! Who keeps the content of a file asks for its place, writes there, and tells nobody; the
//! [device](BlockDevice::await_content) knows what is still on its way. No metadata that names the
//! place is written before that has arrived, as with content that is written here.

use alloc::vec::Vec;
use core::ops::Range;

use crate::blockmap::Run;
use crate::device::{BlockDevice, DeviceError};
use crate::error::{Error, Result};
use crate::file::WRITE_BLOCKS;
use crate::fs::FileSystem;
use crate::time::Time;
use crate::transaction::Transaction;

/// Blocks that find room in any transaction: two pages of the smallest blocks.
const FEW: u64 = 8;

/// Whole blocks that follow each other on the device.
#[derive(Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first sector.
    pub sector: u64,
    /// How many bytes.
    pub bytes: usize,
    /// Nothing of the file was there before.
    pub is_fresh: bool,
}

/// Where content is to go.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Pieces that follow each other in each range.
    pub extents: Vec<Extent>,
    /// How many bytes of the ranges, from the first on, have a place.
    pub bytes: u64,
}

impl<D: BlockDevice> FileSystem<D> {
    /// Gives `ranges` of a file, which follow each other, places on the device, and the file the
    /// time `modified`. Each range begins with a block and ends with one, or where the file is to
    /// end; it ends there if it ended before. As much as one transaction does: some from the first
    /// on.
    ///
    /// The caller then writes there, also what the last block has behind the end: zeros. No other
    /// call of this kind comes before the device knows that these are on their way.
    ///
    /// # Errors
    /// `NoSpace` if there is no place for the first block; as [`write`](Self::write).
    pub fn map_content(
        &mut self,
        ino: u32,
        ranges: &[Range<u64>],
        modified: Time,
    ) -> Result<Mapped> {
        self.finish_cut(ino)?;
        let most = WRITE_BLOCKS.min(self.store.cache.capacity() as u64 / 2);
        let mut extents = Vec::new();
        // Before, since what has a place has to be written.
        extents
            .try_reserve_exact(most as usize)
            .map_err(|_| DeviceError::NoMemory)?;
        let mapped = self.map_at_most(ino, ranges, modified, most);
        let (runs, bytes) = match mapped {
            // A transaction that changes a block of pointers for each block may find no room.
            Err(Error::NoSpace) => self.map_at_most(ino, ranges, modified, FEW)?,
            mapped => mapped?,
        };
        for run in &runs {
            extents.push(self.extent(run)?);
        }
        Ok(Mapped { extents, bytes })
    }

    /// Content has arrived: forgets what is cached of its places, which is older.
    pub fn forget_content(&mut self, mapped: &Mapped) {
        for extent in &mapped.extents {
            for block in self.blocks(extent) {
                self.store.cache.forget(block);
            }
        }
    }

    /// Content did not arrive: places that are new are zeros from now on, so that the file never
    /// shows what another one had there.
    ///
    /// # Errors
    /// `Corrupt`, if it is not the answer of this file system.
    pub fn clear_content(&mut self, mapped: &Mapped) -> Result<()> {
        let layout = self.store.layout;
        for extent in mapped.extents.iter().filter(|extent| extent.is_fresh) {
            for block in self.blocks(extent) {
                let block = layout.block(block, "content outside the device")?;
                self.store.data_mut(block, true)?;
            }
        }
        Ok(())
    }

    fn blocks(&self, extent: &Extent) -> Range<u32> {
        let first = (extent.sector / self.store.sector(1)) as u32;
        first..first + (extent.bytes / self.store.layout.block_size) as u32
    }

    fn map_at_most(
        &mut self,
        ino: u32,
        ranges: &[Range<u64>],
        modified: Time,
        most: u64,
    ) -> Result<(Vec<Run>, u64)> {
        self.update(|tx| tx.map_content(ino, ranges, modified, most))
    }

    /// Where a run lies. What the cache has of it is older than what the caller will write.
    fn extent(&mut self, run: &Run) -> Result<Extent> {
        let layout = self.store.layout;
        for n in 0..run.count {
            let block = run.nth(n, &layout)?.number();
            self.store.cache.forget(block);
        }
        let first = run.nth(0, &layout)?.number();
        Ok(Extent {
            sector: self.store.sector(first),
            bytes: run.count as usize * layout.block_size,
            is_fresh: run.fresh,
        })
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    fn map_content(
        &mut self,
        ino: u32,
        ranges: &[Range<u64>],
        modified: Time,
        most: u64,
    ) -> Result<(Vec<Run>, u64)> {
        let size = self.layout().block_size as u64;
        let mut inode = self.file(ino)?;
        let (mut runs, mut bytes, mut left) = (Vec::new(), 0, most);
        for range in ranges {
            if !range.start.is_multiple_of(size) || range.is_empty() {
                return Err(Error::Invalid("content is mapped by blocks"));
            }
            if range.end > self.max_size() {
                return Err(Error::FileTooLarge);
            }
            if range.start > inode.size {
                self.clear_tail(&inode)?;
            }
            let wanted = left.min(range.end.div_ceil(size) - range.start / size) as u32;
            let found = match self.fill_runs(&mut inode, range.start / size, wanted) {
                Err(Error::NoSpace) if bytes > 0 => break,
                found => found?,
            };
            let blocks: u64 = found.iter().map(|run| u64::from(run.count)).sum();
            let end = range.end.min(range.start + blocks * size);
            self.grow(&mut inode, end)?;
            runs.extend(found);
            bytes += end - range.start;
            left -= blocks;
            if end < range.end || left == 0 {
                break;
            }
        }
        inode.mtime = modified;
        inode.ctime = inode.ctime.max(modified);
        self.put_inode(&inode)?;
        Ok((runs, bytes))
    }
}
