//! Block groups: the descriptors (ext2 spec, "Block Group Descriptor Table"), checked each time
//! they are read, and where inodes lie.

use crate::bytes::{put_u16, u16_at, u32_at};
use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::layout::{Block, Layout};
use crate::transaction::Transaction;

/// Blocks of an inode table that are read together.
const TABLE_READ_AHEAD: u32 = 16;

/// Groups of which it is remembered where their tables lie.
const REMEMBERED: usize = 8;

/// Where a group's tables lie: inside the group, apart from each other and from the copies of
/// superblock and descriptors. That never changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    index: u32,
    pub(crate) block_bitmap: Block,
    pub(crate) inode_bitmap: Block,
    pub(crate) inode_table: Block,
}

/// What is remembered of it, so that it has not to be read and checked for every inode.
#[derive(Default)]
pub(crate) struct GroupPlaces([Option<Places>; REMEMBERED]);

impl GroupPlaces {
    fn get(&self, index: u32) -> Option<Places> {
        self.0[index as usize % REMEMBERED].filter(|places| places.index == index)
    }

    fn remember(&mut self, places: Places) {
        self.0[places.index as usize % REMEMBERED] = Some(places);
    }
}

/// A group's descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) index: u32,
    pub(crate) places: Places,
    pub(crate) free_blocks: u32,
    pub(crate) free_inodes: u32,
    pub(crate) directories: u32,
}

impl Group {
    /// Decodes and checks the descriptor of group `index`, whose tables lie there.
    fn decode(places: Places, raw: &[u8], layout: &Layout) -> Result<Self> {
        let group = Group {
            index: places.index,
            places,
            free_blocks: u16_at(raw, 12).into(),
            free_inodes: u16_at(raw, 14).into(),
            directories: u16_at(raw, 16).into(),
        };
        if group.free_blocks > layout.group_blocks(group.index)
            || group.free_inodes > layout.inodes_per_group
            || group.directories > layout.inodes_per_group
        {
            return Err(Error::Corrupt("counter in a group descriptor"));
        }
        Ok(group)
    }
}

impl Places {
    /// Decodes and checks what the descriptor of group `index` says of its tables.
    fn decode(index: u32, raw: &[u8], layout: &Layout) -> Result<Self> {
        let places = Places {
            index,
            block_bitmap: layout.block(u32_at(raw, 0), "block bitmap outside the device")?,
            inode_bitmap: layout.block(u32_at(raw, 4), "inode bitmap outside the device")?,
            inode_table: layout.block(u32_at(raw, 8), "inode table outside the device")?,
        };
        places.check(layout)?;
        Ok(places)
    }

    fn check(&self, layout: &Layout) -> Result<()> {
        let start = layout.group_start(self.index);
        let end = start + layout.group_blocks(self.index);
        let copies = start + self.superblock_copies(layout);
        let table = self.inode_table.number();
        let table_end = table.saturating_add(layout.table_blocks);
        let bitmaps = [self.block_bitmap.number(), self.inode_bitmap.number()];
        let inside = |block: u32| block >= copies && block < end;
        let apart = |block: u32| block < table || block >= table_end;
        if !bitmaps.iter().all(|block| inside(*block) && apart(*block)) || bitmaps[0] == bitmaps[1]
        {
            return Err(Error::Corrupt(
                "bitmap outside its group or over another table",
            ));
        }
        if !inside(table) || table_end > end {
            return Err(Error::Corrupt("inode table outside its group"));
        }
        Ok(())
    }

    /// Blocks at the start of the group that hold copies of superblock and descriptors.
    fn superblock_copies(&self, layout: &Layout) -> u32 {
        if layout.has_superblock(self.index) {
            1 + layout.descriptor_blocks
        } else {
            0
        }
    }

    /// The bits of the group's bitmap that are of the file system itself: the first, and how many.
    pub(crate) fn system(&self, layout: &Layout) -> impl Iterator<Item = (u32, u32)> + use<> {
        let start = layout.group_start(self.index);
        let head = match self.superblock_copies(layout) {
            0 => 0,
            // Room that the descriptors may grow into.
            copies => (copies + layout.reserved_descriptors).min(layout.group_blocks(self.index)),
        };
        [
            (0, head),
            (self.block_bitmap.number() - start, 1),
            (self.inode_bitmap.number() - start, 1),
            (self.inode_table.number() - start, layout.table_blocks),
        ]
        .into_iter()
    }

    /// Whether any of `count` bits from `bit` on is of the file system itself.
    fn is_system(&self, bit: u32, count: u32, layout: &Layout) -> bool {
        self.system(layout)
            .any(|(first, length)| bit < first + length && first < bit + count)
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// The descriptor of group `index`, which must exist.
    pub(crate) fn group(&mut self, index: u32) -> Result<Group> {
        let layout = self.layout();
        let (block, at) = layout.descriptor(index);
        let places = self.places(index)?;
        Group::decode(places, &self.read(block)?[at..at + 32], &layout)
    }

    /// Where the tables of group `index` lie, which must exist.
    pub(crate) fn places(&mut self, index: u32) -> Result<Places> {
        if let Some(places) = self.store.places.get(index) {
            return Ok(places);
        }
        let layout = self.layout();
        let (block, at) = layout.descriptor(index);
        let places = Places::decode(index, &self.read(block)?[at..at + 32], &layout)?;
        self.store.places.remember(places);
        Ok(places)
    }

    /// Stores the counters of a group.
    pub(crate) fn put_group(&mut self, group: &Group) -> Result<()> {
        let (block, at) = self.layout().descriptor(group.index);
        let raw = self.modify(block, Kind::Counters, at + 12..at + 18)?;
        put_u16(raw, 0, group.free_blocks as u16);
        put_u16(raw, 2, group.free_inodes as u16);
        put_u16(raw, 4, group.directories as u16);
        Ok(())
    }

    /// Checks that `block` may belong to a file: that it is no part of the file system's own
    /// tables, nor of the journal.
    pub(crate) fn check_owned(&mut self, block: Block) -> Result<()> {
        self.check_run_owned(block, 1)
    }

    /// As [`check_owned`](Self::check_owned), of `count` blocks from `block` on, which exist.
    pub(crate) fn check_run_owned(&mut self, block: Block, count: u32) -> Result<()> {
        let layout = self.layout();
        let (mut index, mut bit) = layout.group_of(block);
        let mut left = count;
        while left > 0 {
            let here = left.min(layout.group_blocks(index) - bit);
            if self.places(index)?.is_system(bit, here, &layout) {
                return Err(Error::Corrupt(
                    "a file owns a block of the file system's tables",
                ));
            }
            left -= here;
            (index, bit) = (index + 1, 0);
        }
        match self.store.is_of_journal(block.number(), count) {
            true => Err(Error::Corrupt("a file owns a block of the journal")),
            false => Ok(()),
        }
    }

    /// The block that holds inode `ino`, and where in it. What follows in the table is read ahead.
    pub(crate) fn inode_location(&mut self, ino: u32) -> Result<(Block, usize)> {
        let layout = self.layout();
        let (index, n) = layout.inode_group(ino, "inode number")?;
        let places = self.places(index)?;
        let per_block = (layout.block_size / layout.inode_size) as u32;
        let within = n / per_block;
        let raw = places.inode_table.number() + within;
        let block = layout.block(raw, "inode table outside the device")?;
        let ahead = TABLE_READ_AHEAD.min(layout.table_blocks - within);
        self.store.load_run(block, ahead as usize)?;
        Ok((block, (n % per_block) as usize * layout.inode_size))
    }
}
