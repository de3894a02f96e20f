//! Storing: dirty pages go to the file system, and are clean when it has committed them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::take;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use domain_rt::log;
use domain_rt::sync::MutexGuard;
use interfaces::{FsError, PageKind, PageRun, RVec, RpcError};
use redo::{Host, Target};

use super::file::{File, State, Stored};
use super::{Pages, memory_error};
use crate::shadow::Shadow;

/// Pages that are stored in one call.
const MOST: u64 = 256;
/// How often everything is stored until nothing is left that was there at the beginning.
const ROUNDS: u32 = 4;
/// Pages that the file system gives places in one transaction, wherever they are.
const AT_ONCE: u64 = 16;

/// Who wants it stored. All but the keeper are told if it fails, and may be ended meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Who wants everything on the disk.
    Everything,
    /// Who wants this inode there.
    Inode(u64),
    /// Who needs the memory.
    Writer,
    /// The thread that stores what nobody asks for. What it cannot store is lost.
    Keeper,
}

/// Whether trying again later makes no sense.
fn is_final(error: &FsError) -> bool {
    !matches!(error, FsError::Rpc(_) | FsError::Down | FsError::Restarted)
}

impl Pages {
    /// Returns when everything that was written is on the disk.
    ///
    /// # Errors
    /// The file system's; content was lost since somebody was told here last.
    pub fn commit(&self, shadow: &Shadow) -> Result<(), FsError> {
        self.bring_to_disk(shadow, Who::Everything)?;
        let told = tell(&self.is_lost);
        if told.is_err() {
            self.note_lost(false);
        }
        told
    }

    /// Returns when what was written to a file is on the disk.
    ///
    /// # Errors
    /// The file system's; content of it was lost since somebody was told here last.
    pub fn commit_inode(&self, shadow: &Shadow, inode: u64) -> Result<(), FsError> {
        self.bring_to_disk(shadow, Who::Inode(inode))?;
        self.tell_loss(inode)
    }

    /// Fails, once, if content of a file is lost.
    pub(super) fn tell_loss(&self, inode: u64) -> Result<(), FsError> {
        let Some(file) = self.known(inode) else {
            return Ok(());
        };
        let told = tell(&file.is_lost);
        if told.is_err() {
            file.note_again();
        }
        told
    }

    pub(super) fn bring_to_disk(&self, shadow: &Shadow, who: Who) -> Result<(), FsError> {
        let mut result = Ok(());
        for _ in 0..ROUNDS {
            let stored = self.store_all(shadow, who);
            // Before the commit begins; and what came in the log before these stores is there.
            let upto = self.stores.load(Ordering::Acquire);
            let by = shadow.commit()?;
            let is_behind = match by {
                Some(by) => self.note_commit(shadow, who, upto, by)?,
                None => true,
            };
            match stored {
                // The others have been stored; this one may fail for ever.
                Err(error) => return Err(error),
                Ok(has_more) if !has_more && !is_behind => return Ok(()),
                // What was written before is done after the second round; the rest came since.
                Ok(_) if is_behind => result = Err(FsError::Down),
                Ok(_) => result = Ok(()),
            }
        }
        result
    }

    /// The live files that somebody wants stored. Those that are torn are among them, since the
    /// file system commits all that it has. No others: storing takes long, and a file that is
    /// forgotten has its place with `keep` until nobody has a way to it any more.
    pub(super) fn concerned(&self, who: Who) -> Result<Vec<Arc<File>>, FsError> {
        let is_concerned = |file: &File| match who {
            Who::Inode(inode) => file.inode == inode || file.is_torn.load(Ordering::Relaxed),
            _ => true,
        };
        let mut some = Vec::new();
        let keeper = self.keeper.lock();
        some.try_reserve_exact(keeper.live.len())
            .map_err(|_| RpcError::NoMemory)?;
        let live = keeper.live.values();
        some.extend(live.filter(|file| is_concerned(file)).cloned());
        Ok(some)
    }

    /// Stores what is dirty; whether something is left that waits for a commit.
    fn store_all(&self, shadow: &Shadow, who: Who) -> Result<bool, FsError> {
        if self.is_at_rest() {
            return Ok(false);
        }
        let (mut has_more, mut result) = (false, Ok(()));
        for file in self.concerned(who)? {
            if !file.record.lock().is_live {
                continue;
            }
            let is_others = matches!(who, Who::Inode(inode) if inode != file.inode);
            let who = if is_others { Who::Writer } else { who };
            match self.store_file(shadow, &file, who) {
                Ok(more) => has_more |= more,
                Err(_) if is_others => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
        result.map(|()| has_more)
    }

    /// Stores the dirty pages of a file. The lock is given back now and then.
    pub(super) fn store_file(
        &self,
        shadow: &Shadow,
        file: &File,
        who: Who,
    ) -> Result<bool, FsError> {
        let mut state = file.state.lock();
        if !file.record.lock().is_live || self.discard(shadow, file, &mut state)? {
            return Ok(false);
        }
        self.take_back(file, &mut state, shadow.front(|front| front.fs.id()))?;
        self.clear_shared_end(file, &mut state)?;
        let had_stored = !state.stored.is_empty();
        let mut from = 0;
        while let Some((runs, next)) = self.begin_store(file, from..state.pages)? {
            if !is_all(&state, &runs) {
                file.is_torn.store(true, Ordering::Relaxed);
            }
            self.store_runs(shadow, file, &mut state, &runs, who)?;
            from = next;
            drop(state);
            state = file.state.lock();
        }
        // Others may have written where this has been already.
        let is_dirty = state.dirty > 0 && has_any(file)?;
        file.is_torn.fetch_and(is_dirty, Ordering::Relaxed);
        // What was stored before and written to since waits for the commit.
        Ok(had_stored && is_dirty)
    }

    /// What others than instance `by` had stored is dirty again; whether there was any.
    pub(super) fn take_back(
        &self,
        file: &File,
        state: &mut State,
        by: u32,
    ) -> Result<bool, FsError> {
        let mut has_any = false;
        while let Some(at) = state.stored.iter().position(|stored| stored.by != by) {
            let stored = state.stored.swap_remove(at);
            self.redo(file, state, stored.first, stored.count)?;
            has_any = true;
        }
        Ok(has_any)
    }

    pub(super) fn redo(
        &self,
        file: &File,
        state: &mut State,
        first: u64,
        count: u64,
    ) -> Result<(), FsError> {
        let again = file.owner.redo(first, count).map_err(memory_error)?;
        self.count_dirty(state, again);
        Ok(())
    }

    /// So many pages more are dirty.
    pub(super) fn count_dirty(&self, state: &mut State, pages: u64) {
        state.dirty += pages;
        self.dirty.fetch_add(pages, Ordering::Relaxed);
    }

    /// So many pages are dirty no more.
    pub(super) fn count_stored(&self, state: &mut State, pages: u64) {
        let pages = pages.min(state.dirty);
        state.dirty -= pages;
        self.dirty.fetch_sub(pages, Ordering::Relaxed);
    }

    /// Dirty ones of some pages, which are being written back from now on, and where to go on.
    pub(super) fn begin_store(
        &self,
        file: &File,
        pages: Range<u64>,
    ) -> Result<Option<(Vec<PageRun>, u64)>, FsError> {
        let (mut runs, mut next, mut total) = (Vec::new(), pages.start, 0);
        // Room first: what is begun has to be kept.
        runs.try_reserve_exact(MOST as usize)
            .map_err(|_| RpcError::NoMemory)?;
        while total < MOST && next < pages.end {
            let begun = file.owner.clean(next, pages.end - next);
            let Some((first, count)) = begun.map_err(memory_error)? else {
                next = pages.end;
                break;
            };
            runs.push(PageRun { first, count });
            total += count;
            next = first + count;
        }
        Ok((!runs.is_empty()).then_some((runs, next)))
    }

    pub(super) fn store_runs(
        &self,
        shadow: &Shadow,
        file: &File,
        state: &mut MutexGuard<'_, State>,
        runs: &[PageRun],
        who: Who,
    ) -> Result<(), FsError> {
        let total = runs.iter().map(|run| run.count).sum();
        let mut done = 0;
        let (mut most, mut result) = (MOST, Ok(()));
        while done < total {
            match self.store_some(shadow, file, state, part(runs, done, most)?) {
                Ok(stored) => {
                    done += stored;
                    file.is_torn.fetch_or(done < total, Ordering::Relaxed);
                }
                Err(error) if !is_final(&error) || who != Who::Keeper => {
                    file.is_torn.store(true, Ordering::Relaxed);
                    if is_final(&error) {
                        state.note_told(who);
                    }
                    for run in part(runs, done, u64::MAX)? {
                        // Not counted as stored, so still counted as dirty.
                        file.owner
                            .redo(run.first, run.count)
                            .map_err(memory_error)?;
                    }
                    return Err(error);
                }
                // One page may be to blame.
                Err(_) if most > 1 => most = 1,
                Err(error) => {
                    result = Err(error);
                    self.give_up(file, state, &part(runs, done, 1)?)?;
                    done += 1;
                }
            }
        }
        if result.is_ok() {
            (state.told, state.told_all) = (false, false);
        }
        match result {
            Err(error) => {
                log!("inode {}: content is lost: {error:?}", file.inode);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Has the file system store pages; how many of them it did.
    fn store_some(
        &self,
        shadow: &Shadow,
        file: &File,
        state: &mut State,
        runs: Vec<PageRun>,
    ) -> Result<u64, FsError> {
        let list = RVec::from_slice(&runs)?;
        state
            .stored
            .try_reserve(runs.len())
            .map_err(|_| RpcError::NoMemory)?;
        let record = *file.record.lock();
        let answer = shadow.ask(file.inode, |instance, real| {
            let view = file.view.duplicate()?;
            let (end, modified) = (record.size, record.modified);
            let stored = instance.fs().store(real, &list, end, modified, view)?;
            Ok((stored, instance.id()))
        });
        // Length, time and places have changed, perhaps also if it says that it failed.
        shadow.front(|front| front.inodes.forget(file.inode));
        let (stored, by) = answer?;
        if stored == 0 {
            return Err(FsError::Device);
        }
        let serial = 1 + self.stores.fetch_add(1, Ordering::AcqRel);
        let mut left = stored;
        let mut total = 0;
        for run in runs {
            let count = run.count.min(left);
            if count > 0 {
                state.stored.push(Stored {
                    first: run.first,
                    count,
                    serial,
                    by,
                });
            }
            left -= count;
            total += count;
        }
        self.count_stored(state, total);
        Ok(total)
    }

    /// These pages cannot be stored: what is in them is lost when they go.
    fn give_up(&self, file: &File, state: &mut State, runs: &[PageRun]) -> Result<(), FsError> {
        for run in runs {
            let count = file.owner.commit(run.first, run.count);
            self.count_stored(state, count.map_err(memory_error)?);
        }
        let (told, told_all) = (take(&mut state.told), take(&mut state.told_all));
        file.is_lost.fetch_or(!told, Ordering::Relaxed);
        self.is_lost.fetch_or(!told_all, Ordering::Relaxed);
        self.note_lost(self.is_lost.load(Ordering::Relaxed));
        file.note_again();
        Ok(())
    }

    pub(super) fn note_lost(&self, is_lost: bool) {
        if let Some(kept) = &self.kept {
            kept.note_lost(is_lost);
        }
    }

    /// The first `upto` stores are committed by the instance `by`; whether something that concerns
    /// who asked has to be stored again, or waits for another commit.
    fn note_commit(&self, shadow: &Shadow, who: Who, upto: u64, by: u32) -> Result<bool, FsError> {
        if self.is_at_rest() {
            return Ok(false);
        }
        let mut is_behind = false;
        for file in self.concerned(who)? {
            if !file.record.lock().is_live {
                continue;
            }
            let mut state = file.state.lock();
            is_behind |= self.take_back(&file, &mut state, by)?;
            let is_covered = |stored: &Stored| stored.serial <= upto;
            while let Some(at) = state.stored.iter().position(is_covered) {
                let Stored { first, count, .. } = state.stored.swap_remove(at);
                file.owner.commit(first, count).map_err(memory_error)?;
            }
            self.end_life(shadow, &file, &mut state)?;
        }
        Ok(is_behind)
    }
}

/// Whether something of a file is dirty or stored. More may count as dirty than is.
fn has_any(file: &File) -> Result<bool, FsError> {
    let next = file.owner.next(0, PageKind::Dirty).map_err(memory_error)?;
    Ok(next.is_some())
}

/// Whether `runs`, which are being written back, are all that is dirty of a file, and the file
/// system gives all of them places at once. It may be so and not be seen.
fn is_all(state: &State, runs: &[PageRun]) -> bool {
    let pages: u64 = runs.iter().map(|run| run.count).sum();
    state.dirty <= pages && pages <= AT_ONCE
}

/// Fails, once, if content is lost.
fn tell(is_lost: &AtomicBool) -> Result<(), FsError> {
    match is_lost.swap(false, Ordering::Relaxed) {
        true => Err(FsError::Device),
        false => Ok(()),
    }
}

/// At most `most` pages of `runs`, without the first `done`.
fn part(runs: &[PageRun], mut done: u64, most: u64) -> Result<Vec<PageRun>, FsError> {
    let mut some = Vec::new();
    some.try_reserve_exact(runs.len())
        .map_err(|_| RpcError::NoMemory)?;
    let mut left = most;
    for run in runs {
        let skipped = done.min(run.count);
        done -= skipped;
        let count = left.min(run.count - skipped);
        left -= count;
        if count > 0 {
            let first = run.first + skipped;
            some.push(PageRun { first, count });
        }
    }
    Ok(some)
}
