//! Which runs of pages of an address space have what behind them.
//!
//! [`Areas`] is a list in the order of addresses, in which no area lies over another. It is made to
//! be kept under a lock with interrupts off: nothing here allocates or frees. Room for further
//! areas is got before, without the lock, and given in by [`Areas::lengthen`]; whoever takes
//! something out drops it behind the lock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

use alloc::vec::Vec;
use core::ops::Range;

#[cfg(test)]
mod tests;

/// What is behind the pages of an area.
pub trait Backing: Clone {
    /// What is behind those from page `pages` of the area on.
    fn skip(&mut self, pages: u64);
    /// Whether `next` is what would be behind the pages after the first `pages`: then two areas are
    /// one.
    fn goes_on(&self, pages: u64, next: &Self) -> bool;
}

/// A run of pages with one kind of thing behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area<B> {
    /// The number of its first page.
    pub first: u64,
    /// How many pages it has; at least one.
    pub count: u64,
    /// What is behind them.
    pub backing: B,
}

impl<B: Backing> Area<B> {
    /// The page behind its last one.
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The part of it that lies in `pages`; `None`: there is none.
    pub fn part(&self, pages: &Range<u64>) -> Option<Self> {
        let first = self.first.max(pages.start);
        let end = self.end().min(pages.end);
        (first < end).then(|| {
            let mut backing = self.backing.clone();
            backing.skip(first - self.first);
            Area {
                first,
                count: end - first,
                backing,
            }
        })
    }

    fn goes_on_with(&self, next: &Self) -> bool {
        self.end() == next.first && self.backing.goes_on(self.count, &next.backing)
    }
}

/// Why an area was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It lies over another.
    Occupied,
    /// There is no room in the list: see [`Areas::lengthen`].
    Full,
}

/// The areas of an address space.
#[derive(Debug, Default)]
pub struct Areas<B>(Vec<Area<B>>);

/// So many more areas there may be after a change of one.
const SPLIT: usize = 2;

impl<B: Backing> Areas<B> {
    /// None, and no room for any.
    pub const fn new() -> Self {
        Areas(Vec::new())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there is room for.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Whether any one change has room.
    pub fn has_room(&self) -> bool {
        self.0.capacity() - self.0.len() >= SPLIT
    }

    /// Takes the room of `longer`, which is empty, if that is more. What comes back is to be
    /// dropped without the lock.
    pub fn lengthen(&mut self, mut longer: Vec<Area<B>>) -> Vec<Area<B>> {
        if longer.capacity() <= self.0.capacity() {
            return longer;
        }
        longer.append(&mut self.0);
        core::mem::replace(&mut self.0, longer)
    }

    /// The first area that ends behind `page`.
    pub fn from(&self, page: u64) -> Option<&Area<B>> {
        self.0.get(self.position(page))
    }

    /// What is behind `page`.
    pub fn at(&self, page: u64) -> Option<B> {
        let area = self.from(page).filter(|area| area.first <= page)?;
        let mut backing = area.backing.clone();
        backing.skip(page - area.first);
        Some(backing)
    }

    /// Where the first area is that ends behind `page`.
    fn position(&self, page: u64) -> usize {
        self.0.partition_point(|area| area.end() <= page)
    }

    /// Adds an area, or lengthens one that it goes on with.
    ///
    /// # Errors
    /// [`Refused`]; the area comes back.
    pub fn insert(&mut self, area: Area<B>) -> Result<(), (Refused, Area<B>)> {
        let at = self.position(area.first);
        let next = self.0.get(at);
        if next.is_some_and(|next| next.first < area.end()) {
            return Err((Refused::Occupied, area));
        }
        let joins_next = next.is_some_and(|next| area.goes_on_with(next));
        let before = at.checked_sub(1).map(|before| &self.0[before]);
        let joins_before = before.is_some_and(|before| before.goes_on_with(&area));
        match (joins_before, joins_next) {
            (true, true) => {
                let next = self.0.remove(at);
                self.0[at - 1].count += area.count + next.count;
            }
            (true, false) => self.0[at - 1].count += area.count,
            (false, true) => {
                let count = area.count + self.0[at].count;
                self.0[at] = Area { count, ..area };
            }
            (false, false) if self.0.len() == self.0.capacity() => {
                return Err((Refused::Full, area));
            }
            (false, false) => self.0.insert(at, area),
        }
        Ok(())
    }

    /// Takes the first area out that has some of `pages`, as far as it has them; what is left of it
    /// stays. `None`: there is none.
    ///
    /// # Errors
    /// [`Refused::Full`]: two are left of it, and there is no room.
    pub fn take(&mut self, pages: &Range<u64>) -> Result<Option<Area<B>>, Refused> {
        let at = self.position(pages.start);
        let Some(taken) = self.0.get(at).and_then(|area| area.part(pages)) else {
            return Ok(None);
        };
        let area = &self.0[at];
        let before = area.part(&(area.first..taken.first));
        let behind = area.part(&(taken.end()..area.end()));
        match (before, behind) {
            (None, None) => return Ok(Some(self.0.remove(at))),
            (Some(one), None) | (None, Some(one)) => self.0[at] = one,
            (Some(_), Some(_)) if self.0.len() == self.0.capacity() => return Err(Refused::Full),
            (Some(one), Some(other)) => {
                self.0[at] = one;
                self.0.insert(at + 1, other);
            }
        }
        Ok(Some(taken))
    }

    /// Has `change` change the first area that has some of `pages`, as far as it has them. Gives
    /// the pages; `None`: there is none.
    ///
    /// # Errors
    /// [`Refused::Full`]: there is no [room](Self::has_room). What `change` says, and then all is
    /// as it was.
    pub fn change<E: From<Refused>>(
        &mut self,
        pages: &Range<u64>,
        change: impl FnOnce(&mut B) -> Result<(), E>,
    ) -> Result<Option<Range<u64>>, E> {
        if !self.has_room() {
            return Err(Refused::Full.into());
        }
        let found = self.from(pages.start).and_then(|area| area.part(pages));
        let Some(mut new) = found else {
            return Ok(None);
        };
        change(&mut new.backing)?;
        let changed = new.first..new.end();
        // What it replaces has the same things behind it, so nothing ends here.
        self.take(&changed)?;
        let inserted = self.insert(new);
        debug_assert!(inserted.is_ok(), "there is room where something was taken");
        Ok(Some(changed))
    }

    /// Takes all out; they are to be dropped without the lock.
    pub fn take_all(&mut self) -> Vec<Area<B>> {
        core::mem::take(&mut self.0)
    }
}
