//! Counting what is free, after a power cut: the counters are written last, so they may be older
//! than the bitmaps they sum up.

use crate::bitmap;
use crate::device::BlockDevice;
use crate::error::Result;
use crate::fs::FileSystem;
use crate::layout::field;
use crate::transaction::Transaction;

impl<D: BlockDevice> FileSystem<D> {
    /// Sets the counters to what the bitmaps say, if the image was not unmounted cleanly.
    ///
    /// # Errors
    /// `Corrupt` if a descriptor makes no sense; device errors.
    pub(crate) fn recount(&mut self) -> Result<()> {
        if self.store.read_only || self.was_clean() {
            return Ok(());
        }
        let (mut blocks, mut inodes) = (0, 0);
        for group in 0..self.store.layout.groups {
            let (free_blocks, free_inodes) = self.update(|tx| tx.recount_group(group))?;
            blocks += free_blocks;
            inodes += free_inodes;
        }
        self.update(|tx| {
            tx.correct_super(field::FREE_BLOCKS, blocks)?;
            tx.correct_super(field::FREE_INODES, inodes)
        })
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Corrects the counters of a group; returns its free blocks and inodes.
    fn recount_group(&mut self, index: u32) -> Result<(u32, u32)> {
        let layout = self.layout();
        let mut group = self.group(index)?;
        let counted = (group.free_blocks, group.free_inodes);
        let blocks = layout.group_blocks(index);
        group.free_blocks = bitmap::count_clear(self.read(group.places.block_bitmap)?, blocks);
        let inodes = layout.inodes_per_group;
        group.free_inodes = bitmap::count_clear(self.read(group.places.inode_bitmap)?, inodes);
        let free = (group.free_blocks, group.free_inodes);
        if free != counted {
            self.put_group(&group)?;
        }
        Ok(free)
    }

    fn correct_super(&mut self, field: usize, value: u32) -> Result<()> {
        match self.super_field(field)? == value {
            true => Ok(()),
            false => self.set_super_field(field, value),
        }
    }
}
