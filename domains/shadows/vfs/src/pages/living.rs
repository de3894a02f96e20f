//! Which files are live, and the thread that stores what nobody asks for.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use domain_rt::sync::Wait;
use domain_rt::{log, time};
use gate::Passage;
use interfaces::{FsError, PageKind};
use redo::Host;

use super::file::{File, Record, State};
use super::loading::ALL;
use super::storing::Who;
use super::{Pages, memory_error};
use crate::shadow::Shadow;

/// How long content is in pages only, in nanoseconds.
const DELAY: u64 = 1_000_000_000;

/// What the keeper waits for.
#[derive(Default)]
pub struct Keeper {
    /// Files that are live. There may be two of an inode, where one is just being forgotten.
    pub(super) live: BTreeMap<(u64, usize), Arc<File>>,
    /// Somebody does not want it to wait longer.
    is_urgent: bool,
}

/// Where a file is among those that are live.
pub(super) fn key(file: &File) -> (u64, usize) {
    (file.inode, core::ptr::from_ref(file).addr())
}

/// Whether somebody may write to a file through mappings at any moment.
fn is_in_use(shadow: &Shadow, file: &File) -> bool {
    let record = *file.record.lock();
    record.is_shared && shadow.front(|front| front.is_shared(file.inode))
}

impl Pages {
    /// A file, whose lock is held, has something that may not be on the disk from now on.
    ///
    /// # Errors
    /// No memory: then it is not live.
    pub(super) fn enliven(&self, shadow: &Shadow, file: &Arc<File>) -> Result<(), FsError> {
        if file.record.lock().is_live {
            return Ok(());
        }
        shadow.count_hold(file.inode);
        let noted = file.set_record(|record| record.is_live = true);
        if noted.is_err() {
            self.release(shadow, file.inode);
            return noted;
        }
        self.keeper.lock().live.insert(key(file), file.clone());
        self.called.notify_one();
        Ok(())
    }

    /// The file, whose lock is held, is live no more if all of it is on the disk.
    pub(super) fn end_life(
        &self,
        shadow: &Shadow,
        file: &File,
        state: &mut State,
    ) -> Result<(), FsError> {
        let is_live = file.record.lock().is_live;
        if !is_live || !state.stored.is_empty() || is_in_use(shadow, file) {
            return Ok(());
        }
        let next = file.owner.next(0, PageKind::Dirty);
        if next.map_err(memory_error)?.is_none() {
            self.stop_life(shadow, file, state);
        }
        Ok(())
    }

    pub(super) fn stop_life(&self, shadow: &Shadow, file: &File, state: &mut State) {
        let is_shared = is_in_use(shadow, file);
        self.ends.fetch_add(1, Ordering::Release);
        self.dirty.fetch_sub(state.dirty, Ordering::Relaxed);
        state.dirty = 0;
        state.stored.clear();
        // If that is not noted, the next instance finds out that nothing is to be stored.
        let end = |record: &mut Record| (record.is_live, record.is_shared) = (false, is_shared);
        let _ = file.set_record(end);
        end(&mut file.record.lock());
        let live = self.keeper.lock().live.remove(&key(file));
        drop(live);
        self.release(shadow, file.inode);
    }

    /// A file was forgotten.
    pub(super) fn end_forgotten(&self, shadow: &Shadow, file: &File) {
        if !file.record.lock().is_live {
            return;
        }
        let mut state = file.state.lock();
        if file.record.lock().is_live {
            self.stop_life(shadow, file, &mut state);
        }
    }

    /// Drops what a file has that nobody can reach any more; whether it is one.
    pub(super) fn discard(
        &self,
        shadow: &Shadow,
        file: &File,
        state: &mut State,
    ) -> Result<bool, FsError> {
        if !shadow.front(|front| front.is_left(file.inode)) {
            return Ok(false);
        }
        let alone = file.alone(state, ALL)?;
        file.cut(0, state.pages)?;
        file.set_current(state, false);
        drop(alone);
        self.stop_life(shadow, file, state);
        Ok(true)
    }

    /// Names were removed: what only this domain still holds goes, so that its blocks are free.
    pub fn discard_removed(&self, shadow: &Shadow) {
        if self.is_at_rest() {
            return;
        }
        let mut from = Some(0);
        let next = |from| shadow.front(|front| front.next_left(from));
        while let Some(inode) = from.and_then(next) {
            from = inode.checked_add(1);
            let Some(file) = self.known(inode) else {
                continue;
            };
            let mut state = file.state.lock();
            let is_live = file.record.lock().is_live;
            if is_live && let Err(error) = self.discard(shadow, &file, &mut state) {
                log!("inode {inode} stays for now: {error:?}");
            }
        }
    }

    /// Ends a hold of an inode. The last one removes what has no name.
    pub fn release(&self, shadow: &Shadow, inode: u64) {
        self.release_of(shadow, inode, None);
    }

    /// As [`release`](Self::release), of a hold that this client had.
    pub fn release_of(&self, shadow: &Shadow, inode: u64, client: Option<usize>) {
        let released = shadow.front(|front| {
            if let Some(client) = client {
                front.leave(inode, client);
            }
            Some((front.release(inode)?, front.ids.is_trivial()))
        });
        let Some((remains, is_trivial)) = released else {
            return;
        };
        self.end_sharing(shadow, inode);
        // Its number may lead to another one from now on, or when it is removed below.
        if !is_trivial || remains.orphan.is_some() {
            self.forget_unheld(shadow, inode);
        }
        drop(remains.kept);
        let Some(number) = remains.orphan else {
            return;
        };
        if let Err(error) = shadow.engine().release_hidden(shadow, inode, number) {
            log!("inode {inode} has no name and could not be removed: {error:?}");
        }
    }

    /// Nobody holds an inode any more, so nobody has it mapped.
    fn end_sharing(&self, shadow: &Shadow, inode: u64) {
        let Some(file) = self.known(inode) else {
            return;
        };
        let is_shared = file.record.lock().is_shared;
        // Who ends a program must not wait for a file system. What stays noted so costs a hold, if
        // this domain dies.
        if is_shared
            && let Some(_state) = file.state.try_lock()
            && !shadow.front(|front| front.is_held(inode))
        {
            let _ = file.set_record(|record| record.is_shared = false);
        }
    }

    /// Whether something may have to be stored, or was lost.
    pub fn is_used(&self) -> bool {
        !self.is_at_rest() || self.is_lost.load(Ordering::Relaxed)
    }

    /// Whether there is nothing that may not be on the disk.
    pub(super) fn is_at_rest(&self) -> bool {
        self.keeper.lock().live.is_empty()
    }

    /// Has the keeper begin at once.
    pub(super) fn call_keeper(&self) {
        self.keeper.lock().is_urgent = true;
        self.called.notify_one();
    }

    /// The body of the thread that stores what nobody asks for.
    pub fn keep_for_ever(&self, shadow: &Shadow, passage: &Passage) {
        let mut has_failed = false;
        loop {
            self.wait_for_work();
            if !self.has_work(shadow) {
                continue;
            }
            let Ok(pass) = passage.enter() else {
                continue;
            };
            match self.bring_to_disk(shadow, Who::Keeper) {
                Ok(()) => has_failed = false,
                Err(error) => {
                    // Said once for a row of failures; the next round tries again.
                    if !has_failed {
                        log!("storing pages: {error:?}");
                    }
                    has_failed = true;
                    drop(pass);
                    time::sleep(DELAY);
                }
            }
        }
    }

    /// Whether there is more to be done than to wait for those who have files mapped.
    fn has_work(&self, shadow: &Shadow) -> bool {
        let is_due = |file: &File| {
            let state = file.state.lock();
            let is_clean = || matches!(file.owner.next(0, PageKind::Dirty), Ok(None));
            !(is_in_use(shadow, file) && state.stored.is_empty() && is_clean())
        };
        let live = self.concerned(Who::Everything);
        live.map_or(true, |live| live.iter().any(|file| is_due(file)))
    }

    fn wait_for_work(&self) {
        let mut keeper = self.keeper.lock();
        while keeper.live.is_empty() {
            (keeper, _) = self.called.wait(keeper);
        }
        let deadline = time::now() + DELAY;
        let mut wait = Wait::Woken;
        while !keeper.is_urgent && wait == Wait::Woken {
            (keeper, wait) = self.called.wait_until(keeper, deadline);
        }
        keeper.is_urgent = false;
    }
}
