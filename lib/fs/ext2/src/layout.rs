//! The superblock and what follows from it: where everything lies. A [`Layout`] exists only after
//! every number in it was checked against the device, so the arithmetic of the other modules
//! cannot overflow. [`Block`] is the type of a block number that was checked.

use crate::bytes::{u16_at, u32_at};
use crate::error::{Error, Result};
use crate::features::{self, FeatureSet};
use crate::hash::Hashing;

/// Where the superblock lies, in bytes from the start of the device.
pub(crate) const SUPERBLOCK_OFFSET: usize = 1024;
/// Bytes of the superblock.
pub(crate) const SUPERBLOCK_SIZE: usize = 1024;
/// Bytes of a group descriptor.
pub(crate) const DESCRIPTOR_SIZE: u32 = 32;
/// The inode of the root directory.
pub(crate) const ROOT: u32 = 2;

/// Offsets in the superblock of the fields that change while mounted.
pub(crate) mod field {
    pub(crate) const FREE_BLOCKS: usize = 12;
    pub(crate) const FREE_INODES: usize = 16;
    pub(crate) const MOUNT_TIME: usize = 44;
    pub(crate) const WRITE_TIME: usize = 48;
    pub(crate) const MOUNT_COUNT: usize = 52;
    pub(crate) const STATE: usize = 58;
    pub(crate) const INCOMPAT: usize = 96;
    pub(crate) const RO_COMPAT: usize = 100;
    pub(crate) const JOURNAL_INODE: usize = 224;
    pub(crate) const LAST_ORPHAN: usize = 232;
}

/// Bit of the state field: unmounted cleanly.
pub(crate) const STATE_VALID: u16 = 1;
/// Bit of the state field: errors were found.
pub(crate) const STATE_ERROR: u16 = 2;

/// A block number that lies inside the file system. That the block holds what it should, or
/// belongs to who names it, is not proven by having one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Block(u32);

impl Block {
    /// The number.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The checked shape of a file system. It does not change while mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Bytes in a block: 1,024, 2,048 or 4,096.
    pub(crate) block_size: usize,
    /// Blocks in the file system; all of them are on the device.
    pub(crate) blocks: u32,
    /// Blocks that are kept for the super-user.
    pub(crate) reserved_blocks: u32,
    /// Inodes in the file system.
    pub(crate) inodes: u32,
    /// The block that holds the superblock; group 0 starts with it.
    pub(crate) first_data_block: u32,
    /// Blocks in every group but perhaps the last.
    pub(crate) blocks_per_group: u32,
    /// Inodes in every group.
    pub(crate) inodes_per_group: u32,
    /// Bytes in an inode record.
    pub(crate) inode_size: usize,
    /// The first inode number that is not reserved.
    pub(crate) first_inode: u32,
    /// Number of groups.
    pub(crate) groups: u32,
    /// Blocks of one group's inode table.
    pub(crate) table_blocks: u32,
    /// Blocks of the group descriptor table.
    pub(crate) descriptor_blocks: u32,
    /// Blocks behind each copy of it into which it may grow.
    pub(crate) reserved_descriptors: u32,
    /// Whether the format has the fields of revision 1.
    pub(crate) dynamic: bool,
    /// Whether directories carry the kind of each entry.
    pub(crate) file_types: bool,
    /// The state field as it was found at mount.
    pub(crate) state: u16,
    /// Whether there is a journal.
    pub(crate) journal: bool,
    /// Whether the journal must be replayed before the file system makes sense.
    pub(crate) needs_recovery: bool,
    /// The inode of the journal, unchecked; 0 if it is on another device.
    pub(crate) journal_inode: u32,
    /// How names are hashed, if directories may have an index that this mount uses.
    pub(crate) hashing: Option<Hashing>,
    sparse_super: bool,
    backup_groups: Option<[u32; 2]>,
}

impl Layout {
    /// Checks the superblock `sb` against a device of `sectors` sectors.
    ///
    /// # Errors
    /// `NotExt2`, `Corrupt`, `BlockSize`, `Unsupported`; `OnlyReadable` if not `read_only`.
    pub(crate) fn parse(sb: &[u8], sectors: u64, read_only: bool) -> Result<Self> {
        if u16_at(sb, 56) != 0xEF53 {
            return Err(Error::NotExt2("no magic number in the superblock"));
        }
        let dynamic = u32_at(sb, 76) != 0;
        let word = |at: usize| if dynamic { u32_at(sb, at) } else { 0 };
        let (compat, incompat, ro_compat) = (word(92), word(96), word(100));
        if let Some(set) = FeatureSet::unknown_incompatible(incompat) {
            return Err(Error::Unsupported(set));
        }
        if let (Some(set), false) = (FeatureSet::unknown_read_only(ro_compat), read_only) {
            return Err(Error::OnlyReadable(set));
        }
        let sparse2 = compat & features::COMPAT_SPARSE_SUPER2 != 0;
        let mut layout = Layout {
            block_size: block_size(u32_at(sb, 24))?,
            blocks: u32_at(sb, 4),
            reserved_blocks: u32_at(sb, 8),
            inodes: u32_at(sb, 0),
            first_data_block: u32_at(sb, 20),
            blocks_per_group: u32_at(sb, 32),
            inodes_per_group: u32_at(sb, 40),
            inode_size: if dynamic { u16_at(sb, 88).into() } else { 128 },
            first_inode: if dynamic { u32_at(sb, 84) } else { 11 },
            groups: 0,
            table_blocks: 0,
            descriptor_blocks: 0,
            reserved_descriptors: reserved_descriptors(sb, compat),
            dynamic,
            file_types: incompat & features::INCOMPAT_FILETYPE != 0,
            state: u16_at(sb, field::STATE),
            journal: compat & features::COMPAT_HAS_JOURNAL != 0,
            needs_recovery: incompat & features::INCOMPAT_RECOVER != 0,
            journal_inode: word(field::JOURNAL_INODE),
            hashing: None,
            sparse_super: ro_compat & features::RO_SPARSE_SUPER != 0,
            backup_groups: sparse2.then(|| [u32_at(sb, 0x24C), u32_at(sb, 0x250)]),
        };
        // An index is changed in several blocks at once, which without a journal a power cut would
        // tear apart. So there the names are all that counts, and an index goes with a change.
        if compat & features::COMPAT_DIR_INDEX != 0 && (layout.journal || read_only) {
            layout.hashing = hashing(sb);
        }
        layout.check_sizes(sectors)?;
        layout.derive()?;
        Ok(layout)
    }

    /// Checks the numbers that stand in the superblock.
    fn check_sizes(&self, sectors: u64) -> Result<()> {
        let bits = self.block_size as u32 * 8;
        let bytes = u64::from(self.blocks) * self.block_size as u64;
        let size = self.inode_size;
        let checks = [
            (
                self.first_data_block == u32::from(self.block_size == 1024),
                "first data block",
            ),
            (self.blocks > 8, "block count"),
            (
                bytes.div_ceil(512) <= sectors,
                "the file system is larger than the device",
            ),
            (
                (64..=bits).contains(&self.blocks_per_group),
                "blocks per group",
            ),
            (self.blocks_per_group.is_multiple_of(8), "blocks per group"),
            (
                (8..=bits).contains(&self.inodes_per_group),
                "inodes per group",
            ),
            (
                size.is_power_of_two() && size >= 128 && size <= self.block_size,
                "inode size",
            ),
            (
                (11..=self.inodes).contains(&self.first_inode),
                "first inode",
            ),
            (self.reserved_blocks <= self.blocks, "reserved block count"),
            (
                self.journal || !self.needs_recovery,
                "recovery needed, but no journal",
            ),
        ];
        match checks.iter().find(|(good, _)| !good) {
            Some((_, what)) => Err(Error::Corrupt(what)),
            None => Ok(()),
        }
    }

    /// Computes the rest and checks that the tables fit. `check_sizes` passed, so nothing
    /// overflows.
    fn derive(&mut self) -> Result<()> {
        let block_size = self.block_size as u32;
        let table_bytes = self.inodes_per_group * self.inode_size as u32;
        self.groups = (self.blocks - self.first_data_block).div_ceil(self.blocks_per_group);
        self.table_blocks = table_bytes.div_ceil(block_size);
        self.descriptor_blocks = self.groups.div_ceil(block_size / DESCRIPTOR_SIZE);
        if u64::from(self.groups) * u64::from(self.inodes_per_group) != u64::from(self.inodes) {
            return Err(Error::Corrupt("inode count"));
        }
        if self.table_blocks + 2 >= self.blocks_per_group {
            return Err(Error::Corrupt("inode table larger than its group"));
        }
        if self.descriptor_blocks + 1 >= self.group_blocks(0) {
            return Err(Error::Corrupt(
                "group descriptor table larger than its group",
            ));
        }
        Ok(())
    }

    /// Turns a number from the disk into a [`Block`].
    ///
    /// # Errors
    /// `Corrupt(what)` if it is outside the file system or the superblock's.
    pub(crate) fn block(&self, raw: u32, what: &'static str) -> Result<Block> {
        if raw <= self.first_data_block || raw >= self.blocks {
            return Err(Error::Corrupt(what));
        }
        Ok(Block(raw))
    }

    /// The block that holds the superblock.
    pub(crate) fn superblock(&self) -> Block {
        Block(self.first_data_block)
    }

    /// Where the superblock starts in its block.
    pub(crate) fn superblock_at(&self) -> usize {
        SUPERBLOCK_OFFSET % self.block_size
    }

    /// The block of group `group`'s descriptor, and where in it. `group` must exist.
    pub(crate) fn descriptor(&self, group: u32) -> (Block, usize) {
        let per_block = self.block_size as u32 / DESCRIPTOR_SIZE;
        let block = self.first_data_block + 1 + group / per_block;
        (Block(block), (group % per_block * DESCRIPTOR_SIZE) as usize)
    }

    /// The first block of a group.
    pub(crate) fn group_start(&self, group: u32) -> u32 {
        self.first_data_block + group * self.blocks_per_group
    }

    /// How many blocks a group has; the last may be shorter than the others.
    pub(crate) fn group_blocks(&self, group: u32) -> u32 {
        (self.blocks - self.group_start(group)).min(self.blocks_per_group)
    }

    /// The group that a block lies in, and its bit in the group's bitmap.
    pub(crate) fn group_of(&self, block: Block) -> (u32, u32) {
        let index = block.0 - self.first_data_block;
        (index / self.blocks_per_group, index % self.blocks_per_group)
    }

    /// The group of an inode, and its index there.
    ///
    /// # Errors
    /// `Corrupt(what)` if there is no such inode number.
    pub(crate) fn inode_group(&self, ino: u32, what: &'static str) -> Result<(u32, u32)> {
        if ino == 0 || ino > self.inodes {
            return Err(Error::Corrupt(what));
        }
        Ok((
            (ino - 1) / self.inodes_per_group,
            (ino - 1) % self.inodes_per_group,
        ))
    }

    /// How many inodes from the first of a group on are reserved.
    pub(crate) fn reserved_inodes(&self, group: u32) -> u32 {
        let before = group.saturating_mul(self.inodes_per_group);
        (self.first_inode - 1)
            .saturating_sub(before)
            .min(self.inodes_per_group)
    }

    /// Whether group `group` starts with a copy of superblock and descriptors.
    pub(crate) fn has_superblock(&self, group: u32) -> bool {
        if group == 0 {
            return true;
        }
        if let Some(groups) = self.backup_groups {
            return groups.contains(&group);
        }
        !self.sparse_super || group == 1 || [3, 5, 7].iter().any(|base| is_power(group, *base))
    }

    /// Blocks of a group that hold the file system's own tables.
    pub(crate) fn group_overhead(&self, group: u32) -> u32 {
        let copies = if self.has_superblock(group) {
            1 + self.descriptor_blocks
        } else {
            0
        };
        copies + 2 + self.table_blocks
    }

    /// Blocks of all groups that hold the file system's own tables, and those before the first
    /// group. It looks at each group.
    pub(crate) fn overhead(&self) -> u64 {
        let groups = 0..self.groups.min(1 << 16);
        let of_groups = groups.map(|group| u64::from(self.group_overhead(group)));
        u64::from(self.first_data_block) + of_groups.sum::<u64>()
    }

    /// Pointers in an indirect block.
    pub(crate) fn pointers(&self) -> usize {
        self.block_size / 4
    }

    /// The largest size of a file, in bytes: what three levels of indirection reach, and what the
    /// 32-bit count of sectors in an inode allows.
    pub(crate) fn max_file_size(&self) -> u64 {
        let pointers = self.pointers() as u64;
        let reach = 12 + pointers + pointers.pow(2) + pointers.pow(3);
        (reach * self.block_size as u64).min((1 << 41) - (1 << 32))
    }
}

/// Blocks that are reserved for more descriptors; a number that makes no sense is none.
fn reserved_descriptors(sb: &[u8], compat: u32) -> u32 {
    let blocks: u32 = match compat & features::COMPAT_RESIZE_INODE {
        0 => 0,
        _ => u16_at(sb, 206).into(),
    };
    match block_size(u32_at(sb, 24)) {
        Ok(size) if blocks <= size as u32 / 4 => blocks,
        _ => 0,
    }
}

/// What the superblock says of hashes of names.
fn hashing(sb: &[u8]) -> Option<Hashing> {
    let seed = core::array::from_fn(|n| u32_at(sb, 236 + 4 * n));
    Hashing::new(sb[252], seed, u32_at(sb, 352))
}

fn block_size(log: u32) -> Result<usize> {
    match log {
        0..=2 => Ok(1024 << log),
        3..=6 => Err(Error::BlockSize(1024 << log)),
        _ => Err(Error::Corrupt("block size")),
    }
}

fn is_power(mut number: u32, base: u32) -> bool {
    while number > 1 && number.is_multiple_of(base) {
        number /= base;
    }
    number == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{put_u16, put_u32};
    use alloc::vec;
    use alloc::vec::Vec;

    /// A superblock of 8 MiB in blocks of 1 KiB, one group.
    fn good() -> Vec<u8> {
        let mut sb = vec![0; SUPERBLOCK_SIZE];
        for (at, value) in [(0, 2048), (4, 8192), (20, 1), (32, 8192), (40, 2048)] {
            put_u32(&mut sb, at, value);
        }
        put_u16(&mut sb, 56, 0xEF53);
        sb
    }

    fn refused(at: usize, value: u32) -> Error {
        let mut sb = good();
        put_u32(&mut sb, at, value);
        Layout::parse(&sb, 16384, false).expect_err("refused")
    }

    #[test]
    fn a_good_superblock_is_accepted() {
        let layout = Layout::parse(&good(), 16384, false).expect("good");
        assert_eq!(
            (layout.groups, layout.table_blocks, layout.inode_size),
            (1, 256, 128)
        );
    }

    #[test]
    fn every_bad_number_is_refused_by_name() {
        assert_eq!(refused(0, 2049), Error::Corrupt("inode count"));
        assert_eq!(
            refused(4, 8193),
            Error::Corrupt("the file system is larger than the device")
        );
        assert_eq!(refused(4, 3), Error::Corrupt("block count"));
        assert_eq!(refused(8, 8193), Error::Corrupt("reserved block count"));
        assert_eq!(refused(20, 0), Error::Corrupt("first data block"));
        assert_eq!(refused(20, u32::MAX), Error::Corrupt("first data block"));
        assert_eq!(refused(24, 3), Error::BlockSize(8192));
        assert_eq!(refused(24, u32::MAX), Error::Corrupt("block size"));
        assert_eq!(refused(32, 0), Error::Corrupt("blocks per group"));
        assert_eq!(refused(32, 8193), Error::Corrupt("blocks per group"));
        assert_eq!(refused(40, 0), Error::Corrupt("inodes per group"));
        assert!(matches!(refused(56, 0), Error::NotExt2(_)));
    }

    #[test]
    fn copies_of_the_superblock_are_in_the_sparse_groups() {
        let mut layout = Layout::parse(&good(), 16384, false).expect("good");
        assert!((0..50).all(|group| layout.has_superblock(group)));
        layout.sparse_super = true;
        let sparse: Vec<u32> = (0..50)
            .filter(|group| layout.has_superblock(*group))
            .collect();
        assert_eq!(sparse, [0, 1, 3, 5, 7, 9, 25, 27, 49]);
    }
}
