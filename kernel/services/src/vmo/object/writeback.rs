//! Pages that are being written back.
//!
//! That a page is says its own word alone, so none of this takes memory, and there may be as many
//! as there are pages. What is done under the object's lock is done for a leaf at a time.

use super::super::index::LEAF;
use super::super::payer::Payer;
use super::{AT_ONCE, Result, Vmo};
use core::ops::Range;
use interfaces::MemoryError;
use pages::{Bytes, Entry};

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Begins to write back dirty pages of the range: the first ones in a row; `None`: there is
    /// none that is not being written back already.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn clean(&self, first: u64, count: u64) -> Result<Option<(u64, u64)>> {
        let end = first.checked_add(count).filter(|end| *end <= self.limit());
        let end = end.ok_or(MemoryError::Beyond)?;
        self.alarm.look();
        let mut page = first;
        while let Some(due) = self
            .find_page(page, |tags| tags.dirty && !tags.writeback)
            .filter(|page| *page < end)
        {
            let done = self.clean_from(due..end.min(due + AT_ONCE));
            if done > 0 {
                self.protect(due..due + done);
                return Ok(Some((due, done)));
            }
            page = due + 1;
        }
        Ok(None)
    }

    /// Begins to write back the dirty pages from the first on that follow each other; how many.
    fn clean_from(&self, pages: Range<u64>) -> u64 {
        let mut next = pages.start;
        while next < pages.end {
            let (done, behind) = self.with_leaf(next..pages.end, |leaf| {
                leaf.iter().take_while(|entry| entry.clean()).count()
            });
            next += done;
            if next < behind {
                break;
            }
        }
        next - pages.start
    }

    /// Counts with `count` among those pages of the range that lie in the leaf of its first, with
    /// the lock. Says also where they end.
    fn with_leaf(&self, pages: Range<u64>, count: impl FnOnce(&[Entry<F>]) -> usize) -> (u64, u64) {
        let first = pages.start % LEAF;
        let end = LEAF.min(first + pages.end - pages.start);
        let behind = pages.start - first + end;
        let _state = self.state.lock();
        let leaf = self.index.leaf(pages.start);
        let counted = leaf.map_or(0, |leaf| count(&leaf[first as usize..end as usize]));
        (counted as u64, behind)
    }

    /// Ends write-backs of pages by `end`; how many it says there were.
    fn end_clean(&self, first: u64, count: u64, end: impl Fn(&Entry<F>) -> bool) -> Result<u64> {
        let range = self.range(first, count)?;
        let (mut ended, mut next) = (0, range.start);
        while next < range.end {
            let (done, behind) = self.with_leaf(next..range.end, |leaf| {
                leaf.iter().filter(|entry| end(entry)).count()
            });
            ended += done;
            next = behind;
        }
        Ok(ended)
    }

    /// These pages, that were being written back, are where they belong; how many were.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn commit(&self, first: u64, count: u64) -> Result<u64> {
        self.end_clean(first, count, Entry::commit)
    }

    /// These pages, that were being written back, are dirty again; how many were.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn redo(&self, first: u64, count: u64) -> Result<u64> {
        let again = self.end_clean(first, count, Entry::redo)?;
        if again > 0 {
            self.marked();
        }
        Ok(again)
    }
}
