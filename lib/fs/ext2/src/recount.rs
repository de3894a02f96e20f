//! Counting what is free at mount. The superblock's counters sum up those of the groups, and are
//! older after a crash. Those of a group sum up its bitmaps; without a journal a power cut may
//! leave them older, but never smaller: what is allocated is written to the bitmaps before the
//! counters, what is freed to the counters before the bitmaps. So a smaller count is corrected, and
//! a larger one is damage (see `trust`).

use crate::bitmap;
use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::group::Group;
use crate::layout::{STATE_ERROR, field};
use crate::transaction::Transaction;

impl<D: BlockDevice> FileSystem<D> {
    /// Sets the superblock's counters to the sums of those of the groups, if they are not. Where
    /// a power cut may have left the groups' counters older than the bitmaps these are corrected
    /// before.
    ///
    /// # Errors
    /// Device errors.
    pub(crate) fn recount(&mut self) -> Result<()> {
        if self.store.read_only {
            return Ok(());
        }
        let has_errors = self.store.layout.state & STATE_ERROR != 0;
        let lags = !self.was_clean() && !self.has_journal() && !has_errors;
        let (mut blocks, mut inodes) = (0u32, 0u32);
        for index in 0..self.store.layout.groups {
            if lags {
                self.update(|tx| tx.recount_group(index))?;
            }
            if let Some(group) = self.view(|tx| tx.sane_group(index))? {
                blocks = blocks.saturating_add(group.free_blocks);
                inodes = inodes.saturating_add(group.free_inodes);
            }
        }
        self.update(|tx| {
            tx.correct_super(field::FREE_BLOCKS, blocks)?;
            tx.correct_super(field::FREE_INODES, inodes)
        })
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// A group, unless a number in its descriptor makes no sense.
    pub(crate) fn sane_group(&mut self, index: u32) -> Result<Option<Group>> {
        match self.group(index) {
            Err(Error::Corrupt(_)) => Ok(None),
            group => group.map(Some),
        }
    }

    /// Corrects the counters of a group that say more than its bitmaps.
    fn recount_group(&mut self, index: u32) -> Result<()> {
        let layout = self.layout();
        let Some(mut group) = self.sane_group(index)? else {
            return Ok(());
        };
        let blocks = layout.group_blocks(index);
        let blocks = bitmap::count_clear(self.read(group.places.block_bitmap)?, blocks);
        let inodes = layout.inodes_per_group;
        let inodes = bitmap::count_clear(self.read(group.places.inode_bitmap)?, inodes);
        if blocks > group.free_blocks || inodes > group.free_inodes {
            return Ok(());
        }
        let directories = group.directories.min(layout.inodes_per_group - inodes);
        let counted = (blocks, inodes, directories);
        if counted != (group.free_blocks, group.free_inodes, group.directories) {
            (group.free_blocks, group.free_inodes, group.directories) = counted;
            self.put_group(&group)?;
        }
        Ok(())
    }

    fn correct_super(&mut self, field: usize, value: u32) -> Result<()> {
        match self.super_field(field)? == value {
            true => Ok(()),
            false => self.set_super_field(field, value),
        }
    }
}
