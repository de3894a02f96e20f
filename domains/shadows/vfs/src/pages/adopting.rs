//! Pages that the instance before has left.
//!
//! It may have died anywhere. What holds then of a live file: its pages that are not clean, and its
//! length as it was noted. Clean pages go, since nobody knows whether the file was just being
//! changed beside them; who needs one has it loaded again, from a file system that has everything.
//! Programs that have it mapped may write to a page just now that the instance before has prepared:
//! then it is not clean.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use domain_rt::log;
use interfaces::{FsError, PageKind};
use redo::Action;

use super::file::{File, Record, State};
use super::living::key;
use super::{CUT, PAGE, Pages, memory_error};
use crate::kept::LeftFile;
use crate::shadow::Shadow;

impl Pages {
    /// Goes on with what was left. Nobody else does anything yet.
    ///
    /// # Errors
    /// The file system's; no memory.
    pub fn adopt(
        &self,
        shadow: &Shadow,
        files: impl IntoIterator<Item = LeftFile>,
        is_lost: bool,
    ) -> Result<(), FsError> {
        self.is_lost.store(is_lost, Ordering::Relaxed);
        let (mut known, mut live) = (0, 0);
        for left in files {
            let (place, is_live, inode) = (left.place, left.note.is_live, left.note.inode);
            match self.adopt_file(shadow, left) {
                Ok(()) => {
                    known += 1;
                    live += u32::from(is_live);
                }
                Err(FsError::NotFound) => {
                    log!("inode {inode} has pages and is not there");
                    if let Some(kept) = &self.kept {
                        kept.leave(place);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let dirty = self.dirty.load(Ordering::Relaxed);
        log!("{known} files are known again, {live} of them with {dirty} pages to be stored");
        Ok(())
    }

    fn adopt_file(&self, shadow: &Shadow, left: LeftFile) -> Result<(), FsError> {
        let LeftFile { place, owner, note } = left;
        let mut file = File::of(owner, note.inode)?;
        file.kept = self.kept.clone().map(|kept| (kept, place));
        file.is_lost.store(note.is_lost, Ordering::Relaxed);
        file.is_torn.store(note.is_live, Ordering::Relaxed);
        let mut state = State {
            pages: file.owner.info()?.limit,
            ..State::default()
        };
        let size = note.size;
        *file.record.lock() = Record {
            size,
            modified: note.modified,
            is_live: note.is_live,
            is_shared: note.is_shared,
        };
        if note.is_live {
            self.shrink_to(shadow, note.inode, size)?;
            file.set_pages(&mut state, size.div_ceil(PAGE))?;
            let dirty = file.keep_dirty(state.pages)?;
            self.count_dirty(&mut state, dirty);
            self.clear_behind(&file, &mut state, size)?;
            file.set_current(&mut state, true);
            shadow.count_hold(note.inode);
        } else {
            file.cut(0, state.pages)?;
        }
        self.there
            .fetch_add(file.owner.info()?.pages, Ordering::Relaxed);
        *file.state.lock() = state;
        let file = Arc::new(file);
        if note.is_live {
            self.keeper.lock().live.insert(key(&file), file.clone());
        }
        self.take_in(shadow, file);
        Ok(())
    }

    /// Knows a file from now on. There may be two of an inode where one was just being forgotten.
    fn take_in(&self, shadow: &Shadow, file: Arc<File>) {
        let Record {
            is_live, is_shared, ..
        } = *file.record.lock();
        let other = self.known(file.inode).map(|other| *other.record.lock());
        if other.is_some_and(|other| !is_live && (other.is_live || !is_shared)) {
            return;
        }
        if is_shared {
            shadow.count_hold(file.inode);
            file.state.lock().is_left_over = true;
        }
        let replaced = self.files.lock().insert(file.inode, file);
        if let Some(replaced) = replaced
            && replaced.state.lock().is_left_over
        {
            self.release(shadow, replaced.inode);
        }
    }

    /// Where a file was being made longer or shorter, the file system learns what was noted.
    fn shrink_to(&self, shadow: &Shadow, inode: u64, size: u64) -> Result<(), FsError> {
        let there = shadow.ask(inode, |instance, real| instance.fs().metadata(real))?;
        if there.size > size {
            let cut = Action::Truncate { size };
            shadow.engine().change_now(shadow, cut, [inode; 2])?;
        }
        Ok(())
    }
}

impl File {
    /// Takes all pages away but those that are to be stored, which are dirty then; how many.
    fn keep_dirty(&self, pages: u64) -> Result<u64, FsError> {
        let mut from = 0;
        while from < pages {
            let count = CUT.min(pages - from);
            // In place of a cut: a program may have a page that it could write to until now.
            self.owner.evict(from, count).map_err(memory_error)?;
            from += count;
        }
        let (mut dirty, mut from) = (0, 0);
        loop {
            let next = self.owner.next(from, PageKind::Present);
            let Some(page) = next.map_err(memory_error)?.filter(|page| *page < pages) else {
                return Ok(dirty);
            };
            let tags = self.owner.tags(page).map_err(memory_error)?;
            if tags.dirty || tags.writeback {
                // What was being stored, if it was.
                self.owner.redo(page, 1).map_err(memory_error)?;
                dirty += 1;
            } else {
                // Somebody reads it just now.
                self.cut(page, page + 1)?;
            }
            from = page + 1;
        }
    }
}
