//! Pages that are being written back.

use super::super::index::LEAF;
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
        let mut page = first;
        while page < end {
            match self.clean_in_leaf(page, end) {
                Ok(0) => break,
                Ok(done) => page += done,
                Err(error) if page == first => return Err(error),
                Err(_) => break,
            }
        }
        Ok(page - first)
    }

    /// The same, as far as one leaf goes.
    fn clean_in_leaf(&self, first: u64, end: u64) -> Result<u64> {
        self.room_for(1, |state| &mut state.cleaned)?;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Some(leaf) = self.index.leaf(first) else {
            return Ok(0);
        };
        let list = &mut state.cleaned;
        // Another may have the room that was made.
        if list.len() == list.capacity() {
            return Err(MemoryError::Rpc(RpcError::Busy));
        }
        let at = list.partition_point(|(other, _)| *other < first);
        let start = (first % LEAF) as usize;
        let mut page = first;
        for entry in &leaf[start..] {
            if page == end || list.len() == list.capacity() {
                break;
            }
            let Some(cleaned) = entry.clean() else {
                break;
            };
            list.push((page, cleaned));
            page += 1;
        }
        // To its place in one go.
        list[at..].rotate_right((page - first) as usize);
        Ok(page - first)
    }

    /// Ends the write-back of pages by `end`, with the lock; how many `end` says were.
    fn end_clean(
        &self,
        first: u64,
        count: u64,
        end: impl Fn(&Entry<F>, Cleaned<F>) -> bool,
    ) -> Result<u64> {
        let range = self.range(first, count)?;
        let (mut ended, mut next) = (0, range.end);
        // Leaf by leaf from behind: so what is taken out of the list of a run stands at the end of
        // it, and the rest of the run is not moved for each leaf.
        while next > range.start {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            let list = &mut state.cleaned;
            let behind = list.partition_point(|(page, _)| *page < next);
            let Some((last, _)) = behind.checked_sub(1).map(|at| &list[at]) else {
                break;
            };
            let base = last - last % LEAF;
            let from = base.max(range.start);
            let leaf = self.index.leaf(base);
            let at = list.partition_point(|(page, _)| *page < from);
            for (page, cleaned) in list.drain(at..behind) {
                if let Some(leaf) = leaf {
                    ended += u64::from(end(&leaf[(page - base) as usize], cleaned));
                }
            }
            next = from;
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
