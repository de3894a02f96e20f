//! The journal's blocks on disk: JBD2 without checksums and with 32-bit block numbers, which is
//! what ext3 has. All numbers are big-endian, unlike those of the file system. Everything here
//! works on bytes alone.
//!
//! Format reference: the Linux kernel's documentation, "ext4 data structures and algorithms",
//! chapter "Journal (jbd2)", cited as "jbd2".

use alloc::vec::Vec;

use crate::error::{Error, Result};
use crate::features::FeatureSet;

/// The first word of every block of the journal that is no copy.
const MAGIC: u32 = 0xC03B_3998;
/// Bytes of the header: magic number, type, sequence.
const HEADER: usize = 12;
/// Bytes of a tag.
const TAG: usize = 8;
/// Bytes of the journal's name, behind the first tag of a descriptor.
const UUID: usize = 16;
/// Where the block numbers of a revoke block start.
const REVOKES: usize = 16;
/// Bytes of the superblock.
pub(crate) const SUPERBLOCK_SIZE: usize = 1024;
/// The fewest blocks of a journal that is written to.
const LENGTH_MIN: u32 = 1024;
/// The most blocks of a journal; ten times what the host's tools make.
pub(crate) const LENGTH_MAX: u32 = 1 << 20;

const FLAG_ESCAPED: u16 = 1;
const FLAG_SAME_UUID: u16 = 2;
const FLAG_LAST: u16 = 8;

const SUPERBLOCK_V1: u32 = 3;
const SUPERBLOCK_V2: u32 = 4;

const FIELD_SEQUENCE: usize = 24;
const FIELD_START: usize = 28;
const FIELD_ERRNO: usize = 32;
const FIELD_COMPAT: usize = 36;
const FIELD_INCOMPAT: usize = 40;
const FIELD_UUID: usize = 48;
/// Incompatible feature: there may be revoke blocks.
pub(crate) const INCOMPAT_REVOKE: u32 = 1;

/// What a block of the journal is, if it is no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockType {
    /// Tags: where the copies belong that follow.
    Descriptor,
    /// The end of a transaction.
    Commit,
    /// Blocks whose older copies must not be replayed.
    Revoke,
}

impl BlockType {
    fn number(self) -> u32 {
        match self {
            BlockType::Descriptor => 1,
            BlockType::Commit => 2,
            BlockType::Revoke => 5,
        }
    }
}

fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([block[at], block[at + 1]])
}

fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

fn put_u16(block: &mut [u8], at: usize, value: u16) {
    block[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn put_u32(block: &mut [u8], at: usize, value: u32) {
    block[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// What `block` is, and of which transaction; `None` if it is no block of a journal.
pub(crate) fn header(block: &[u8]) -> Option<(BlockType, u32)> {
    if u32_at(block, 0) != MAGIC {
        return None;
    }
    let types = [BlockType::Descriptor, BlockType::Commit, BlockType::Revoke];
    let known = types
        .into_iter()
        .find(|known| known.number() == u32_at(block, 4));
    known.map(|known| (known, u32_at(block, 8)))
}

/// Starts `block` anew with a header.
fn start(block: &mut [u8], of: BlockType, sequence: u32) {
    block.fill(0);
    put_u32(block, 0, MAGIC);
    put_u32(block, 4, of.number());
    put_u32(block, 8, sequence);
}

/// Where the copy of one block belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Its block number in the file system, unchecked.
    pub(crate) home: u32,
    /// The copy lost its first word, the magic number.
    pub(crate) escaped: bool,
}

/// The tags of a descriptor block.
pub(crate) struct Tags<'a> {
    block: &'a [u8],
    at: usize,
}

/// Lists the tags of a descriptor block.
pub(crate) fn tags(block: &[u8]) -> Tags<'_> {
    Tags { block, at: HEADER }
}

impl Iterator for Tags<'_> {
    type Item = Tag;

    fn next(&mut self) -> Option<Tag> {
        if self.at + TAG > self.block.len() {
            return None;
        }
        let flags = u16_at(self.block, self.at + 6);
        let tag = Tag {
            home: u32_at(self.block, self.at),
            escaped: flags & FLAG_ESCAPED != 0,
        };
        self.at += TAG;
        if flags & FLAG_SAME_UUID == 0 {
            self.at += UUID;
        }
        if flags & FLAG_LAST != 0 {
            self.at = self.block.len();
        }
        Some(tag)
    }
}

/// How many tags fit into a descriptor of `size` bytes.
pub(crate) fn tags_per_block(size: usize) -> usize {
    (size - HEADER - UUID) / TAG
}

/// Makes `block` a descriptor with `tags`, which fit.
pub(crate) fn put_tags(block: &mut [u8], sequence: u32, uuid: &[u8; UUID], tags: &[Tag]) {
    start(block, BlockType::Descriptor, sequence);
    let mut at = HEADER;
    for (n, tag) in tags.iter().enumerate() {
        let mut flags = 0;
        for (is, flag) in [
            (tag.escaped, FLAG_ESCAPED),
            (n > 0, FLAG_SAME_UUID),
            (n + 1 == tags.len(), FLAG_LAST),
        ] {
            flags |= if is { flag } else { 0 };
        }
        put_u32(block, at, tag.home);
        put_u16(block, at + 6, flags);
        at += TAG;
        if n == 0 {
            block[at..at + UUID].copy_from_slice(uuid);
            at += UUID;
        }
    }
}

/// How many block numbers fit into a revoke block of `size` bytes.
pub(crate) fn revokes_per_block(size: usize) -> usize {
    (size - REVOKES) / 4
}

/// Makes `block` a revoke block with the numbers `blocks`, which fit.
pub(crate) fn put_revokes(block: &mut [u8], sequence: u32, blocks: &[u32]) {
    start(block, BlockType::Revoke, sequence);
    put_u32(block, HEADER, (REVOKES + 4 * blocks.len()) as u32);
    for (n, number) in blocks.iter().enumerate() {
        put_u32(block, REVOKES + 4 * n, *number);
    }
}

/// The block numbers of a revoke block.
///
/// # Errors
/// `Corrupt` if the length in it makes no sense.
pub(crate) fn revokes(block: &[u8]) -> Result<impl Iterator<Item = u32>> {
    let end = u32_at(block, HEADER) as usize;
    let used = block
        .get(REVOKES..end)
        .ok_or(Error::Corrupt("length of a revoke block"))?;
    Ok(used.chunks_exact(4).map(|raw| u32_at(raw, 0)))
}

/// Makes `block` a commit block. `now` is in seconds since 1970.
pub(crate) fn put_commit(block: &mut [u8], sequence: u32, now: i64) {
    start(block, BlockType::Commit, sequence);
    block[48..56].copy_from_slice(&now.to_be_bytes());
}

/// Takes the magic number from the start of a copy, if it is there. Returns whether it was.
pub(crate) fn escape(copy: &mut [u8]) -> bool {
    let found = u32_at(copy, 0) == MAGIC;
    if found {
        put_u32(copy, 0, 0);
    }
    found
}

/// Gives the magic number back to a copy that lost it.
pub(crate) fn unescape(copy: &mut [u8]) {
    put_u32(copy, 0, MAGIC);
}

/// The journal's superblock (jbd2, "Super Block"): its bytes, of which this library knows some.
pub(crate) struct Superblock(Vec<u8>);

impl Superblock {
    /// Checks the superblock of a journal that has `blocks` blocks of `block_size` bytes.
    ///
    /// # Errors
    /// `Corrupt`, `Journal`.
    pub(crate) fn parse(raw: Vec<u8>, block_size: usize, blocks: u32) -> Result<Self> {
        let sb = Superblock(raw);
        if u32_at(&sb.0, 0) != MAGIC {
            return Err(Error::Corrupt(
                "no magic number in the journal's superblock",
            ));
        }
        match u32_at(&sb.0, 4) {
            SUPERBLOCK_V2 => {}
            SUPERBLOCK_V1 => return Err(Error::Journal("its format is version 1")),
            _ => return Err(Error::Corrupt("type of the journal's superblock")),
        }
        let (first, length, start) = (sb.first(), sb.length(), sb.start());
        if length < LENGTH_MIN {
            return Err(Error::Journal("it has less than 1,024 blocks"));
        }
        if length > LENGTH_MAX {
            return Err(Error::Journal("it has more than a million blocks"));
        }
        let checks = [
            (
                u32_at(&sb.0, 12) as usize == block_size,
                "journal block size",
            ),
            (length <= blocks, "journal length"),
            (first > 0 && first < length, "first block of the journal"),
            (
                start == 0 || (first..length).contains(&start),
                "start in the journal",
            ),
        ];
        match checks.iter().find(|(good, _)| !good) {
            Some((_, what)) => Err(Error::Corrupt(what)),
            None => Ok(sb),
        }
    }

    /// Features that this library does not know.
    pub(crate) fn unknown_features(&self) -> Option<FeatureSet> {
        FeatureSet::unknown_journal(
            u32_at(&self.0, FIELD_COMPAT),
            u32_at(&self.0, FIELD_INCOMPAT),
        )
    }

    /// Blocks of the journal, with its superblock.
    pub(crate) fn length(&self) -> u32 {
        u32_at(&self.0, 16)
    }

    /// The first position of the log.
    pub(crate) fn first(&self) -> u32 {
        u32_at(&self.0, 20)
    }

    /// The position of the first transaction to replay; 0 if there is none.
    pub(crate) fn start(&self) -> u32 {
        u32_at(&self.0, FIELD_START)
    }

    /// The sequence of the first transaction to replay.
    pub(crate) fn sequence(&self) -> u32 {
        u32_at(&self.0, FIELD_SEQUENCE)
    }

    /// Whether somebody noted an error.
    pub(crate) fn has_error(&self) -> bool {
        u32_at(&self.0, FIELD_ERRNO) != 0
    }

    /// The name in descriptors.
    pub(crate) fn uuid(&self) -> [u8; UUID] {
        core::array::from_fn(|n| self.0[FIELD_UUID + n])
    }

    /// Sets where replay starts (0: nowhere) and with which sequence; returns the bytes to write.
    pub(crate) fn set_start(&mut self, start: u32, sequence: u32) -> &[u8] {
        put_u32(&mut self.0, FIELD_START, start);
        put_u32(&mut self.0, FIELD_SEQUENCE, sequence);
        let features = u32_at(&self.0, FIELD_INCOMPAT) | INCOMPAT_REVOKE;
        put_u32(&mut self.0, FIELD_INCOMPAT, features);
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn superblock() -> Vec<u8> {
        let mut raw = vec![0; SUPERBLOCK_SIZE];
        for (at, value) in [(0, MAGIC), (4, 4), (12, 1024), (16, 2000), (20, 1), (24, 7)] {
            put_u32(&mut raw, at, value);
        }
        raw
    }

    fn refused(at: usize, value: u32) -> Error {
        let mut raw = superblock();
        put_u32(&mut raw, at, value);
        Superblock::parse(raw, 1024, 2000).err().expect("refused")
    }

    #[test]
    fn tags_are_read_as_they_were_written() {
        for count in [1, 2, tags_per_block(1024)] {
            let written: Vec<Tag> = (0..count as u32)
                .map(|n| Tag {
                    home: 5 * n,
                    escaped: n % 3 == 0,
                })
                .collect();
            let mut block = [0xEE; 1024];
            put_tags(&mut block, 9, &[7; UUID], &written);
            assert_eq!(header(&block), Some((BlockType::Descriptor, 9)));
            assert_eq!(tags(&block).collect::<Vec<_>>(), written);
        }
    }

    #[test]
    fn tags_without_an_end_end_with_the_block() {
        let mut block = [0; 1024];
        put_tags(&mut block, 9, &[7; UUID], &[]);
        assert_eq!(tags(&block).count(), (1024 - HEADER) / (TAG + UUID));
        block[HEADER..].fill(0x02);
        assert_eq!(tags(&block).count(), (1024 - HEADER) / TAG);
    }

    #[test]
    fn revokes_are_read_as_they_were_written_and_bad_lengths_refused() {
        let written: Vec<u32> = (0..revokes_per_block(1024) as u32).collect();
        let mut block = [0xEE; 1024];
        put_revokes(&mut block, 9, &written);
        assert_eq!(header(&block), Some((BlockType::Revoke, 9)));
        assert!(revokes(&block).expect("good").eq(written));
        for length in [0, 15, 1025, u32::MAX] {
            put_u32(&mut block, HEADER, length);
            assert!(revokes(&block).is_err());
        }
    }

    #[test]
    fn the_magic_number_in_a_copy_is_escaped() {
        let mut copy = [0; 1024];
        put_commit(&mut copy, 1, 5);
        let original = copy;
        assert!(escape(&mut copy) && header(&copy).is_none());
        assert!(!escape(&mut copy));
        unescape(&mut copy);
        assert_eq!(copy, original);
    }

    #[test]
    fn superblocks_that_lie_are_refused() {
        assert!(Superblock::parse(superblock(), 1024, 2000).is_ok());
        assert!(Superblock::parse(superblock(), 1024, 1999).is_err());
        assert!(matches!(refused(0, 0), Error::Corrupt(_)));
        assert!(matches!(refused(4, 3), Error::Journal(_)));
        assert!(matches!(refused(4, 1), Error::Corrupt(_)));
        assert!(matches!(refused(12, 4096), Error::Corrupt(_)));
        assert!(matches!(refused(16, 1023), Error::Journal(_)));
        assert!(matches!(refused(16, u32::MAX), Error::Journal(_)));
        assert!(matches!(refused(20, 0), Error::Corrupt(_)));
        assert!(matches!(refused(20, 2000), Error::Corrupt(_)));
        assert!(matches!(refused(28, 2000), Error::Corrupt(_)));
    }
}
