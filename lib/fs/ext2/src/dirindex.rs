//! Indexes of large directories, in memory: in which block a name may be, and where there is room.
//! They are for directories without an index on disk (see `hashed`); of those that have one it is
//! known here whether it makes sense.
//!
//! An index only ever says "perhaps": every answer is checked against the block itself. What it
//! must never do is leave out a name. So a name enters it at once, also if its transaction is
//! dropped later, and a removed name stays until the index is built anew; and it is built only by a
//! transaction that has changed nothing yet. All indexes together have a budget of names; the least
//! recently used one goes first.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Removed names that an index may have beyond half of all its names.
const STALE: usize = 64;

/// Directories whose index on disk was looked at, of which this is remembered.
const VERDICTS: usize = 1024;

/// The index of one directory.
#[derive(Default)]
pub(crate) struct Index {
    /// Hash of a name, and the directory's block that may have it.
    names: BTreeSet<(u32, u32)>,
    /// By block, the bytes of its largest gap, as far as known.
    gaps: Vec<usize>,
    stale: usize,
    used: u64,
}

impl Index {
    /// Adds a name in block `n`.
    pub(crate) fn add(&mut self, name: &[u8], n: u32) {
        self.names.insert((hash(name), n));
    }

    /// The blocks that may have `name`, in rising order.
    pub(crate) fn blocks(&self, name: &[u8]) -> Vec<u32> {
        let hash = hash(name);
        let range = self.names.range((hash, 0)..=(hash, u32::MAX));
        range.map(|(_, n)| *n).collect()
    }

    /// Notes the largest gap in block `n`.
    pub(crate) fn set_gap(&mut self, n: u32, gap: usize) {
        let n = n as usize;
        if self.gaps.len() <= n {
            self.gaps.resize(n + 1, 0);
        }
        self.gaps[n] = gap;
    }

    /// The last block before `end` that may have a gap of `need` bytes.
    pub(crate) fn block_with_gap(&self, need: usize, end: u32) -> Option<u32> {
        let known = &self.gaps[..self.gaps.len().min(end as usize)];
        known.iter().rposition(|gap| *gap >= need).map(|n| n as u32)
    }
}

/// FNV-1a: names that were made to collide cost no more than having no index.
pub(crate) fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811C_9DC5, |hash: u32, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// The indexes of all directories that have one.
pub(crate) struct Indexes {
    by_directory: BTreeMap<u32, Index>,
    /// Whether the index on disk of a directory makes sense.
    verdicts: BTreeMap<u32, bool>,
    most: usize,
    is_short: fn() -> bool,
    clock: u64,
}

impl Indexes {
    /// No index; all that will be have at most `most` names together, and none while memory
    /// `is_short`.
    pub(crate) fn new(most: usize, is_short: fn() -> bool) -> Self {
        Indexes {
            by_directory: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            most,
            is_short,
            clock: 0,
        }
    }

    /// The most names that an index may have.
    pub(crate) fn most(&self) -> usize {
        match (self.is_short)() {
            true => 0,
            false => self.most,
        }
    }

    /// The index of a directory, if it has one.
    pub(crate) fn get(&mut self, dir: u32) -> Option<&mut Index> {
        self.clock += 1;
        let index = self.by_directory.get_mut(&dir)?;
        index.used = self.clock;
        Some(index)
    }

    /// Gives a directory an index.
    pub(crate) fn insert(&mut self, dir: u32, index: Index) {
        self.by_directory.insert(dir, index);
        self.get(dir);
        self.meet_budget();
    }

    /// Notes a new name in block `n` of a directory, where the largest gap is now `gap`.
    pub(crate) fn note_added(&mut self, dir: u32, name: &[u8], n: u32, gap: usize) {
        if let Some(index) = self.get(dir) {
            index.add(name, n);
            index.set_gap(n, gap);
            self.meet_budget();
        }
    }

    /// Notes that a name went from block `n` of a directory; where it was is a gap of `gap` bytes.
    pub(crate) fn note_removed(&mut self, dir: u32, n: u32, gap: usize) {
        let Some(index) = self.get(dir) else {
            return;
        };
        let known = index.gaps.get(n as usize).copied().unwrap_or(0);
        index.set_gap(n, gap.max(known));
        index.stale += 1;
        if index.stale > STALE + index.names.len() / 2 {
            self.forget(dir);
        }
    }

    /// Whether the index on disk of a directory makes sense, if that was looked at.
    pub(crate) fn verdict(&self, dir: u32) -> Option<bool> {
        self.verdicts.get(&dir).copied()
    }

    /// Notes whether the index on disk of a directory makes sense.
    pub(crate) fn judge(&mut self, dir: u32, good: bool) {
        if self.verdicts.len() >= VERDICTS {
            self.verdicts.clear();
        }
        self.verdicts.insert(dir, good);
    }

    /// Drops the index of a directory, and what is known of that on disk.
    pub(crate) fn forget(&mut self, dir: u32) {
        self.by_directory.remove(&dir);
        self.verdicts.remove(&dir);
    }

    /// Drops the indexes that were not used for the longest time until the budget is met.
    fn meet_budget(&mut self) {
        let names = |index: &Index| index.names.len() + index.gaps.len();
        while self.by_directory.values().map(names).sum::<usize>() > self.most() {
            let oldest = self.by_directory.iter().min_by_key(|(_, index)| index.used);
            let Some(dir) = oldest.map(|(dir, _)| *dir) else {
                return;
            };
            self.forget(dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(names: u32) -> Index {
        let mut index = Index::default();
        (0..names).for_each(|n| index.add(&n.to_le_bytes(), n / 10));
        index
    }

    #[test]
    fn names_are_found_and_gaps_from_the_end() {
        let mut index = filled(100);
        assert!(index.blocks(&57u32.to_le_bytes()).contains(&5));
        index.set_gap(3, 40);
        index.set_gap(8, 12);
        assert_eq!(index.block_with_gap(12, 10), Some(8));
        assert_eq!(index.block_with_gap(13, 10), Some(3));
        assert_eq!(index.block_with_gap(12, 8), Some(3));
        assert_eq!(index.block_with_gap(41, 10), None);
    }

    #[test]
    fn the_budget_drops_the_least_recently_used() {
        let mut indexes = Indexes::new(250, || false);
        indexes.insert(1, filled(100));
        indexes.insert(2, filled(100));
        assert!(indexes.get(1).is_some());
        indexes.insert(3, filled(100));
        assert!(indexes.get(2).is_none() && indexes.get(1).is_some());
        indexes.insert(4, filled(300));
        assert!((1..=4).all(|dir| indexes.get(dir).is_none()));
    }

    #[test]
    fn an_index_of_removed_names_is_dropped() {
        let mut indexes = Indexes::new(1000, || false);
        indexes.insert(1, filled(100));
        (0..114).for_each(|_| indexes.note_removed(1, 0, 0));
        assert!(indexes.get(1).is_some());
        indexes.note_removed(1, 0, 0);
        assert!(indexes.get(1).is_none());
        indexes.note_removed(1, 0, 0);
        indexes.note_added(1, b"x", 0, 0);
    }
}
