//! An allocator of page numbers.
//!
//! Pages are grouped into *sections* of 512. A section keeps one bit per page (set = free) and the
//! order of the largest naturally aligned free block in it; an index by that order finds a
//! section without looking at its pages. Requests of up to 512 pages get a block aligned to the
//! next power of two, of which only the pages asked for are taken; larger ones get whole sections
//! in a row. The bookkeeping memory is the caller's, so this crate needs no heap.

#![no_std]
#![forbid(unsafe_code)]

/// Pages per section.
pub const SECTION_PAGES: usize = 512;
/// Orders 0 to 9: blocks of 1 to 512 pages.
const ORDERS: usize = 10;
/// `Section::largest` when nothing is free.
const NONE: u8 = 0xff;

/// Bookkeeping of 512 pages.
#[derive(Clone, Copy)]
pub struct Section {
    bits: [u64; 8],
    free: u16,
    largest: u8,
}

impl Section {
    /// A section without free pages.
    pub const EMPTY: Self = Self {
        bits: [0; 8],
        free: 0,
        largest: NONE,
    };

    /// Mask of the part of `first..first + count` that lies in word `word`.
    fn mask(word: usize, first: usize, count: usize) -> u64 {
        let low = first.max(word * 64);
        let high = (first + count).min(word * 64 + 64);
        if low >= high {
            return 0;
        }
        (u64::MAX >> (64 - (high - low))) << (low % 64)
    }

    /// Whether all of the pages are free (`free`) or all are taken.
    fn all(&self, first: usize, count: usize, free: bool) -> bool {
        (first / 64..=(first + count - 1) / 64).all(|word| {
            let mask = Self::mask(word, first, count);
            self.bits[word] & mask == if free { mask } else { 0 }
        })
    }

    /// Marks pages free or taken and updates the counts.
    fn set(&mut self, first: usize, count: usize, free: bool) {
        for word in first / 64..=(first + count - 1) / 64 {
            let mask = Self::mask(word, first, count);
            if free {
                self.bits[word] |= mask;
            } else {
                self.bits[word] &= !mask;
            }
        }
        if free {
            self.free += count as u16;
        } else {
            self.free -= count as u16;
        }
        self.largest = self.find_largest();
    }

    /// The order of the largest aligned free block.
    fn find_largest(&self) -> u8 {
        if self.free == 0 {
            return NONE;
        }
        let full = |words: usize| {
            self.bits
                .chunks(words)
                .any(|c| c.iter().all(|&w| w == u64::MAX))
        };
        for (order, words) in [(9, 8), (8, 4), (7, 2), (6, 1)] {
            if usize::from(self.free) >> order != 0 && full(words) {
                return order;
            }
        }
        let mut best = 0;
        for &word in self.bits.iter().filter(|&&word| word != 0) {
            while best < 5 && starts(word, best + 1) != 0 {
                best += 1;
            }
        }
        best
    }

    /// First page of an aligned free block of `order`; the caller knows that there is one.
    fn find(&self, order: u8) -> Option<usize> {
        if order >= 6 {
            let words = 1 << (order - 6);
            let index = self
                .bits
                .chunks(words)
                .position(|chunk| chunk.iter().all(|&word| word == u64::MAX))?;
            return Some(index * words * 64);
        }
        self.bits.iter().enumerate().find_map(|(index, &word)| {
            let starts = starts(word, order);
            (starts != 0).then(|| index * 64 + starts.trailing_zeros() as usize)
        })
    }
}

/// The bits of `word` at which an aligned run of `2^order` set bits starts; `order` is at most 5.
fn starts(word: u64, order: u8) -> u64 {
    const ALIGNED: [u64; 6] = [
        u64::MAX,
        0x5555_5555_5555_5555,
        0x1111_1111_1111_1111,
        0x0101_0101_0101_0101,
        0x0001_0001_0001_0001,
        0x0000_0001_0000_0001,
    ];
    let mut runs = word;
    for step in 0..order {
        runs &= runs >> (1 << step);
    }
    runs & ALIGNED[usize::from(order)]
}

/// For 64 sections: which of them have a largest block of each order.
#[derive(Clone, Copy)]
pub struct Group([u64; ORDERS]);

impl Group {
    /// A group of sections without free pages.
    pub const EMPTY: Self = Self([0; ORDERS]);
}

/// Why pages were not taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeError {
    /// Some of the pages are free already.
    AlreadyFree,
    /// Some of the pages are not this allocator's.
    OutOfRange,
}

/// The allocator. Page numbers count from 0; page `n` is in section `n / 512`.
pub struct Buddy<'a> {
    sections: &'a mut [Section],
    groups: &'a mut [Group],
    /// Per order, no group below this one has a section in the index.
    hints: [usize; ORDERS],
    free: usize,
}

/// How many groups `sections` sections need.
pub const fn groups_for(sections: usize) -> usize {
    sections.div_ceil(64)
}

impl<'a> Buddy<'a> {
    /// An allocator without free pages. Overwrites the bookkeeping memory.
    ///
    /// # Panics
    /// If `groups` is shorter than [`groups_for`] says.
    pub fn new(sections: &'a mut [Section], groups: &'a mut [Group]) -> Self {
        assert!(groups.len() >= groups_for(sections.len()));
        sections.fill(Section::EMPTY);
        groups.fill(Group::EMPTY);
        Self {
            sections,
            groups,
            hints: [0; ORDERS],
            free: 0,
        }
    }

    /// Number of free pages.
    pub fn free_pages(&self) -> usize {
        self.free
    }

    /// Takes `pages` pages in a row, aligned to the power of two above (at most to 512). Returns
    /// the first, or `None` if there is no such block or `pages` is 0.
    pub fn alloc(&mut self, pages: usize) -> Option<usize> {
        if pages == 0 {
            return None;
        }
        if pages > SECTION_PAGES {
            return self.alloc_sections(pages);
        }
        let order = pages.next_power_of_two().trailing_zeros() as usize;
        let index = (order..ORDERS).find_map(|order| self.section_with(order))?;
        let first = self.sections[index].find(order as u8)?;
        self.change(index, first, pages, false);
        Some(index * SECTION_PAGES + first)
    }

    /// Takes back pages that were allocated, or adds new ones.
    pub fn free(&mut self, first: usize, pages: usize) -> Result<(), FreeError> {
        let end = first.checked_add(pages).ok_or(FreeError::OutOfRange)?;
        if end > self.sections.len() * SECTION_PAGES {
            return Err(FreeError::OutOfRange);
        }
        let mut taken = pieces(first, pages);
        if !taken.all(|(index, page, count)| self.sections[index].all(page, count, false)) {
            return Err(FreeError::AlreadyFree);
        }
        for (index, page, count) in pieces(first, pages) {
            self.change(index, page, count, true);
        }
        Ok(())
    }

    /// A section whose largest block has exactly this order.
    fn section_with(&mut self, order: usize) -> Option<usize> {
        let from = self.hints[order];
        let found = (from..self.groups.len()).find(|&group| self.groups[group].0[order] != 0);
        self.hints[order] = found.unwrap_or(self.groups.len());
        found.map(|group| group * 64 + self.groups[group].0[order].trailing_zeros() as usize)
    }

    /// Takes whole free sections in a row, then gives the rest of the last one back.
    fn alloc_sections(&mut self, pages: usize) -> Option<usize> {
        let count = pages.div_ceil(SECTION_PAGES);
        let mut run = 0;
        let last = self.sections.iter().position(|section| {
            run = if section.largest == 9 { run + 1 } else { 0 };
            run == count
        })?;
        let first = (last + 1 - count) * SECTION_PAGES;
        for (index, page, count) in pieces(first, pages) {
            self.change(index, page, count, false);
        }
        Some(first)
    }

    /// Changes pages of one section and keeps the index and the totals right.
    fn change(&mut self, index: usize, first: usize, count: usize, free: bool) {
        let before = self.sections[index].largest;
        self.sections[index].set(first, count, free);
        let after = self.sections[index].largest;
        if free {
            self.free += count;
        } else {
            self.free -= count;
        }
        if before == after {
            return;
        }
        let (group, bit) = (index / 64, 1 << (index % 64));
        if before != NONE {
            self.groups[group].0[usize::from(before)] &= !bit;
        }
        if after != NONE {
            let order = usize::from(after);
            self.groups[group].0[order] |= bit;
            self.hints[order] = self.hints[order].min(group);
        }
    }
}

/// Splits a run of pages at section borders: (section, first page in it, count).
fn pieces(first: usize, pages: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let end = first + pages;
    let mut at = first;
    core::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (index, page) = (at / SECTION_PAGES, at % SECTION_PAGES);
        let count = (SECTION_PAGES - page).min(end - at);
        at += count;
        Some((index, page, count))
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use std::vec;
    use std::vec::Vec;

    fn memory(sections: usize) -> (Vec<Section>, Vec<Group>) {
        (
            vec![Section::EMPTY; sections],
            vec![Group::EMPTY; groups_for(sections)],
        )
    }

    #[test]
    fn an_empty_allocator_has_nothing() {
        let (mut s, mut g) = memory(2);
        let mut buddy = Buddy::new(&mut s, &mut g);
        assert_eq!(buddy.alloc(1), None);
        assert_eq!(buddy.alloc(0), None);
    }

    #[test]
    fn blocks_are_aligned_and_exact() {
        let (mut s, mut g) = memory(1);
        let mut buddy = Buddy::new(&mut s, &mut g);
        buddy.free(3, 509).unwrap();
        let first = buddy.alloc(5).unwrap();
        assert_eq!(first % 8, 0);
        assert_eq!(buddy.free_pages(), 504);
        assert_eq!(buddy.alloc(512), None);
    }

    #[test]
    fn freeing_twice_or_outside_is_refused_and_changes_nothing() {
        let (mut s, mut g) = memory(2);
        let mut buddy = Buddy::new(&mut s, &mut g);
        buddy.free(0, 1024).unwrap();
        let first = buddy.alloc(4).unwrap();
        buddy.free(first, 4).unwrap();
        assert_eq!(buddy.free(first, 4), Err(FreeError::AlreadyFree));
        assert_eq!(buddy.free(1020, 5), Err(FreeError::OutOfRange));
        assert_eq!(buddy.free(usize::MAX, 2), Err(FreeError::OutOfRange));
        assert_eq!(buddy.free_pages(), 1024);
    }

    #[test]
    fn large_blocks_cross_sections() {
        let (mut s, mut g) = memory(5);
        let mut buddy = Buddy::new(&mut s, &mut g);
        buddy.free(100, 5 * 512 - 100).unwrap();
        assert_eq!(buddy.alloc(1500), Some(512));
        assert_eq!(buddy.alloc(1024), None);
        buddy.free(512, 1500).unwrap();
        assert_eq!(buddy.alloc(2048), Some(512));
    }

    #[test]
    fn random_use_never_overlaps_and_ends_where_it_began() {
        let (mut s, mut g) = memory(80);
        let mut buddy = Buddy::new(&mut s, &mut g);
        buddy.free(0, 80 * 512).unwrap();
        let mut live: BTreeMap<usize, usize> = BTreeMap::new();
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let pages = 1 << (seed >> 60) >> (seed >> 40 & 3);
            if seed >> 33 & 1 == 0 {
                if let Some(first) = buddy.alloc(pages) {
                    let before = live.range(..first + pages).next_back();
                    assert!(before.is_none_or(|(&at, &count)| at + count <= first));
                    live.insert(first, pages);
                }
            } else if let Some((first, pages)) = live.pop_first() {
                buddy.free(first, pages).unwrap();
            }
        }
        live.into_iter()
            .for_each(|(first, pages)| buddy.free(first, pages).unwrap());
        assert_eq!(buddy.free_pages(), 80 * 512);
        assert_eq!(buddy.alloc(80 * 512), Some(0));
    }
}
