//! Changes of files that do not go through pages: beside them, and in their stead.

use alloc::sync::Arc;

use domain_rt::time;
use interfaces::{FsError, PageKind, RVec};

use super::file::{File, State};
use super::loading::ALL;
use super::{PAGE, Pages, memory_error};
use crate::shadow::Shadow;

impl Pages {
    /// Has a file changed the old way, by `change`: nothing of it is live meanwhile. It says where
    /// it has written, and how many bytes.
    ///
    /// # Errors
    /// Those of `change`; [`FsError::Down`] if the file is written to all the time.
    pub fn write_old_way(
        &self,
        shadow: &Shadow,
        inode: u64,
        change: impl FnOnce() -> Result<(u64, u64), FsError>,
    ) -> Result<(u64, u64), FsError> {
        for _ in 0..respawn::ATTEMPTS {
            let Some(file) = self.known(inode) else {
                let _old = self.old.lock();
                match self.known(inode) {
                    Some(_) => continue,
                    None => return change(),
                }
            };
            let mut state = file.state.lock();
            let record = *file.record.lock();
            // What is mapped stays live; then it is enough that there is nothing to store.
            if record.is_live && !(record.is_shared && self.is_stored(&file, &state)?) {
                drop(state);
                self.commit(shadow)?;
                continue;
            }
            let alone = file.alone(&state, ALL)?;
            self.clear_behind_end(&file, &mut state)?;
            let written = change();
            if record.is_live && written.is_ok() {
                file.record.lock().modified = time::wall_coarse();
            }
            // Of one that has failed nobody knows where it was.
            let (offset, count) = written.as_ref().map_or((0, u64::MAX), |done| *done);
            let end = offset.saturating_add(count).div_ceil(PAGE);
            file.cut(offset / PAGE, end.min(state.pages))?;
            if end > state.pages || written.is_err() {
                file.set_current(&mut state, false);
            }
            if count > 0 && state.is_current {
                let size = &mut file.record.lock().size;
                *size = (*size).max(offset + count);
            }
            if record.is_live && !state.is_current {
                // What a live file is, nobody else is asked.
                drop(alone);
                drop(state);
                drop(file.lock(shadow)?);
            }
            return written;
        }
        Err(FsError::Down)
    }

    /// Has the length of a file set, by `change`.
    ///
    /// # Errors
    /// Those of `change`, and of the pages.
    pub fn truncate(
        &self,
        shadow: &Shadow,
        inode: u64,
        size: u64,
        change: impl FnOnce() -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let Some(file) = self.known(inode) else {
            let _old = self.old.lock();
            return match self.known(inode) {
                Some(file) => self.truncate_known(shadow, &file, size, change),
                None => change(),
            };
        };
        self.truncate_known(shadow, &file, size, change)
    }

    fn truncate_known(
        &self,
        shadow: &Shadow,
        file: &Arc<File>,
        size: u64,
        change: impl FnOnce() -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let mut state = file.state.lock();
        let _alone = file.alone(&state, ALL)?;
        if size > file.record.lock().size {
            self.clear_behind_end(file, &mut state)?;
        }
        let record = *file.record.lock();
        if record.is_live && size < record.size {
            // First, so that the next instance of this domain finishes what this one has begun.
            file.set_record(|record| record.size = size)?;
        }
        let cut = change();
        if record.is_live && cut.is_err() {
            file.set_record(|now| now.size = record.size)?;
        }
        if !record.is_live {
            // In what is the last page now there are other bytes behind the end.
            file.cut(size / PAGE, state.pages)?;
            file.set_current(&mut state, false);
            return cut;
        }
        cut?;
        if size < record.size {
            self.shorten(file, &mut state, size)?;
        }
        file.set_pages(&mut state, size.div_ceil(PAGE))?;
        file.set_record(|record| (record.size, record.modified) = (size, time::wall_coarse()))?;
        self.end_life(shadow, file, &mut state)
    }

    /// Whether nothing of a live file has to be stored.
    fn is_stored(&self, file: &File, state: &State) -> Result<bool, FsError> {
        let next = file.owner.next(0, PageKind::Dirty).map_err(memory_error)?;
        Ok(next.is_none() && state.stored.is_empty())
    }

    /// Takes what a live file has from `size` on, where all is the caller's alone.
    pub(super) fn shorten(&self, file: &File, state: &mut State, size: u64) -> Result<(), FsError> {
        let keep = size.div_ceil(PAGE);
        file.cut(keep, state.pages)?;
        for stored in &mut state.stored {
            stored.count = stored.count.min(keep.saturating_sub(stored.first));
        }
        state.stored.retain(|stored| stored.count > 0);
        // At most as many are left.
        let gone = state.dirty.saturating_sub(keep);
        self.count_stored(state, gone);
        self.clear_behind(file, state, size)
    }

    /// Clears what the last page of a live file has behind `size`, which is the caller's alone.
    pub(super) fn clear_behind(
        &self,
        file: &File,
        state: &mut State,
        size: u64,
    ) -> Result<(), FsError> {
        if size.is_multiple_of(PAGE) {
            return Ok(());
        }
        let keep = size.div_ceil(PAGE);
        let tags = file.owner.tags(size / PAGE).map_err(memory_error)?;
        if tags.present && !tags.dirty && !tags.writeback {
            // Not what a program has written to since.
            file.owner.evict(size / PAGE, 1).map_err(memory_error)?;
        }
        let tags = file.owner.tags(size / PAGE).map_err(memory_error)?;
        if tags.present && !tags.dirty && !tags.writeback {
            return file.cut(size / PAGE, keep);
        }
        if tags.present {
            let zeros = RVec::filled(0, (PAGE - size % PAGE) as usize)?;
            file.view.write(size, &zeros).map_err(memory_error)?;
            self.count_dirty(state, u64::from(!tags.dirty));
        }
        Ok(())
    }

    /// Has a time of change set, by `change`.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn set_time(
        &self,
        inode: u64,
        modified: u64,
        change: impl FnOnce() -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let Some(file) = self.known(inode) else {
            return change();
        };
        let mut state = file.state.lock();
        change()?;
        self.await_faults(&file, &mut state)?;
        file.set_record(|record| record.modified = modified)
    }
}
