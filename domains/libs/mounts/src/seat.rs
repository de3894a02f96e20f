//! An inode that is kept for as long as something has it open, over restarts of its file system.

use domain_rt::sync::Mutex;
use interfaces::{Failure, FileKind, FsError, Handle, Hold};

use crate::known::Known;
use crate::mount::Live;

/// A hold, which passes from instance to instance.
///
/// After a restart the hold is taken again by inode number, if there still is an inode of the same
/// kind. If the new instance does not go on where the one before was, and something was written
/// through this before the restart, part of it may be lost: the first use afterwards says so with
/// `FsError::Restarted`, and the next one works.
pub struct Seat {
    inode: u64,
    kind: FileKind,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who gave the hold.
    by: Option<By>,
    /// `None`: not yet; or that instance has no such inode.
    hold: Option<Handle<dyn Hold>>,
    /// Something was written through this and not synced since.
    written: bool,
    /// Pages of it may be mapped to be written to.
    shared: bool,
}

/// An instance.
#[derive(Clone, Copy)]
struct By {
    id: u32,
    lineage: Option<u64>,
}

impl Seat {
    pub(crate) fn new(inode: u64, kind: FileKind) -> Self {
        Seat {
            inode,
            kind,
            state: Mutex::default(),
        }
    }

    /// The inode that is held.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Takes a hold that `live` has given.
    pub(crate) fn sit(&self, live: &Live, hold: Handle<dyn Hold>) {
        let old = self.put(live, Some(hold)).0;
        drop(old);
    }

    fn put(
        &self,
        live: &Live,
        hold: Option<Handle<dyn Hold>>,
    ) -> (Option<Handle<dyn Hold>>, Option<By>) {
        let by = By {
            id: live.id,
            lineage: live.lineage,
        };
        let mut state = self.state.lock();
        let before = state.by.replace(by);
        (core::mem::replace(&mut state.hold, hold), before)
    }

    /// Whether the hold is of another instance. There is none where it is not taken yet.
    pub(crate) fn is_of_another(&self, live: &Live) -> bool {
        self.state.lock().by.is_some_and(|by| by.id != live.id)
    }

    /// Takes hold again by an instance that goes on. What has gone wrong is seen by who uses it.
    pub(crate) fn sit_again(&self, live: &Live) {
        let hold = self.take(live).ok();
        let old = self.put(live, hold);
        drop(old);
    }

    fn take(&self, live: &Live) -> Result<Handle<dyn Hold>, FsError> {
        if live.fs.metadata(self.inode)?.kind != self.kind {
            return Err(FsError::NotFound);
        }
        let hold = live.hold(Known::held(self.inode))?;
        let state = self.state.lock();
        let is_same = state.by.is_some_and(|by| live.goes_on(by.lineage));
        let is_shared = state.shared && is_same;
        drop(state);
        // What is mapped is the same object. Who serves has to know that it is mapped still.
        if is_shared
            && let Err(error) = live.fs.pages_to_change(self.inode)
            && error.is_gone()
        {
            return Err(error);
        }
        Ok(hold)
    }

    /// Takes hold again if the instance that gave the hold is not the one that serves now.
    ///
    /// # Errors
    /// The file system's; `NotFound`: it has no such inode any more. `Restarted`, once: it does not
    /// go on where the one before was, and something was written that may be lost.
    pub(crate) fn refresh(&self, live: &Live, is_unchanging: bool) -> Result<(), FsError> {
        let state = self.state.lock();
        if state.hold.is_some() && state.by.is_some_and(|by| by.id == live.id) {
            return Ok(());
        }
        drop(state);
        let hold = self.take(live)?;
        let (old, before) = self.put(live, Some(hold));
        drop(old);
        if before.is_some_and(|by| live.goes_on(by.lineage)) {
            return Ok(());
        }
        let written = core::mem::take(&mut self.state.lock().written);
        match written && !is_unchanging {
            true => Err(FsError::Restarted),
            false => Ok(()),
        }
    }

    /// Notes that something was written through this.
    pub fn note_written(&self) {
        self.state.lock().written = true;
    }

    /// Notes that pages of it may be mapped to be written to, before there is a way to them.
    pub fn note_shared(&self) {
        self.state.lock().shared = true;
    }

    /// Notes that all of it would survive a power cut.
    pub fn note_flushed(&self) {
        self.state.lock().written = false;
    }
}
