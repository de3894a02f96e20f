//! The map of physical memory, normalised: sorted, page-aligned ranges that do not overlap.
//!
//! A loader's map may be unsorted and contradictory. What is usable is rounded inwards to pages,
//! what is reserved outwards, and reserved wins. Pure logic, tested on the host.

/// Most ranges a map can hold.
const CAPACITY: usize = 64;
const PAGE: u64 = 4096;
/// No physical address is above this (52 bits, SDM volume 3, 4.1.4).
const LIMIT: u64 = 1 << 52;

/// What the loader says about a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ordinary memory.
    Usable,
    /// Anything else.
    Reserved,
}

/// Physical addresses from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
}

impl Range {
    /// The range of `size` bytes at `start`; `None` if it is empty or passes the address limit.
    pub fn from_size(start: u64, size: u64) -> Option<Self> {
        let end = start.checked_add(size)?;
        (size > 0 && end <= LIMIT).then_some(Self { start, end })
    }

    /// The whole pages inside.
    fn inwards(self) -> Self {
        Self {
            start: self.start.next_multiple_of(PAGE),
            end: self.end & !(PAGE - 1),
        }
    }

    /// All pages touched.
    pub fn outwards(self) -> Self {
        Self {
            start: self.start & !(PAGE - 1),
            end: self.end.next_multiple_of(PAGE),
        }
    }

    /// Whether `other` lies inside.
    pub fn contains(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A set of page-aligned ranges.
#[derive(Clone, Debug)]
pub struct MemoryMap {
    ranges: [Range; CAPACITY],
    len: usize,
}

impl Default for MemoryMap {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryMap {
    /// An empty map.
    pub const fn new() -> Self {
        Self {
            ranges: [Range { start: 0, end: 0 }; CAPACITY],
            len: 0,
        }
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges[..self.len]
    }

    /// Takes in an entry of the loader's map. All usable entries must be recorded before the
    /// reserved ones. Entries beyond the address limit are cut or ignored.
    pub fn record(&mut self, address: u64, size: u64, kind: Kind) {
        let end = address.saturating_add(size).min(LIMIT);
        if address >= end {
            return;
        }
        let range = Range {
            start: address,
            end,
        };
        match kind {
            Kind::Usable => self.add(range.inwards()),
            Kind::Reserved => self.remove(range),
        }
    }

    /// Adds a page-aligned range, merging it with those it touches. If the map is full the range
    /// is left out: memory is lost, never invented.
    fn add(&mut self, range: Range) {
        if range.start >= range.end {
            return;
        }
        let mut merged = range;
        let mut kept = 0;
        for i in 0..self.len {
            let other = self.ranges[i];
            if other.end < merged.start || other.start > merged.end {
                self.ranges[kept] = other;
                kept += 1;
            } else {
                merged.start = merged.start.min(other.start);
                merged.end = merged.end.max(other.end);
            }
        }
        self.len = kept;
        self.insert(merged);
    }

    /// Puts in a range that touches no other.
    fn insert(&mut self, range: Range) {
        if self.len == CAPACITY {
            return;
        }
        let at = self.ranges[..self.len].partition_point(|other| other.start < range.start);
        self.ranges.copy_within(at..self.len, at + 1);
        self.ranges[at] = range;
        self.len += 1;
    }

    /// Takes out all pages that `range` touches.
    pub fn remove(&mut self, range: Range) {
        let cut = range.outwards();
        let old = self.clone();
        self.len = 0;
        for piece in old.ranges() {
            let parts = [
                (piece.start, piece.end.min(cut.start)),
                (piece.start.max(cut.end), piece.end),
            ];
            for (start, end) in parts {
                if start < end {
                    self.insert(Range { start, end });
                }
            }
        }
    }

    /// Takes `size` bytes (whole pages) at or above `from` and below `limit`, lowest first.
    /// Returns where.
    pub fn take(&mut self, size: u64, from: u64, limit: u64) -> Option<u64> {
        let start = self.ranges().iter().find_map(|range| {
            let start = range.start.max(from);
            (start + size <= range.end.min(limit)).then_some(start)
        })?;
        self.remove(Range {
            start,
            end: start + size,
        });
        Some(start)
    }

    /// Whether `range` lies inside one range of the map.
    pub fn contains(&self, range: &Range) -> bool {
        self.ranges().iter().any(|outer| outer.contains(range))
    }

    /// Whether any part of `range` is in the map.
    pub fn overlaps(&self, range: &Range) -> bool {
        self.ranges()
            .iter()
            .any(|other| other.start < range.end && range.start < other.end)
    }

    /// One past the highest address.
    pub fn end(&self) -> u64 {
        self.ranges().last().map_or(0, |range| range.end)
    }

    /// Bytes in all ranges.
    pub fn total(&self) -> u64 {
        self.ranges()
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(usable: &[(u64, u64)], reserved: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut map = MemoryMap::new();
        usable
            .iter()
            .for_each(|&(a, s)| map.record(a, s, Kind::Usable));
        reserved
            .iter()
            .for_each(|&(a, s)| map.record(a, s, Kind::Reserved));
        map.ranges().iter().map(|r| (r.start, r.end)).collect()
    }

    #[test]
    fn sorts_and_merges() {
        let ranges = map(&[(0x5000, 0x1000), (0x1000, 0x2000), (0x2000, 0x3000)], &[]);
        assert_eq!(ranges, [(0x1000, 0x6000)]);
    }

    #[test]
    fn reserved_wins_and_splits() {
        let ranges = map(&[(0x1000, 0x8000)], &[(0x3800, 0x900)]);
        assert_eq!(ranges, [(0x1000, 0x3000), (0x5000, 0x9000)]);
    }

    #[test]
    fn partial_pages_are_not_usable() {
        assert_eq!(map(&[(0x1001, 0x1fff)], &[]), [(0x2000, 0x3000)]);
        assert_eq!(map(&[(0x1001, 0x100)], &[]), []);
    }

    #[test]
    fn nonsense_is_ignored() {
        assert_eq!(map(&[(u64::MAX - 5, 100), (0x1000, 0)], &[]), []);
        let ranges = map(&[(LIMIT - 0x1000, u64::MAX)], &[]);
        assert_eq!(ranges, [(LIMIT - 0x1000, LIMIT)]);
    }

    #[test]
    fn a_full_map_loses_memory_but_never_overlaps() {
        let many: Vec<_> = (0..100).map(|i| (i * 0x4000, 0x1000)).collect();
        let ranges = map(&many, &[]);
        assert_eq!(ranges.len(), CAPACITY);
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }

    #[test]
    fn take_respects_bounds() {
        let mut map = MemoryMap::new();
        map.record(0x1000, 0x10_0000, Kind::Usable);
        assert_eq!(map.take(0x2000, 0x4000, 0x10_0000), Some(0x4000));
        assert_eq!(map.take(0x2000, 0x4000, 0x7000), None);
        assert_eq!(map.total(), 0x10_0000 - 0x2000);
    }
}
