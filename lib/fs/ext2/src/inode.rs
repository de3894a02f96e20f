//! The inode record (ext2 spec, "Inode Table"): decoding, and encoding over the old record so that
//! fields unknown to this library stay.

use core::ops::Range;

use crate::bytes::{put_u16, put_u32, u16_at, u32_at};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::time::Time;

/// Pointers in an inode: 12 direct, then one each of one, two and three levels of indirection.
pub(crate) const POINTERS: usize = 15;
/// Bytes of a symbolic link's target that fit in the inode (with a final zero).
pub(crate) const FAST_LINK: usize = POINTERS * 4;
/// Flag: the directory has an index.
pub(crate) const FLAG_INDEX: u32 = 0x1000;
/// Bytes of a record that have fields which this library knows.
pub(crate) const RECORD: usize = 160;
/// Where a record has its times, and the parts of them that only large inodes have.
const TIMES: [Range<usize>; 2] = [8..20, 132..144];
/// The most links that an inode may have.
pub(crate) const LINKS_MAX: u16 = 32000;

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
}

/// Kind, type bits of the mode, type byte of a directory entry.
const KINDS: [(FileKind, u16, u8); 7] = [
    (FileKind::Regular, 0x8000, 1),
    (FileKind::Directory, 0x4000, 2),
    (FileKind::CharacterDevice, 0x2000, 3),
    (FileKind::BlockDevice, 0x6000, 4),
    (FileKind::Pipe, 0x1000, 5),
    (FileKind::Socket, 0xC000, 6),
    (FileKind::Symlink, 0xA000, 7),
];

impl FileKind {
    /// The kind that the mode field names, if it names one.
    pub(crate) fn from_mode(mode: u16) -> Option<Self> {
        KINDS
            .iter()
            .find(|kind| kind.1 == mode & 0xF000)
            .map(|kind| kind.0)
    }

    /// The kind that a directory entry's type byte names, if it names one.
    pub(crate) fn from_entry(byte: u8) -> Option<Self> {
        KINDS.iter().find(|kind| kind.2 == byte).map(|kind| kind.0)
    }

    fn row(self) -> &'static (FileKind, u16, u8) {
        KINDS
            .iter()
            .find(|kind| kind.0 == self)
            .expect("the table has every kind")
    }

    /// The type bits of the mode field.
    pub(crate) fn mode_bits(self) -> u16 {
        self.row().1
    }

    /// The type byte of a directory entry.
    pub(crate) fn entry_byte(self) -> u8 {
        self.row().2
    }
}

/// A decoded inode. Its numbers come from the disk: pointers and sizes are unchecked.
#[derive(Clone, Debug)]
pub(crate) struct Inode {
    /// Its number.
    pub(crate) ino: u32,
    /// What it is.
    pub(crate) kind: FileKind,
    /// Permission bits, 12 of them.
    pub(crate) permissions: u16,
    /// Owner.
    pub(crate) uid: u32,
    /// Group of the owner.
    pub(crate) gid: u32,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Last access.
    pub(crate) atime: Time,
    /// Last change of the inode.
    pub(crate) ctime: Time,
    /// Last change of the content.
    pub(crate) mtime: Time,
    /// Time of deletion; for an orphan the next orphan's number.
    pub(crate) dtime: u32,
    /// Directory entries that name it.
    pub(crate) links: u16,
    /// Sectors of 512 bytes that belong to it, indirect blocks included.
    pub(crate) sectors: u32,
    /// Flags, see `FLAG_INDEX`.
    pub(crate) flags: u32,
    /// The block pointers, or the target of a short symbolic link, or a device number.
    pub(crate) pointers: [u32; POINTERS],
    /// Counts the lives of this inode number.
    pub(crate) generation: u32,
    /// The block of extended attributes, 0 if none.
    pub(crate) attribute_block: u32,
}

/// A copy of a record that is no longer than [`RECORD`], with zeros behind it.
#[inline(always)]
pub(crate) fn record_of(raw: &[u8]) -> [u8; RECORD] {
    // No zeros are written where all of them are copied over.
    match raw.first_chunk() {
        Some(record) => *record,
        None => {
            let mut record = [0; RECORD];
            record[..raw.len()].copy_from_slice(raw);
            record
        }
    }
}

/// What of a record is another than in one of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Nothing.
    None,
    /// Only its times.
    Times,
    /// More than its times.
    More,
}

/// Compares two records of one length, which is a multiple of 8, in one pass: this is done for
/// each inode that is stored.
pub(crate) fn difference(one: &[u8], other: &[u8]) -> Difference {
    match (one.first_chunk::<RECORD>(), other.first_chunk::<RECORD>()) {
        // Where the length is known there is no loop.
        (Some(one), Some(other)) => difference_of(one, other),
        _ => difference_of(one, other),
    }
}

#[inline(always)]
fn difference_of(one: &[u8], other: &[u8]) -> Difference {
    let (one, other) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    let mut differs = [0; 2];
    for ((one, other), times) in one.iter().zip(other).zip(TIME_BITS) {
        let bits = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        differs[0] |= bits & times;
        differs[1] |= bits & !times;
    }
    match differs {
        [0, 0] => Difference::None,
        [_, 0] => Difference::Times,
        _ => Difference::More,
    }
}

/// Which bits of a record's words are of [`TIMES`].
const TIME_BITS: [u64; RECORD / 8] = {
    let mut bits = [0; RECORD / 8];
    let mut part = 0;
    while part < TIMES.len() {
        let mut at = TIMES[part].start;
        while at < TIMES[part].end {
            bits[at / 8] |= 0xff << (at % 8 * 8);
            at += 1;
        }
        part += 1;
    }
    bits
};

impl Inode {
    /// Decodes the record of inode `ino`; `None` for a record that was never used. Where files may
    /// be of 4 GiB and more, it `has_long_files`.
    ///
    /// # Errors
    /// `Corrupt` if the mode names no kind.
    pub(crate) fn decode(ino: u32, raw: &[u8], has_long_files: bool) -> Result<Option<Self>> {
        // Where the length is known no offset has to be compared with it.
        match raw.first_chunk::<RECORD>() {
            Some(raw) => Self::decode_fields(ino, raw, has_long_files),
            None => Self::decode_fields(ino, raw, has_long_files),
        }
    }

    #[inline(always)]
    fn decode_fields(ino: u32, raw: &[u8], has_long_files: bool) -> Result<Option<Self>> {
        let mode = u16_at(raw, 0);
        if mode == 0 {
            return Ok(None);
        }
        let kind = FileKind::from_mode(mode).ok_or(Error::Corrupt("inode of no known kind"))?;
        let large = kind == FileKind::Regular && has_long_files;
        let high = if large {
            u64::from(u32_at(raw, 108)) << 32
        } else {
            0
        };
        Ok(Some(Inode {
            ino,
            kind,
            permissions: mode & 0xFFF,
            uid: u32::from(u16_at(raw, 2)) | u32::from(u16_at(raw, 120)) << 16,
            gid: u32::from(u16_at(raw, 24)) | u32::from(u16_at(raw, 122)) << 16,
            size: high | u64::from(u32_at(raw, 4)),
            atime: Time::decode(raw, 8, 140),
            ctime: Time::decode(raw, 12, 132),
            mtime: Time::decode(raw, 16, 136),
            dtime: u32_at(raw, 20),
            links: u16_at(raw, 26),
            sectors: u32_at(raw, 28),
            flags: u32_at(raw, 32),
            pointers: core::array::from_fn(|n| u32_at(raw, 40 + 4 * n)),
            generation: u32_at(raw, 100),
            attribute_block: u32_at(raw, 104),
        }))
    }

    /// Writes the fields over the record `raw`.
    pub(crate) fn encode(&self, raw: &mut [u8]) {
        match raw.first_chunk_mut::<RECORD>() {
            Some(raw) => self.encode_fields(raw),
            None => self.encode_fields(raw),
        }
    }

    #[inline(always)]
    fn encode_fields(&self, raw: &mut [u8]) {
        put_u16(raw, 0, self.kind.mode_bits() | self.permissions);
        put_u16(raw, 2, self.uid as u16);
        put_u16(raw, 120, (self.uid >> 16) as u16);
        put_u16(raw, 24, self.gid as u16);
        put_u16(raw, 122, (self.gid >> 16) as u16);
        put_u32(raw, 4, self.size as u32);
        if self.kind == FileKind::Regular {
            put_u32(raw, 108, (self.size >> 32) as u32);
        }
        self.atime.encode(raw, 8, 140);
        self.ctime.encode(raw, 12, 132);
        self.mtime.encode(raw, 16, 136);
        put_u32(raw, 20, self.dtime);
        put_u16(raw, 26, self.links);
        put_u32(raw, 28, self.sectors);
        put_u32(raw, 32, self.flags);
        for (n, pointer) in self.pointers.iter().enumerate() {
            put_u32(raw, 40 + 4 * n, *pointer);
        }
        put_u32(raw, 100, self.generation);
        put_u32(raw, 104, self.attribute_block);
    }

    /// Whether the pointers name blocks. They do not in a short symbolic link, which has no block
    /// but perhaps one of attributes, nor in a device.
    pub(crate) fn has_blocks(&self, layout: &Layout) -> bool {
        let attributes = if self.attribute_block == 0 {
            0
        } else {
            layout.block_size as u32 / 512
        };
        match self.kind {
            FileKind::Regular | FileKind::Directory => true,
            FileKind::Symlink => self.sectors > attributes,
            _ => false,
        }
    }

    /// The bytes of the pointers, where a short symbolic link has its target.
    pub(crate) fn pointer_bytes(&self) -> [u8; FAST_LINK] {
        let mut bytes = [0; FAST_LINK];
        for (chunk, pointer) in bytes.chunks_exact_mut(4).zip(self.pointers) {
            chunk.copy_from_slice(&pointer.to_le_bytes());
        }
        bytes
    }

    /// Sets the pointers to the bytes of `target`, which must be shorter than [`FAST_LINK`].
    pub(crate) fn set_pointer_bytes(&mut self, target: &[u8]) {
        let mut bytes = [0; FAST_LINK];
        bytes[..target.len()].copy_from_slice(target);
        self.pointers = core::array::from_fn(|n| u32_at(&bytes, 4 * n));
    }

    /// The number of a device: in the first pointer if it fits into 16 bits, else in the second
    /// (Linux, "old_decode_dev" and "new_decode_dev": for a number that fits both are the same).
    pub(crate) fn device(&self) -> u32 {
        match (self.kind, self.pointers) {
            (FileKind::CharacterDevice | FileKind::BlockDevice, [0, new, ..]) => new,
            (FileKind::CharacterDevice | FileKind::BlockDevice, [old, ..]) => old & 0xffff,
            _ => 0,
        }
    }

    /// Sets the number of a device; what is none has none.
    pub(crate) fn set_device(&mut self, device: u32) {
        if !matches!(self.kind, FileKind::CharacterDevice | FileKind::BlockDevice) {
            return;
        }
        let is_old = device <= 0xffff;
        self.pointers[0] = if is_old { device } else { 0 };
        self.pointers[1] = if is_old { 0 } else { device };
    }

    /// Adds `blocks` blocks to the sectors that belong to the inode.
    ///
    /// # Errors
    /// `FileTooLarge` if the count does not fit.
    pub(crate) fn add_blocks(&mut self, blocks: u32, layout: &Layout) -> Result<()> {
        let sectors = blocks.checked_mul(layout.block_size as u32 / 512);
        let sum = sectors.and_then(|sectors| self.sectors.checked_add(sectors));
        self.sectors = sum.ok_or(Error::FileTooLarge)?;
        Ok(())
    }

    /// Takes `blocks` blocks from the sectors that belong to the inode. A count on disk that was
    /// too small ends at zero.
    pub(crate) fn remove_blocks(&mut self, blocks: u32, layout: &Layout) {
        let sectors = blocks.saturating_mul(layout.block_size as u32 / 512);
        self.sectors = self.sectors.saturating_sub(sectors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn kinds_map_both_ways_and_garbage_to_none() {
        for (kind, mode, byte) in KINDS {
            assert_eq!(FileKind::from_mode(mode | 0o777), Some(kind));
            assert_eq!(FileKind::from_entry(byte), Some(kind));
            assert_eq!((kind.mode_bits(), kind.entry_byte()), (mode, byte));
        }
        assert_eq!(FileKind::from_mode(0xF1FF), None);
        assert_eq!(FileKind::from_entry(9), None);
    }

    #[test]
    fn a_copy_of_a_record_has_zeros_behind_it() {
        for length in [128, RECORD] {
            let record: Vec<u8> = (1..=length as u8).collect();
            let copy = record_of(&record);
            assert_eq!(copy[..length], record);
            assert!(copy[length..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn records_differ_in_nothing_in_times_or_in_more() {
        for length in [128, RECORD] {
            let record: Vec<u8> = (0..length as u8).collect();
            assert_eq!(difference(&record, &record), Difference::None);
            for bit in 0..length * 8 {
                let mut other = record.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                let is_time = TIMES.iter().any(|times| times.contains(&(bit / 8)));
                let expected = if is_time {
                    Difference::Times
                } else {
                    Difference::More
                };
                assert_eq!(difference(&record, &other), expected, "{length}, bit {bit}");
                // Of two differences the one that is not of times counts.
                other[0] ^= 0x80;
                if bit != 7 {
                    assert_eq!(difference(&record, &other), Difference::More, "{bit}");
                }
            }
        }
    }
}
