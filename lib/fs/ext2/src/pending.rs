//! Freed bits that must not be used again yet.
//!
//! On disk an inode or a directory may still name a block or an inode that was freed in memory.
//! Until that naming is gone from the disk, the freed bit stays set in what is written of its
//! bitmap and nobody can have it again. So a power cut at any point leaves at worst blocks that
//! belong to nobody, never a block that belongs to two.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::bitmap;

/// By bitmap block, the bits that were freed since the last complete write-back.
#[derive(Default)]
pub(crate) struct Pending {
    masks: BTreeMap<u32, Box<[u8]>>,
    blocks: u32,
}

impl Pending {
    /// Notes `count` freed bits of the bitmap in `block`, which is `size` bytes long.
    pub(crate) fn add(&mut self, block: u32, size: usize, bit: u32, count: u32) {
        let mask = self
            .masks
            .entry(block)
            .or_insert_with(|| vec![0; size].into());
        bitmap::set(mask, bit, count);
    }

    /// Adds to the number of blocks (not inodes) that wait here.
    pub(crate) fn count_blocks(&mut self, count: u32) {
        self.blocks = self.blocks.saturating_add(count);
    }

    /// How many free blocks wait here.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The waiting bits of the bitmap in `block`.
    pub(crate) fn mask(&self, block: u32) -> Option<&[u8]> {
        self.masks.get(&block).map(|mask| &**mask)
    }

    /// The bitmaps that have waiting bits.
    pub(crate) fn bitmaps(&self) -> impl Iterator<Item = u32> {
        self.masks.keys().copied()
    }

    /// How many bitmaps have waiting bits.
    pub(crate) fn len(&self) -> usize {
        self.masks.len()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.masks.is_empty()
    }

    /// Takes over what waits in `other`.
    pub(crate) fn absorb(&mut self, other: Pending) {
        for (block, mask) in other.masks {
            match self.masks.get_mut(&block) {
                Some(mine) => bitmap::merge(mine, &mask),
                None => {
                    self.masks.insert(block, mask);
                }
            }
        }
        self.count_blocks(other.blocks);
    }

    /// Takes over what a transaction freed of bitmaps that are `size` bytes long.
    pub(crate) fn take(&mut self, frees: Frees, size: usize) {
        for (block, bit, count) in frees.runs {
            self.add(block, size, bit, count);
        }
        self.count_blocks(frees.blocks);
    }

    /// Everything may be used again.
    pub(crate) fn clear(&mut self) {
        *self = Pending::default();
    }
}

/// What one transaction has freed: it is little, and most often of two bitmaps.
#[derive(Default)]
pub(crate) struct Frees {
    /// By bitmap block, bits: the first and how many.
    runs: Vec<(u32, u32, u32)>,
    blocks: u32,
}

impl Frees {
    /// Notes `count` freed bits of the bitmap in `block`.
    pub(crate) fn add(&mut self, block: u32, bit: u32, count: u32) {
        self.runs.push((block, bit, count));
    }

    /// Whether something of the bitmap in `block` was freed.
    pub(crate) fn is_about(&self, block: u32) -> bool {
        self.runs.iter().any(|(of, ..)| *of == block)
    }

    /// Adds to the number of blocks (not inodes) that are free.
    pub(crate) fn count_blocks(&mut self, count: u32) {
        self.blocks = self.blocks.saturating_add(count);
    }

    /// How many blocks are free.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Sets in `map`, a copy of the bitmap in `block`, what was freed of it.
    pub(crate) fn mark(&self, block: u32, map: &mut [u8]) {
        let runs = self.runs.iter().filter(|(of, ..)| *of == block);
        runs.for_each(|(_, bit, count)| bitmap::set(map, *bit, *count));
    }
}
