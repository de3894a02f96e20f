//! Which files are mapped where: ranges of addresses that do not overlap.

use crate::errno::{ENOMEM, Error};
use crate::memory::PAGE;
use alloc::vec::Vec;

/// The most ranges.
const MOST: usize = 4096;

/// A file in a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range<F> {
    start: u64,
    end: u64,
    /// The page of the file that is at the start.
    page: u64,
    file: F,
}

/// A part of a range of addresses, in which one file is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<F> {
    /// Where it begins, and how many bytes it has.
    pub at: u64,
    /// See `at`.
    pub bytes: u64,
    /// The page of the file that is there.
    pub page: u64,
    /// The file.
    pub file: F,
}

/// The ranges of a space, in no order.
#[derive(Debug)]
pub struct Ranges<F>(Vec<Range<F>>);

impl<F: Clone> Default for Ranges<F> {
    fn default() -> Self {
        Ranges(Vec::new())
    }
}

impl<F: Clone> Ranges<F> {
    /// The same for a copy of the space.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn copy(&self) -> Result<Self, Error> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(self.0.len()).map_err(|_| ENOMEM)?;
        copy.extend_from_slice(&self.0);
        Ok(Ranges(copy))
    }

    /// The file of each range.
    pub fn all(&self) -> impl Iterator<Item = &F> {
        self.0.iter().map(|range| &range.file)
    }

    /// The file at an address, and which page of it is there.
    pub fn find(&self, at: u64) -> Option<(F, u64)> {
        let mut ranges = self.0.iter();
        let found = ranges.find(|range| (range.start..range.end).contains(&at))?;
        Some((found.file.clone(), found.page + (at - found.start) / PAGE))
    }

    /// The first part of the range from `from` up to `end` in which a file is mapped.
    pub fn next(&self, from: u64, end: u64) -> Option<Part<F>> {
        let reaching = self.0.iter().filter(|it| it.end > from && it.start < end);
        let first = reaching.min_by_key(|range| range.start)?;
        let at = first.start.max(from);
        // Of none there is no part, though one may lie around it.
        (at < end).then(|| Part {
            at,
            bytes: first.end.min(end) - at,
            page: first.page + (at - first.start) / PAGE,
            file: first.file.clone(),
        })
    }

    /// Notes that a file is mapped, from its page `page` on, in a range where none is.
    ///
    /// # Errors
    /// `ENOMEM`: there are as many as there may be, or no memory.
    pub fn note(&mut self, at: u64, bytes: u64, page: u64, file: F) -> Result<(), Error> {
        if self.0.len() >= MOST {
            return Err(ENOMEM);
        }
        self.0.try_reserve(1).map_err(|_| ENOMEM)?;
        self.0.push(Range {
            start: at,
            end: at.saturating_add(bytes),
            page,
            file,
        });
        Ok(())
    }

    /// Forgets what is mapped in a range; what reaches beyond it stays there.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn forget(&mut self, at: u64, bytes: u64) -> Result<(), Error> {
        let end = at.saturating_add(bytes);
        // One more at the most: where the range lies within a mapping.
        self.0.try_reserve(1).map_err(|_| ENOMEM)?;
        let mut rest = None;
        self.0.retain_mut(|range| {
            if range.end <= at || end <= range.start {
                return true;
            }
            if range.end > end {
                let page = range.page + (end - range.start) / PAGE;
                let behind = Range {
                    start: end,
                    page,
                    ..range.clone()
                };
                if range.start >= at {
                    *range = behind;
                    return true;
                }
                rest = Some(behind);
            }
            range.end = at;
            range.start < at
        });
        self.0.extend(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u64 = 12;

    /// What a table of pages would say.
    fn pages(ranges: &Ranges<char>) -> Vec<Option<(char, u64)>> {
        (0..PAGES).map(|page| ranges.find(page * PAGE)).collect()
    }

    /// Each range that is forgotten of two mappings and a gap, compared with a table of pages.
    #[test]
    fn what_is_forgotten_is_gone_and_all_else_stays() {
        for start in 0..PAGES {
            for count in 0..=PAGES {
                let mut ranges = Ranges::default();
                ranges.note(PAGE, 4 * PAGE, 7, 'a').expect("there is room");
                ranges
                    .note(6 * PAGE, 5 * PAGE, 0, 'b')
                    .expect("there is room");
                let mut right = pages(&ranges);
                assert_eq!(right[1], Some(('a', 7)));
                assert_eq!(right[10], Some(('b', 4)));
                ranges
                    .forget(start * PAGE, count * PAGE)
                    .expect("there is room");
                let gone = right.iter_mut().skip(start as usize).take(count as usize);
                gone.for_each(|page| *page = None);
                assert_eq!(pages(&ranges), right, "{count} from {start}");
            }
        }
    }

    #[test]
    fn ranges_come_one_after_the_other() {
        let mut ranges = Ranges::default();
        ranges.note(6 * PAGE, PAGE, 0, 'b').expect("there is room");
        ranges.note(PAGE, 4 * PAGE, 7, 'a').expect("there is room");
        let next = |from: u64, end: u64| {
            let part = ranges.next(from * PAGE, end.saturating_mul(PAGE))?;
            Some((part.file, part.page, part.at / PAGE, part.bytes / PAGE))
        };
        assert_eq!(next(0, 1), None);
        assert_eq!(next(3, 3), None);
        assert_eq!(next(0, 7), Some(('a', 7, 1, 4)));
        assert_eq!(next(0, 3), Some(('a', 7, 1, 2)));
        assert_eq!(next(3, 4), Some(('a', 9, 3, 1)));
        assert_eq!(next(5, 6), None);
        assert_eq!(next(5, u64::MAX), Some(('b', 0, 6, 1)));
        assert_eq!(next(7, u64::MAX), None);
    }

    #[test]
    fn a_copy_goes_its_own_way() {
        let mut ranges = Ranges::default();
        ranges.note(0, PAGE, 0, 'a').expect("there is room");
        let copy = ranges.copy().expect("there is room");
        ranges.forget(0, u64::MAX).expect("there is room");
        assert_eq!(
            (ranges.find(0), copy.find(PAGE - 1)),
            (None, Some(('a', 0)))
        );
    }

    /// A program that maps one page after the other comes to an end; so does one that cuts a
    /// mapping to pieces, whose number is bounded by that of the pages.
    #[test]
    fn there_is_a_most_of_them() {
        let mut ranges = Ranges::default();
        for at in 0..MOST as u64 {
            ranges.note(at * PAGE, PAGE, 0, 'a').expect("there is room");
        }
        assert_eq!(ranges.note(u64::MAX - PAGE, PAGE, 0, 'a'), Err(ENOMEM));
        ranges.forget(PAGE, PAGE).expect("there is room");
        assert_eq!(ranges.note(PAGE, PAGE, 0, 'a'), Ok(()));
    }
}
