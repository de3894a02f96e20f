//! Where pages of an object are mapped.

use super::super::index::{Found, Place};
use super::super::payer::Payer;
use super::{MOST_PAGES, Result, Vmo};
use alloc::sync::Weak;
use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::MemoryError;
use pages::{Bytes, Held, Missing};

/// Where pages of an object may be mapped.
pub(super) struct Mapping {
    number: u64,
    space: Weak<dyn Mapped>,
    /// Where the first of them is there, as the number of a page.
    at: u64,
    pages: Range<u64>,
}

/// An address space in which pages of objects are mapped. It is called without a lock of an object,
/// and meant are pages by their numbers in the space: also where others have been mapped since, who
/// then meet a fault that they need not have met.
pub trait Mapped: Send + Sync {
    /// Unmaps those of these pages that are an object's; none of them is reached by its translation
    /// afterwards.
    fn unmap(&self, pages: Range<u64>);
    /// Lets nobody write to those of these pages that are an object's; nobody does afterwards.
    fn protect(&self, pages: Range<u64>);
}

/// The number of the next mapping of any object.
static NEXT_MAPPING: AtomicU64 = AtomicU64::new(1);

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Does `change` to each mapping that has some of these pages: with its space, and where it has
    /// them.
    fn each_mapping(&self, pages: Range<u64>, change: impl Fn(&dyn Mapped, Range<u64>)) {
        let mut last = 0;
        loop {
            let state = self.state.lock();
            let from = state.mappings.partition_point(|it| it.number <= last);
            let meets = |it: &&Mapping| it.pages.start < pages.end && pages.start < it.pages.end;
            let Some(found) = state.mappings[from..].iter().find(meets) else {
                return;
            };
            last = found.number;
            let there = |page: u64| {
                found.at + (page.clamp(found.pages.start, found.pages.end) - found.pages.start)
            };
            let there = there(pages.start)..there(pages.end);
            let space = found.space.clone();
            drop(state);
            if let Some(space) = space.upgrade() {
                change(&*space, there);
            }
        }
    }

    pub(super) fn unmap(&self, pages: Range<u64>) {
        self.each_mapping(pages, |space, there| space.unmap(there));
    }

    pub(super) fn protect(&self, pages: Range<u64>) {
        self.each_mapping(pages, |space, there| space.protect(there));
    }

    /// Notes that `pages` of it may be mapped in `space` from now on, from page `at` of that on;
    /// the mapping's number, which no other has. There may be pages beyond its limit, which come
    /// when it grows. A sealed object notes nothing: it never takes a page away, and lets nobody
    /// write. A later seal finds the mappings that were noted.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`]: no object has so many pages. No memory, or too many.
    pub fn add_mapping(&self, space: Weak<dyn Mapped>, at: u64, pages: Range<u64>) -> Result<u64> {
        if pages.end > MOST_PAGES {
            return Err(MemoryError::Beyond);
        }
        // Not before the last change is over: it may be one that takes pages away.
        if self.seal.is_final() {
            return Ok(0);
        }
        let mut state = loop {
            self.room_for(1, |state| &mut state.mappings)?;
            let state = self.state.lock();
            // The room that was made may have gone to another.
            if state.mappings.len() < state.mappings.capacity() {
                break state;
            }
        };
        let number = NEXT_MAPPING.fetch_add(1, Ordering::Relaxed);
        state.mappings.push(Mapping {
            number,
            space,
            at,
            pages,
        });
        Ok(number)
    }

    /// Forgets a mapping, of which no page is mapped any more; 0 is none.
    pub fn remove_mapping(&self, number: u64) {
        let mut state = self.state.lock();
        let at = state.mappings.binary_search_by_key(&number, |it| it.number);
        let removed = at.ok().map(|at| state.mappings.remove(at));
        drop(state);
        drop(removed);
    }

    /// Has `enter` map a page, with its frame held, for reading or for writing. It is given a
    /// function that says, with the page's table locked, whether it still may: whether the page
    /// has this frame, and, for writing, is marked dirty. `enter` says whether it has mapped the
    /// page; if not, all begins anew.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) and [`write`](Self::write), and what `enter` says.
    pub fn map_page<E: From<MemoryError>>(
        &self,
        page: u64,
        write: bool,
        enter: impl Fn(&Held<F>, &dyn Fn() -> bool) -> core::result::Result<bool, E>,
    ) -> core::result::Result<(), E> {
        let _writing = match write {
            true => Some(self.begin_write()?),
            false => None,
        };
        loop {
            let Some((place, held)) = self.usable(page)? else {
                continue;
            };
            let was_clean = Cell::new(false);
            let mark = || {
                let marked = place.entry.mark(&held);
                was_clean.set(was_clean.get() || marked == Ok(true));
                marked.is_ok()
            };
            let may = || match place.is_right() {
                true if write => mark(),
                is_right => is_right && place.entry.is_still(&held),
            };
            let entered = enter(&held, &may);
            // Not before: the page's table was locked.
            if was_clean.get() {
                self.marked();
            }
            if entered? {
                return Ok(());
            }
        }
    }

    /// A page that can be used now, with its frame held; `None`: one has to look again. An absent
    /// page of an object of zeros gets memory.
    pub(super) fn usable(&self, page: u64) -> Result<Option<(Place<'_, F>, Held<F>)>> {
        match self.present(page) {
            Err(MemoryError::Absent) => self.bring(page).map(|()| None),
            found => found,
        }
    }

    /// A page that is there, likewise.
    pub(super) fn present(&self, page: u64) -> Result<Option<(Place<'_, F>, Held<F>)>> {
        self.is_within(page)?;
        let place = match self.index.find(page) {
            Found::Here(place) => place,
            Found::Changing => return Ok(None),
            Found::Nothing => return Err(MemoryError::Absent),
        };
        match place.entry.hold() {
            // Else the leaf had become other pages' before the frame was held.
            Ok(held) if place.is_right() => Ok(Some((place, held))),
            Ok(_) => Ok(None),
            Err(_) if !place.is_right() => Ok(None),
            Err(Missing::Absent | Missing::Cut) => Err(MemoryError::Absent),
            Err(Missing::Loading) => match self.break_off_dead(page) {
                true => Ok(None),
                false => Err(MemoryError::Loading),
            },
        }
    }
}
