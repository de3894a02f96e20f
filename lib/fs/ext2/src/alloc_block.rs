//! Allocation of blocks: runs near a goal; and their release.

use alloc::vec::Vec;

use crate::bitmap;
use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::layout::{Block, field};
use crate::pending::Pending;
use crate::transaction::Transaction;

impl<D: BlockDevice> Transaction<'_, D> {
    /// How many blocks can be allocated now. Freed ones that wait for a write-back do not count.
    pub(crate) fn free_blocks(&mut self) -> Result<u32> {
        let written = self.store.written_frees().map_or(0, Pending::blocks);
        let waiting = self
            .store
            .pending
            .blocks()
            .saturating_add(written)
            .saturating_add(self.freed.blocks());
        Ok(self
            .super_field(field::FREE_BLOCKS)?
            .saturating_sub(waiting))
    }

    /// Allocates up to `want` consecutive blocks, as near behind `goal` as can be.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; device errors.
    pub(crate) fn allocate_run(&mut self, goal: u32, want: u32) -> Result<(Block, u32)> {
        let layout = self.layout();
        if self.free_blocks()? == 0 {
            return Err(Error::NoSpace);
        }
        let goal = layout.block(goal, "goal").ok();
        let (first, bit) = goal.map_or((0, 0), |goal| layout.group_of(goal));
        for n in 0..=layout.groups {
            let index = (first + n) % layout.groups;
            let bit = if n == 0 { bit } else { 0 };
            if !self.is_trusted(index)? {
                continue;
            }
            let group = self.group(index)?;
            if group.free_blocks == 0 {
                continue;
            }
            if let Some((bit, count)) = self.search(&group, bit, want)? {
                let block = self.take_blocks(group, bit, count)?;
                return Ok((block, count));
            }
        }
        Err(Error::NoSpace)
    }

    /// Looks for free blocks in a group: at `goal`, then a free byte of the bitmap, then any bit,
    /// behind the goal and then before it.
    fn search(&mut self, group: &Group, goal: u32, want: u32) -> Result<Option<(u32, u32)>> {
        let end = self.layout().group_blocks(group.index);
        let used = self.used_bits(group.places.block_bitmap)?;
        let found = if goal < end && !bitmap::is_set(&used, goal) {
            Some(goal)
        } else {
            bitmap::first_clear_byte(&used, goal, end)
                .or_else(|| bitmap::first_clear(&used, goal, end))
                .or_else(|| bitmap::first_clear_byte(&used, 0, end))
                .or_else(|| bitmap::first_clear(&used, 0, end))
        };
        let most = want.min(group.free_blocks);
        Ok(found.map(|bit| (bit, bitmap::clear_run(&used, bit, most, end))))
    }

    /// A copy of a bitmap in which freed bits that wait for a write-back are used.
    pub(crate) fn used_bits(&mut self, block: Block) -> Result<Vec<u8>> {
        let mut used = self.read(block)?.to_vec();
        let written = self.store.written_frees();
        let masks = [
            self.store.pending.mask(block.number()),
            written.and_then(|frees| frees.mask(block.number())),
        ];
        masks
            .into_iter()
            .flatten()
            .for_each(|mask| bitmap::merge(&mut used, mask));
        self.freed.mark(block.number(), &mut used);
        Ok(used)
    }

    /// The first bit in `from..to` that [`used_bits`](Self::used_bits) has as clear.
    pub(crate) fn first_unused(&mut self, block: Block, from: u32, to: u32) -> Result<Option<u32>> {
        if self.freed.is_about(block.number()) {
            return Ok(bitmap::first_clear(&self.used_bits(block)?, from, to));
        }
        self.read(block)?;
        let number = block.number();
        let map = self.seen(number);
        let map = map.expect("the newest blocks are never evicted");
        let written = self.store.written_frees();
        let masks = [
            self.store.pending.mask(number),
            written.and_then(|frees| frees.mask(number)),
        ];
        let [pending, written] = masks.map(Option::unwrap_or_default);
        Ok(bitmap::first_clear_in_all(
            [map, pending, written],
            from,
            to,
        ))
    }

    /// Marks free blocks of a group as used.
    fn take_blocks(&mut self, mut group: Group, bit: u32, count: u32) -> Result<Block> {
        let layout = self.layout();
        let start = layout.group_start(group.index) + bit;
        let block = layout.block(start, "block bitmap")?;
        self.check_run_owned(block, count)?;
        self.set_bits(group.places.block_bitmap, bit, count)?;
        group.free_blocks -= count;
        self.put_group(&group)?;
        self.add_to_super(field::FREE_BLOCKS, -i64::from(count), layout.blocks)?;
        Ok(block)
    }

    /// Sets bits of a bitmap, one at least.
    pub(crate) fn set_bits(&mut self, block: Block, bit: u32, count: u32) -> Result<()> {
        let (part, first) = bitmap::part(bit, count);
        bitmap::set(self.modify(block, Kind::Bitmap, part)?, first, count);
        Ok(())
    }

    /// Clears bits of a bitmap, one at least.
    pub(crate) fn clear_bits(&mut self, block: Block, bit: u32, count: u32) -> Result<()> {
        let (part, first) = bitmap::part(bit, count);
        bitmap::clear(self.modify(block, Kind::Bitmap, part)?, first, count);
        Ok(())
    }

    /// Frees `count` blocks from `start` on. Those of a group that is not trusted are left over.
    ///
    /// # Errors
    /// `Corrupt` if one is outside, free already, or the file system's own; device errors.
    pub(crate) fn free_run(&mut self, start: u32, count: u32) -> Result<()> {
        let layout = self.layout();
        let mut at = start;
        let end = start.saturating_add(count);
        while at < end {
            let first = layout.block(at, "freed block outside the device")?;
            let (index, bit) = layout.group_of(first);
            let here = (end - at).min(layout.group_blocks(index) - bit);
            self.check_run_owned(first, here)?;
            if self.is_trusted(index)? {
                self.free_in_group(index, at, bit, here)?;
            }
            at += here;
        }
        Ok(())
    }

    fn free_in_group(&mut self, index: u32, start: u32, bit: u32, count: u32) -> Result<()> {
        let layout = self.layout();
        let mut group = self.group(index)?;
        if !bitmap::all_set(self.read(group.places.block_bitmap)?, bit, count) {
            return Err(Error::Corrupt("a block of a file is marked as free"));
        }
        self.clear_bits(group.places.block_bitmap, bit, count)?;
        group.free_blocks += count;
        if group.free_blocks > layout.group_blocks(index) {
            return Err(Error::Corrupt("free count in a group descriptor"));
        }
        self.put_group(&group)?;
        self.add_to_super(field::FREE_BLOCKS, count.into(), layout.blocks)?;
        // There is room in front again, which the next file is to take.
        if matches!(self.store.next_file, Some((last, next)) if last == index && start < next) {
            self.store.next_file = None;
        }
        self.freed
            .add(group.places.block_bitmap.number(), bit, count);
        self.freed.count_blocks(count);
        self.forget(start, count);
        Ok(())
    }
}
