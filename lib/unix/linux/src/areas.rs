//! What is mapped where in a program's memory: areas that do not overlap, in the order of their
//! addresses. Neighbours of one kind are one area.

use crate::errno::{ENOMEM, Error};
use crate::memory::PAGE;
use alloc::vec::Vec;
use core::ops::Range;

/// The most areas.
const MOST: usize = 16_384;
/// So many more there are at most after a change than before.
const MORE: usize = 2;

/// A range of addresses with one thing behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area<F> {
    /// Where it begins and ends.
    pub start: u64,
    /// See `start`.
    pub end: u64,
    /// What a program may do there, as `mprotect` says it.
    pub bits: u64,
    /// The page of the file that is at the start.
    pub page: u64,
    /// What is mapped; `None`: zeros of the program's own.
    pub file: Option<F>,
}

impl<F: Clone + PartialEq> Area<F> {
    /// The part of it from `start` up to `end`.
    fn part(&self, start: u64, end: u64) -> Self {
        Area {
            start,
            end,
            page: self.page_at(start),
            ..self.clone()
        }
    }

    /// The page of the file at an address.
    pub fn page_at(&self, at: u64) -> u64 {
        match self.file {
            Some(_) => self.page + (at - self.start) / PAGE,
            None => 0,
        }
    }

    /// Makes it reach to the end of `next`, if that goes on where it ends; whether it does.
    fn absorbs(&mut self, next: &Self) -> bool {
        let goes_on = self.end == next.start
            && self.bits == next.bits
            && self.file == next.file
            && self.page_at(self.end) == next.page;
        if goes_on {
            self.end = next.end;
        }
        goes_on
    }
}

/// The areas of a memory.
#[derive(Debug)]
pub struct Areas<F>(Vec<Area<F>>);

impl<F> Default for Areas<F> {
    fn default() -> Self {
        Areas(Vec::new())
    }
}

impl<F: Clone + PartialEq> Areas<F> {
    /// The same for a copy of the memory.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn copy(&self) -> Result<Self, Error> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(self.0.len() + MORE)
            .map_err(|_| ENOMEM)?;
        copy.extend_from_slice(&self.0);
        Ok(Areas(copy))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Area<F>> {
        self.0.iter()
    }

    /// The first one that ends behind an address.
    fn place(&self, at: u64) -> usize {
        self.0.partition_point(|area| area.end <= at)
    }

    /// The area at an address.
    pub fn find(&self, at: u64) -> Option<&Area<F>> {
        self.0.get(self.place(at)).filter(|area| area.start <= at)
    }

    /// The first part of an area in the range from `from` up to `end`.
    pub fn next(&self, from: u64, end: u64) -> Option<Area<F>> {
        let area = self.0.get(self.place(from))?;
        let (start, end) = (area.start.max(from), area.end.min(end));
        (start < end).then(|| area.part(start, end))
    }

    /// Up to where a range is mapped from its start on.
    pub fn reach(&self, range: Range<u64>) -> u64 {
        let mut at = range.start;
        for area in &self.0[self.place(at)..] {
            if at >= range.end || area.start > at {
                break;
            }
            at = area.end;
        }
        at.min(range.end)
    }

    /// Whether nothing of a range is mapped.
    pub fn is_free(&self, range: Range<u64>) -> bool {
        self.next(range.start, range.end).is_none()
    }

    /// The highest place for so many bytes between two addresses.
    pub fn gap(&self, bytes: u64, floor: u64, ceiling: u64) -> Option<u64> {
        let mut top = ceiling;
        for area in self.0[..self.0.partition_point(|area| area.start < ceiling)]
            .iter()
            .rev()
        {
            if top.saturating_sub(area.end) >= bytes {
                break;
            }
            top = top.min(area.start);
        }
        top.checked_sub(bytes).filter(|at| *at >= floor)
    }

    /// Sees to it that the next change cannot fail.
    ///
    /// # Errors
    /// `ENOMEM`: there are as many as there may be, or no memory.
    pub fn reserve(&mut self) -> Result<(), Error> {
        if self.0.len() + MORE > MOST {
            return Err(ENOMEM);
        }
        self.0.try_reserve(MORE).map_err(|_| ENOMEM)
    }

    /// Sees to it that an area ends at an address, if there is one; the first from there on.
    fn cut(&mut self, at: u64) -> usize {
        let place = self.place(at);
        let Some(area) = self.0.get_mut(place).filter(|area| area.start < at) else {
            return place;
        };
        let behind = area.part(at, area.end);
        area.end = at;
        self.0.insert(place + 1, behind);
        place + 1
    }

    /// Forgets what is mapped in a range.
    pub fn take(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.cut(range.start);
        let last = self.cut(range.end);
        drop(self.0.drain(first..last));
    }

    /// Notes an area, in place of what was there.
    pub fn put(&mut self, area: Area<F>) {
        self.take(area.start..area.end);
        let at = self.place(area.start);
        self.0.insert(at, area);
        self.join(at);
        if let Some(before) = at.checked_sub(1) {
            self.join(before);
        }
    }

    /// Makes one area of one and the next, if they go on.
    fn join(&mut self, at: usize) {
        let (front, back) = self.0.split_at_mut(at + 1);
        let (Some(own), Some(next)) = (front.last_mut(), back.first()) else {
            return;
        };
        if own.absorbs(next) {
            drop(self.0.remove(at + 1));
        }
    }

    /// Changes what may be done in a range, where something is mapped.
    pub fn protect(&mut self, range: Range<u64>, bits: u64) {
        if range.is_empty() {
            return;
        }
        let first = self.cut(range.start);
        let last = self.cut(range.end);
        self.0[first..last]
            .iter_mut()
            .for_each(|area| area.bits = bits);
        self.0.dedup_by(|next, own| own.absorbs(next));
    }
}

#[cfg(test)]
mod tests;
