//! The format of a directory's index on disk: a tree of hashes of names, on bytes alone (Linux
//! kernel documentation, "ext4 Data Structures and Algorithms", "Hash Tree Directories").
//!
//! The directory's first block is the root. To who does not know the index it looks like one with
//! `.` and `..` alone; behind those stand the function of the hashes, the levels of nodes below
//! (none or one), and keys. A node looks like a block without entries. A *key* names a block of the
//! directory, in which all names have a hash that is at least the key's and at most the next one's;
//! the first key of a node has no hash of its own. A *leaf* is a common block of entries.
//!
//! Hashes are even. Names of one hash may fill several leaves: the keys of all but the first then
//! have the last bit set.

use crate::bytes::{put_u16, put_u32, u16_at, u32_at};
use crate::dirent;
use crate::hash::Version;

/// Where the root's description starts, behind two entries of 12 bytes.
const INFO: usize = 24;
/// Where the root's keys start.
const ROOT_KEYS: usize = INFO + 8;
/// Where a node's keys start, behind an entry that fills the block.
const NODE_KEYS: usize = 8;
/// Bytes of a key with its block.
const KEY: usize = 8;
/// The bits of a key's block that are its number.
const NUMBER: u32 = 0x0FFF_FFFF;
/// The bit of a key that says that its hash begins in a leaf before.
pub(crate) const CONTINUES: u32 = 1;

/// What the root says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The function of the hashes.
    pub(crate) version: Version,
    /// Whether there are nodes between root and leaves.
    pub(crate) deep: bool,
}

/// Which part of a block is keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    Node,
}

impl Place {
    fn start(self) -> usize {
        match self {
            Place::Root => ROOT_KEYS,
            Place::Node => NODE_KEYS,
        }
    }

    /// How many keys there can be in a block of `size` bytes.
    pub(crate) fn limit(self, size: usize) -> usize {
        (size - self.start()) / KEY
    }

    /// How many keys there are. Whether so many can be was checked by [`keys`].
    pub(crate) fn count(self, block: &[u8]) -> usize {
        usize::from(u16_at(block, self.start() + 2)).clamp(1, self.limit(block.len()))
    }

    /// Key `n`; 0 for the first.
    pub(crate) fn key(self, block: &[u8], n: usize) -> u32 {
        match n {
            0 => 0,
            n => u32_at(block, self.start() + n * KEY),
        }
    }

    /// The block of key `n`.
    pub(crate) fn block(self, block: &[u8], n: usize) -> u32 {
        u32_at(block, self.start() + n * KEY + 4) & NUMBER
    }

    /// The last key that is at most `hash`, or the first.
    pub(crate) fn find(self, block: &[u8], hash: u32) -> usize {
        let (mut low, mut high) = (1, self.count(block));
        while low < high {
            let middle = (low + high) / 2;
            match self.key(block, middle) <= hash {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low - 1
    }

    fn set_count(self, block: &mut [u8], count: usize) {
        let limit = self.limit(block.len());
        put_u16(block, self.start(), limit as u16);
        put_u16(block, self.start() + 2, count as u16);
    }

    /// Puts a key in front of key `n`, which is not the first. There must be room.
    pub(crate) fn insert(self, block: &mut [u8], n: usize, key: u32, number: u32) {
        let (count, start) = (self.count(block), self.start());
        let (at, end) = (start + n * KEY, start + count * KEY);
        block.copy_within(at..end, at + KEY);
        put_u32(block, at, key);
        put_u32(block, at + 4, number);
        self.set_count(block, count + 1);
    }

    /// Moves the keys of `from`, which are `here`, from key `n` on to the new node `to`; the key
    /// that they are to have themselves.
    pub(crate) fn split(self, from: &mut [u8], n: usize, to: &mut [u8]) -> u32 {
        let (count, key) = (self.count(from), self.key(from, n));
        dirent::clear(to);
        let keys = &from[self.start() + n * KEY..self.start() + count * KEY];
        to[NODE_KEYS..NODE_KEYS + keys.len()].copy_from_slice(keys);
        Place::Node.set_count(to, count - n);
        if n > 0 {
            self.set_count(from, n);
        }
        key
    }
}

/// Where the keys of the root's block stand and what it says, if it makes sense.
pub(crate) fn root(block: &[u8]) -> Option<Root> {
    let info = &block[INFO..ROOT_KEYS];
    let dots = u16_at(block, 4) == 12 && usize::from(u16_at(block, 16)) == block.len() - 12;
    let good = dots && u32_at(info, 0) == 0 && info[5] == 8 && info[6] <= 1 && info[7] == 0;
    let root = Root {
        version: Version::from_byte(info[4])?,
        deep: info[6] == 1,
    };
    (good && has_keys(block, Place::Root)).then_some(root)
}

/// Whether `block` is a node that makes sense.
pub(crate) fn is_node(block: &[u8]) -> bool {
    let empty = u32_at(block, 0) == 0 && usize::from(u16_at(block, 4)) == block.len();
    empty && has_keys(block, Place::Node)
}

/// Whether there are as many keys as can be, and in their order.
fn has_keys(block: &[u8], place: Place) -> bool {
    let (limit, count) = (place.start(), place.start() + 2);
    let (limit, count) = (u16_at(block, limit).into(), u16_at(block, count).into());
    let ordered = |n: usize| {
        let (before, key) = (place.key(block, n - 1), place.key(block, n));
        before < key || (before == key && key & CONTINUES != 0)
    };
    let fits = limit == place.limit(block.len()) && (1..=limit).contains(&count);
    fits && (1..count).all(ordered)
}

/// Makes `block`, which has `.` and `..` as every first block, the root over the one leaf `leaf`.
pub(crate) fn start(block: &mut [u8], version: Version, leaf: u32) {
    block[INFO..].fill(0);
    block[INFO + 4] = version.byte();
    block[INFO + 5] = 8;
    put_u32(block, ROOT_KEYS + 4, leaf);
    Place::Root.set_count(block, 1);
}

/// Makes the root of `block` have the one node `node`, to which its keys were copied.
pub(crate) fn deepen(block: &mut [u8], node: u32) {
    block[INFO + 6] = 1;
    put_u32(block, ROOT_KEYS + 4, node);
    Place::Root.set_count(block, 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> [u8; 1024] {
        let mut block = [0; 1024];
        dirent::start(&mut block, 12, 2, 2);
        start(&mut block, Version::HalfMd4, 1);
        block
    }

    #[test]
    fn keys_come_in_order_and_are_found() {
        let mut block = made();
        let place = Place::Root;
        for n in 1..place.limit(1024) {
            place.insert(&mut block, n, n as u32 * 10, n as u32 + 1);
        }
        assert_eq!(place.limit(1024), 124);
        let root = root(&block).expect("good");
        assert_eq!((root.version, root.deep), (Version::HalfMd4, false));
        for (hash, at) in [
            (0, 0),
            (9, 0),
            (10, 1),
            (19, 1),
            (1230, 123),
            (u32::MAX, 123),
        ] {
            assert_eq!(place.find(&block, hash), at);
            assert_eq!(place.block(&block, at), at as u32 + 1);
        }
    }

    #[test]
    fn a_split_keeps_all_keys_and_the_root_grows_a_level() {
        let (mut block, mut node, mut other) = (made(), [0; 1024], [0; 1024]);
        for n in 1..100 {
            Place::Root.insert(&mut block, n, n as u32 * 10, n as u32 + 1);
        }
        Place::Root.split(&mut block, 0, &mut node);
        deepen(&mut block, 100);
        assert!(root(&block).is_some_and(|root| root.deep) && is_node(&node));
        assert_eq!(Place::Root.count(&block), 1);
        assert_eq!(Place::Root.block(&block, 0), 100);
        assert_eq!(Place::Node.split(&mut node, 40, &mut other), 400);
        assert!(is_node(&node) && is_node(&other));
        assert_eq!(Place::Node.count(&node), 40);
        assert_eq!(Place::Node.count(&other), 60);
        assert_eq!(Place::Node.block(&other, 0), 41);
        assert_eq!(Place::Node.key(&other, 1), 410);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let bad = |at: usize, value: u8| {
            let mut block = made();
            block[at] = value;
            root(&block).is_none()
        };
        // Function, length, levels, flags, limit, count; the lengths of the two entries.
        for (at, value) in [
            (28, 3),
            (29, 9),
            (30, 2),
            (31, 1),
            (24, 1),
            (32, 123),
            (34, 0),
            (34, 125),
            (4, 16),
            (16, 12),
        ] {
            assert!(bad(at, value), "{at}");
        }
        let mut block = made();
        Place::Root.insert(&mut block, 1, 20, 2);
        Place::Root.insert(&mut block, 2, 10, 3);
        assert_eq!(root(&block), None);
        assert!(!is_node(&block) && !is_node(&[0; 1024]));
    }
}
