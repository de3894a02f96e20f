//! Which pages of a stretch of address space are free. Pure logic, tested on the host.
//!
//! The free stretches ("holes") are a sorted list. Between two allocations in use lies at most one
//! hole, so there are never more holes than allocations plus one; an allocation reserves room for
//! the hole that giving it back may make, so giving back never needs memory.

use alloc::vec::Vec;

use super::NoMemory;

/// The free pages of a stretch, by page number.
#[derive(Debug, Default)]
pub struct Holes {
    /// Sorted (first, end) pairs that do not touch.
    holes: Vec<(usize, usize)>,
    /// Allocations in use.
    live: usize,
}

impl Holes {
    /// A stretch without pages.
    pub const fn new() -> Self {
        Self {
            holes: Vec::new(),
            live: 0,
        }
    }

    /// A stretch whose pages from `first` up to `end` are free.
    pub fn with_pages(first: usize, end: usize) -> Result<Self, NoMemory> {
        let mut holes = Vec::new();
        holes.try_reserve(2).map_err(|_| NoMemory)?;
        holes.push((first, end));
        Ok(Self { holes, live: 0 })
    }

    /// Takes `pages` pages in a row whose first is `offset` beyond a multiple of `align`; the
    /// lowest there are.
    pub fn alloc(&mut self, pages: usize, align: usize, offset: usize) -> Result<usize, NoMemory> {
        let wanted = self.live + 3;
        let more = wanted.saturating_sub(self.holes.len());
        self.holes.try_reserve(more).map_err(|_| NoMemory)?;
        let (index, first) = self
            .holes
            .iter()
            .enumerate()
            .find_map(|(index, &(start, end))| {
                let first =
                    (start.saturating_sub(offset)).checked_next_multiple_of(align)? + offset;
                (first.checked_add(pages)? <= end).then_some((index, first))
            })
            .ok_or(NoMemory)?;
        let (start, end) = self.holes.remove(index);
        if first + pages < end {
            self.holes.insert(index, (first + pages, end));
        }
        if start < first {
            self.holes.insert(index, (start, first));
        }
        self.live += 1;
        Ok(first)
    }

    /// Gives back pages that [`alloc`](Self::alloc) took in one piece.
    ///
    /// # Panics
    /// If some of the pages are free.
    pub fn free(&mut self, first: usize, pages: usize) {
        let end = first + pages;
        let index = self.holes.partition_point(|&(start, _)| start < first);
        let before = index > 0 && self.holes[index - 1].1 >= first;
        let after = self
            .holes
            .get(index)
            .is_some_and(|&(start, _)| start <= end);
        assert!(
            (!before || self.holes[index - 1].1 <= first) && (!after || self.holes[index].0 >= end),
            "pages {first:#x}+{pages} were free"
        );
        match (before, after) {
            (true, true) => {
                self.holes[index - 1].1 = self.holes[index].1;
                self.holes.remove(index);
            }
            (true, false) => self.holes[index - 1].1 = end,
            (false, true) => self.holes[index].0 = first,
            (false, false) => self.holes.insert(index, (first, end)),
        }
        self.live -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_come_from_the_lowest_hole_and_merge_back() {
        let mut holes = Holes::with_pages(10, 100).unwrap();
        let a = holes.alloc(5, 1, 0).unwrap();
        let b = holes.alloc(5, 1, 0).unwrap();
        let c = holes.alloc(5, 1, 0).unwrap();
        assert_eq!((a, b, c), (10, 15, 20));
        holes.free(a, 5);
        holes.free(c, 5);
        assert_eq!(holes.alloc(6, 1, 0), Ok(20));
        holes.free(20, 6);
        holes.free(b, 5);
        assert_eq!(holes.holes, [(10, 100)]);
    }

    #[test]
    fn alignment_with_offset() {
        let mut holes = Holes::with_pages(10, 3000).unwrap();
        let first = holes.alloc(513, 512, 511).unwrap();
        assert_eq!((first + 1) % 512, 0);
        holes.free(first, 513);
        assert_eq!(holes.holes, [(10, 3000)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut holes = Holes::with_pages(0, 10).unwrap();
        assert_eq!(holes.alloc(11, 1, 0), Err(NoMemory));
        assert_eq!(holes.alloc(usize::MAX, 1, 0), Err(NoMemory));
        assert_eq!(holes.alloc(10, 1, 0), Ok(0));
        assert_eq!(holes.alloc(1, 1, 0), Err(NoMemory));
    }

    #[test]
    #[should_panic(expected = "were free")]
    fn freeing_twice_panics() {
        let mut holes = Holes::with_pages(0, 10).unwrap();
        let first = holes.alloc(4, 1, 0).unwrap();
        holes.free(first, 4);
        holes.free(first, 4);
    }
}
