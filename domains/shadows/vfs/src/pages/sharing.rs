//! Pages that programs write to through mappings which they share.
//!
//! # What a write costs, and when
//! A program meets a fault where it writes to a page that is clean. Whoever answers it has the page
//! prepared here first: then its room on the disk is promised, and if there is none, the program is
//! told at that moment, not whoever stores. After that the kernel lets the program write, and the
//! page is dirty, until it is stored: then the next write is a fault again.
//!
//! # The time of change
//! It is moved at that fault, so what a program writes costs nothing after it. A page that a write
//! has made dirty is met by a fault, too, the first time. Who sets the time has all pages met by
//! one, so that what is written later counts. What is written after a write, to a page that was
//! met by a fault before that, has the time of the write, as on Linux.
//!
//! # Behind the end
//! A program may write to all of the last page. What is behind the file's end there is cleared
//! before the page is stored, and before the file becomes longer. What a program writes just then
//! may be on the disk, behind the end, where it means nothing.
//!
//! # When this domain dies
//! The next instance knows by the notes which files are mapped so. It counts each as held until the
//! first of those comes back who have it mapped, and asks for a way to change its pages again: till
//! then nobody may conclude that there is nothing to store, and the object must stay the same.

use alloc::sync::Arc;
use core::mem::take;

use domain_rt::time;
use interfaces::{FsError, Handle, RVec, VmoView};
use redo::{Action, Outcome};

use super::file::{File, Record, SHARED, State};
use super::writing::LONGEST;
use super::{PAGE, Pages, memory_error};
use crate::shadow::Shadow;

/// How often a page is populated that goes before it has its room.
const ATTEMPTS: u32 = 8;

impl Pages {
    /// A way to the pages of a file that may be written to.
    ///
    /// # Errors
    /// The file system's; it is read-only.
    pub fn view_to_change(
        &self,
        shadow: &Shadow,
        inode: u64,
    ) -> Result<Handle<dyn VmoView>, FsError> {
        let of = shadow.ask(shadow.root(), |instance, _| instance.fs().statistics())?;
        if of.read_only {
            return Err(FsError::ReadOnly);
        }
        let file = self.file(shadow, inode)?;
        let locked = file.lock(shadow);
        match locked {
            Ok(mut state) => {
                let view = file.owner.view(SHARED).map_err(memory_error)?;
                file.set_record(|record| record.is_shared = true)?;
                let was_left_over = take(&mut state.is_left_over);
                drop(state);
                if was_left_over {
                    self.release(shadow, inode);
                }
                Ok(view)
            }
            Err(error) => {
                self.forget_no_file(shadow, inode, &error);
                Err(error)
            }
        }
    }

    /// Has a page ready to be written to; `false`: it is behind the end.
    ///
    /// # Errors
    /// The file system's, also that there is no room; no memory; nobody has a way to write to it.
    pub fn prepare(&self, shadow: &Shadow, inode: u64, page: u64) -> Result<bool, FsError> {
        if page >= LONGEST / PAGE {
            return Err(FsError::TooLarge);
        }
        self.make_way(shadow, 1)?;
        let file = self.file(shadow, inode)?;
        for _ in 0..ATTEMPTS {
            if self.populate_file(shadow, &file, page, 1)? == 0 {
                return Ok(false);
            }
            if let Some(is_there) = self.prepare_populated(shadow, &file, page)? {
                return Ok(is_there);
            }
        }
        Err(FsError::NoSpace)
    }

    /// As [`prepare`](Self::prepare); `None` if there must be room on the disk for the page, which
    /// has gone meanwhile.
    fn prepare_populated(
        &self,
        shadow: &Shadow,
        file: &Arc<File>,
        page: u64,
    ) -> Result<Option<bool>, FsError> {
        let inode = file.inode;
        let mut state = file.lock(shadow)?;
        let is_known = |known: Arc<File>| Arc::ptr_eq(&known, file);
        if !file.record.lock().is_shared || !self.known(inode).is_some_and(is_known) {
            return Err(FsError::Invalid);
        }
        if page >= state.pages {
            return Ok(Some(false));
        }
        let tags = file.owner.tags(page).map_err(memory_error)?;
        if tags.dirty {
            // By a write, or by another program: it has its room, and the file the time of that.
            file.set_record(|record| record.modified = time::wall_coarse())?;
            return Ok(Some(true));
        }
        // If it has gone, it may be there again by the time that the program writes.
        let is_there = tags.present && !tags.loading;
        if !self.may_take(shadow, 1)? {
            if !is_there {
                return Ok(None);
            }
            self.give_place(shadow, file, page)?;
        }
        self.enliven(shadow, file)?;
        // Who prepares what he never writes to makes the room look smaller, by a file at most.
        if state.dirty < state.pages {
            self.count_dirty(&mut state, 1);
        }
        file.set_record(|record| record.modified = time::wall_coarse())?;
        Ok(Some(true))
    }

    /// Has a program that writes to a page of a file, whose lock is held, meet a fault before.
    pub(super) fn await_faults(&self, file: &File, state: &mut State) -> Result<(), FsError> {
        if !file.record.lock().is_shared {
            return Ok(());
        }
        self.redo_written(file, state, &(0..u64::MAX))?;
        let mut from = 0;
        while from < state.pages {
            let cleaned = file.owner.clean(from, state.pages - from);
            let Some((first, count)) = cleaned.map_err(memory_error)? else {
                break;
            };
            // They are dirty still, and were counted.
            let again = file.owner.redo(first, count);
            again.map_err(memory_error)?;
            from = first + count;
        }
        Ok(())
    }

    /// Has the file system give a page its place on the disk, by what is in it, so that it says
    /// whether there is room. The page is stored again later, and what was written so is done again
    /// before, so the order does not matter.
    fn give_place(&self, shadow: &Shadow, file: &File, page: u64) -> Result<(), FsError> {
        let offset = page * PAGE;
        let length = file.record.lock().size.saturating_sub(offset).min(PAGE);
        let buffer = RVec::zeroed(length as usize)?;
        let (data, read) = file.view.read(offset, buffer).map_err(memory_error)?;
        if read != length {
            return Err(FsError::Device);
        }
        let write = Action::Write { offset, data };
        let written = shadow.engine().change_now(shadow, write, [file.inode; 2])?;
        match written {
            Outcome::Wrote(count) if count == length => Ok(()),
            _ => Err(FsError::NoSpace),
        }
    }

    /// As [`clear_behind_end`](Self::clear_behind_end), for who has no pages alone.
    pub(super) fn clear_shared_end(&self, file: &File, state: &mut State) -> Result<(), FsError> {
        let Record {
            size, is_shared, ..
        } = *file.record.lock();
        if !is_shared {
            return Ok(());
        }
        let _alone = file.alone(state, size / PAGE..u64::MAX)?;
        self.clear_behind_end(file, state)
    }

    /// Clears what programs have written behind the end of a file, in the page with its end; it and
    /// what follows are the caller's alone.
    pub(super) fn clear_behind_end(&self, file: &File, state: &mut State) -> Result<(), FsError> {
        let Record {
            size, is_shared, ..
        } = *file.record.lock();
        if !is_shared {
            return Ok(());
        }
        self.shorten(file, state, size)
    }
}
