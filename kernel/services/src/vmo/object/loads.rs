//! Pages that are being loaded, and by whom.

use super::super::index::{Found, Place};
use super::super::payer::{Charged, Payer};
use super::{AT_ONCE, Result, Vmo};
use interfaces::{MemoryError, VmoFill};
use isolation::platform::PAGE;
use pages::{Bytes, Entry, Load};

/// A page that is being loaded.
pub(super) struct Loading<F: Bytes, P> {
    pub(super) page: u64,
    pub(super) load: Load<F>,
    pub(super) loader: P,
}

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Begins to load pages on behalf of `loader`; how many from `first` on, until the first that
    /// is there.
    ///
    /// # Errors
    /// Not one; why. [`MemoryError::Invalid`] of an object of zeros.
    pub fn load(&self, loader: &P, first: u64, count: u64) -> Result<u64> {
        if self.fill == VmoFill::Zero {
            return Err(MemoryError::Invalid);
        }
        let _writing = self.begin_write()?;
        let range = self.range(first, count)?;
        let mut done = 0;
        for page in range {
            match self.load_one(loader, page) {
                Ok(()) => done += 1,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn load_one(&self, loader: &P, page: u64) -> Result<()> {
        self.break_off_dead(page);
        loop {
            self.room_for(1, |state| &mut state.loads)?;
            let added = self.add(page, |entry, fresh, state| {
                // The room that was made may have gone to another.
                if state.loads.len() == state.loads.capacity() {
                    return Err(fresh);
                }
                let at = state.loads.partition_point(|other| other.page < page);
                let load = entry.load(fresh)?;
                let loader = loader.clone();
                state.loads.insert(at, Loading { page, load, loader });
                Ok(())
            })?;
            if added {
                return Ok(());
            }
            if self.with_page(page, |entry| entry.tags().present) == Some(true) {
                return Err(MemoryError::Present);
            }
        }
    }

    /// The content of pages that are being loaded, from `first` on; how many were still waited for.
    /// Those that a device may still write to go on waiting.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`]: no whole number of pages, or more than [`AT_ONCE`].
    /// [`MemoryError::Beyond`], [`MemoryError::Sealed`].
    pub fn end_load(&self, first: u64, content: &[u8]) -> Result<u64> {
        let count = (content.len() / PAGE) as u64;
        if !content.len().is_multiple_of(PAGE) || count > AT_ONCE {
            return Err(MemoryError::Invalid);
        }
        let _writing = self.begin_write()?;
        let range = self.range(first, count)?;
        let mut ended = 0;
        for (page, bytes) in range.zip(content.chunks_exact(PAGE)) {
            ended += u64::from(self.end_one(page, |load| load.fill(0, bytes), Entry::end_load));
        }
        self.loads_ended();
        Ok(ended)
    }

    /// The content of pages that are being loaded is in place; how many were still waited for, and
    /// are no more. Those that a device may still write to go on waiting.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`], [`MemoryError::Sealed`].
    pub fn loaded(&self, first: u64, count: u64) -> Result<u64> {
        let _writing = self.begin_write()?;
        let range = self.range(first, count)?;
        let end = |page: &u64| self.end_one(*page, |_| {}, Entry::end_load);
        let ended = range.filter(end).count();
        self.loads_ended();
        Ok(ended as u64)
    }

    /// As [`loaded`](Self::loaded), of content that is nowhere else: the pages are dirty.
    ///
    /// # Errors
    /// As there.
    pub fn loaded_dirty(&self, first: u64, count: u64) -> Result<u64> {
        let _writing = self.begin_write()?;
        let range = self.range(first, count)?;
        let end = |page: &u64| self.end_one(*page, |_| {}, Entry::end_load_dirty);
        let ended = range.filter(end).count();
        self.loads_ended();
        if ended > 0 {
            self.marked();
        }
        Ok(ended as u64)
    }

    /// Ends the load of a page, by `end`, with what `fill` puts into it; whether it was waited for.
    fn end_one(
        &self,
        page: u64,
        fill: impl FnOnce(&Load<F>),
        end: impl FnOnce(&Entry<F>, &Load<F>) -> bool,
    ) -> bool {
        let Some(load) = self.take_load(page, |load| !load.load.is_lent()) else {
            return false;
        };
        fill(&load.load);
        self.with_page(page, |entry| end(entry, &load.load)) == Some(true)
    }

    /// Takes the load of `page` out of the list, if there is one that is `meant`.
    fn take_load(
        &self,
        page: u64,
        meant: impl FnOnce(&Loading<F, P>) -> bool,
    ) -> Option<Loading<F, P>> {
        let mut state = self.state.lock();
        let at = state
            .loads
            .binary_search_by_key(&page, |load| load.page)
            .ok()?;
        meant(&state.loads[at]).then(|| state.loads.remove(at))
    }

    /// The content of these pages does not come; how many were still waited for.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn break_off(&self, first: u64, count: u64) -> Result<u64> {
        let range = self.range(first, count)?;
        Ok(range
            .filter(|&page| self.break_off_one(page, |_| true))
            .count() as u64)
    }

    /// Breaks the load of a page off whose loader is dead; whether it did.
    pub(super) fn break_off_dead(&self, page: u64) -> bool {
        self.break_off_one(page, |load| !load.loader.is_alive())
    }

    fn break_off_one(&self, page: u64, meant: impl FnOnce(&Loading<F, P>) -> bool) -> bool {
        let Some(load) = self.take_load(page, meant) else {
            return false;
        };
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Found::Here(Place { entry, .. }) = self.index.find(page) else {
            return false;
        };
        if !entry.break_off(&load.load) {
            return false;
        }
        self.tidy(&mut state.books, page);
        state.pages -= 1;
        let charge = state.charge.split(PAGE);
        drop(guard);
        drop(charge);
        self.loads_ended();
        true
    }
}
