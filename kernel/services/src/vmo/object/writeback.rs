//! Pages that are being written back.

use super::super::index::{Found, Place};
use super::super::payer::Payer;
use super::{AT_ONCE, Result, Vmo};
use interfaces::{MemoryError, PageKind, RpcError};
use pages::{Bytes, Cleaned, Entry};

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Begins to write back dirty pages of the range: the first ones in a row; `None`: there is
    /// none that is not being written back already.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`]; no memory, or too many are under way.
    pub fn clean(&self, first: u64, count: u64) -> Result<Option<(u64, u64)>> {
        let end = first.checked_add(count).filter(|end| *end <= self.limit());
        let end = end.ok_or(MemoryError::Beyond)?;
        let mut page = first;
        while let Some(dirty) = self.next(page, PageKind::Dirty).filter(|page| *page < end) {
            let done = self.clean_from(dirty, end.min(dirty + AT_ONCE))?;
            if done > 0 {
                self.protect(dirty..dirty + done);
                return Ok(Some((dirty, done)));
            }
            page = dirty + 1;
        }
        Ok(None)
    }

    /// Begins to write back the dirty pages from `first` on that follow each other; how many.
    fn clean_from(&self, first: u64, end: u64) -> Result<u64> {
        for page in first..end {
            match self.clean_one(page) {
                Ok(true) => {}
                Err(error) if page == first => return Err(error),
                Ok(false) | Err(_) => return Ok(page - first),
            }
        }
        Ok(end - first)
    }

    fn clean_one(&self, page: u64) -> Result<bool> {
        self.room_for(|state| &mut state.cleaned)?;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Found::Here(Place { entry, .. }) = self.index.find(page) else {
            return Ok(false);
        };
        if state.cleaned.len() == state.cleaned.capacity() {
            return Err(MemoryError::Rpc(RpcError::Busy));
        }
        let Some(cleaned) = entry.clean() else {
            return Ok(false);
        };
        let at = state.cleaned.partition_point(|(other, _)| *other < page);
        state.cleaned.insert(at, (page, cleaned));
        Ok(true)
    }

    /// Ends the write-back of pages by `end`, with the lock; how many `end` says were.
    fn end_clean(
        &self,
        first: u64,
        count: u64,
        end: impl Fn(&Entry<F>, Cleaned<F>) -> bool,
    ) -> Result<u64> {
        let range = self.range(first, count)?;
        let mut ended = 0;
        // From behind: so what is taken out of the list of a run stands at the end of it, and the
        // rest of the run is not moved for each page.
        for page in range.rev() {
            let mut state = self.state.lock();
            let at = state.cleaned.binary_search_by_key(&page, |(page, _)| *page);
            let Ok(at) = at else {
                continue;
            };
            let (_, cleaned) = state.cleaned.remove(at);
            if let Found::Here(Place { entry, .. }) = self.index.find(page) {
                ended += u64::from(end(entry, cleaned));
            }
        }
        Ok(ended)
    }

    /// These pages, that were being written back, are where they belong; how many were.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn commit(&self, first: u64, count: u64) -> Result<u64> {
        self.end_clean(first, count, |entry, cleaned| entry.commit(&cleaned))
    }

    /// These pages, that were being written back, are dirty again; how many were.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn redo(&self, first: u64, count: u64) -> Result<u64> {
        let again = self.end_clean(first, count, |entry, cleaned| entry.redo(cleaned))?;
        if again > 0 {
            self.marked();
        }
        Ok(again)
    }
}
