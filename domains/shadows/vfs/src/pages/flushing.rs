//! Data alone is brought to the disk, and perhaps a part of a file: stored as always, and then
//! flushed by the file system, without a commit where that has all that the data is found by.
//!
//! What was stored so stays *stored* until the next commit. It cannot be clean before, since the
//! log may have a change that came before it, which would be done again over it.

use core::ops::Range;

use interfaces::FsError;
use redo::{Host, Target};

use super::file::{File, State, Stored};
use super::storing::Who;
use super::{PAGE, Pages, memory_error};
use crate::instance::Instance;
use crate::shadow::Shadow;

/// Pages that were stored since the last commit, of which it is looked whether they were written to
/// since by who wants only data on the disk.
const LOOKED_AT: u64 = 64;

impl Pages {
    /// As [`commit_inode`](Self::commit_inode), for some bytes and what they are found by.
    ///
    /// # Errors
    /// As there.
    pub fn commit_data(
        &self,
        shadow: &Shadow,
        inode: u64,
        bytes: Range<u64>,
    ) -> Result<(), FsError> {
        match self.flush_data(shadow, inode, bytes)? {
            true => self.tell_loss(inode),
            false => self.commit_inode(shadow, inode),
        }
    }

    /// Stores what is dirty of some bytes of a file, and has it flushed. False: it takes a commit,
    /// so that the rest of the file is to be stored, too.
    ///
    /// What is stored so stays stored until the next commit, as if nobody had asked.
    fn flush_data(&self, shadow: &Shadow, inode: u64, bytes: Range<u64>) -> Result<bool, FsError> {
        for _ in 0..respawn::ATTEMPTS {
            if let Some(file) = self.known(inode) {
                if !self.store_again(&file, &bytes)? {
                    return Ok(false);
                }
                self.store_bytes(shadow, &file, &bytes)?;
            }
            let (is_flushed, by) = shadow.ask(inode, |instance, real| {
                Ok((instance.fs().flush_content(real)?, instance.id()))
            })?;
            if !is_flushed {
                return Ok(false);
            }
            let Some(file) = self.known(inode) else {
                return Ok(true);
            };
            // What a dead one had stored may have no place.
            if !self.take_back(&file, &mut file.state.lock(), by)? {
                return Ok(true);
            }
        }
        Err(FsError::Down)
    }

    /// Some bytes of a file may have been stored, and written to since: they are dirty, and stored
    /// no more. False: too much is stored to look at, so that a commit pays.
    fn store_again(&self, file: &File, bytes: &Range<u64>) -> Result<bool, FsError> {
        let (first, end) = (bytes.start / PAGE, bytes.end.div_ceil(PAGE));
        let mut state = file.state.lock();
        let shared = |stored: &Stored| {
            first.max(stored.first)..end.min(stored.first + stored.count).max(first)
        };
        let stored = state.stored.iter().map(shared);
        if stored
            .map(|pages| pages.end.saturating_sub(pages.start))
            .sum::<u64>()
            > LOOKED_AT
        {
            return Ok(false);
        }
        self.redo_written(file, &mut state, &(first..end))?;
        Ok(true)
    }

    /// What was stored with some of these pages, which were written to since, is dirty, and stored
    /// no more.
    pub(super) fn redo_written(
        &self,
        file: &File,
        state: &mut State,
        pages: &Range<u64>,
    ) -> Result<(), FsError> {
        let mut at = 0;
        while let Some(stored) = state.stored.get(at) {
            let (first, count) = (stored.first, stored.count);
            let mut dirty = 0;
            for page in first.max(pages.start)..(first + count).min(pages.end) {
                dirty += u64::from(file.owner.tags(page).map_err(memory_error)?.dirty);
            }
            if dirty == 0 {
                at += 1;
                continue;
            }
            state.stored.swap_remove(at);
            self.redo(file, state, first, count)?;
            // They were counted when they were written to.
            self.count_stored(state, dirty);
        }
        Ok(())
    }

    /// Stores what is dirty of some bytes of a file; all of it where the file system would have a
    /// length otherwise that the file never had.
    fn store_bytes(&self, shadow: &Shadow, file: &File, bytes: &Range<u64>) -> Result<(), FsError> {
        let who = Who::Inode(file.inode);
        let size = file.record.lock().size;
        let is_part = bytes.start > 0 || bytes.end < size;
        if is_part {
            let ask = |instance: &Instance, real| instance.fs().metadata(real);
            if shadow.ask(file.inode, ask)?.size >= size {
                let pages = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
                return self.store_part(shadow, file, pages, who);
            }
        }
        self.store_file(shadow, file, who).map(|_| ())
    }

    /// Stores the dirty ones of some pages of a file. The lock is given back now and then.
    fn store_part(
        &self,
        shadow: &Shadow,
        file: &File,
        mut pages: Range<u64>,
        who: Who,
    ) -> Result<(), FsError> {
        loop {
            let mut state = file.state.lock();
            if !file.record.lock().is_live || self.discard(shadow, file, &mut state)? {
                return Ok(());
            }
            self.take_back(file, &mut state, shadow.front(|front| front.fs.id()))?;
            self.clear_shared_end(file, &mut state)?;
            let rest = pages.start..pages.end.min(state.pages);
            let Some((runs, next)) = self.begin_store(file, rest)? else {
                return Ok(());
            };
            self.store_runs(shadow, file, &mut state, &runs, who)?;
            pages.start = next;
        }
    }
}
