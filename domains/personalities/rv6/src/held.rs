//! An inode that is kept for as long as something has it open, over restarts of its file system.

use alloc::sync::Arc;
use domain_rt::sync::Mutex;
use interfaces::{FsError, Handle, Hold};

use crate::mount::Live;
use crate::mount_table::InUse;
use crate::volumes::{Node, Volume, Volumes};

/// A node and the hold on its inode.
///
/// After a restart the hold is taken again by inode number, if there still is an inode of the same
/// kind. If something was written through this before the restart, part of it may be lost: the
/// first use afterwards says so with `FsError::Restarted`, and the next one works.
pub struct Held {
    node: Node,
    state: Mutex<State>,
    /// Keeps the file system mounted. Behind the hold, which goes first.
    _in_use: Option<InUse>,
}

struct State {
    /// The hold and the instance that gave it.
    hold: Option<(u32, Handle<dyn Hold>)>,
    /// Something was written through this and not synced since.
    written: bool,
}

impl Held {
    /// Takes hold of a node.
    ///
    /// # Errors
    /// The file system's.
    pub fn new(volumes: &Volumes, node: Node) -> Result<Self, FsError> {
        let (in_use, hold) = match node.volume {
            Volume::EMPTY => (None, None),
            volume => {
                let in_use = volumes.mounts.enter(volume)?;
                let hold = |live: &Live| Ok((live.id, live.fs.hold(node.inode)?));
                (Some(in_use), Some(volumes.ask(volume, hold)?))
            }
        };
        Ok(Held {
            node,
            state: Mutex::new(State {
                hold,
                written: false,
            }),
            _in_use: in_use,
        })
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Calls the file system, with the inode held by the instance that is called.
    ///
    /// # Errors
    /// The file system's; [`FsError::NotFound`] if a restart lost the inode.
    pub fn call<T>(
        &self,
        volumes: &Volumes,
        operation: impl FnOnce(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let live = volumes.live(self.node.volume)?;
        self.refresh(volumes, &live)?;
        let result = operation(&live);
        volumes.settle(self.node.volume, &live, result)
    }

    /// As [`call`](Self::call), and again where that makes sense; see [`Volumes::ask`].
    ///
    /// # Errors
    /// As there.
    pub fn ask<T>(
        &self,
        volumes: &Volumes,
        mut question: impl FnMut(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let attempt = || self.call(volumes, &mut question);
        volumes.again(self.node.volume, attempt)
    }

    /// Takes hold again, if the file system was restarted. What goes wrong is seen by the next
    /// call.
    pub fn keep(&self, volumes: &Volumes) {
        if let Ok(live) = volumes.live(self.node.volume) {
            let _ = self.refresh(volumes, &live);
        }
    }

    /// Notes that something was written.
    pub fn note_written(&self) {
        self.state.lock().written = true;
    }

    /// Makes what was written to the file survive a power cut, whoever has written it.
    ///
    /// # Errors
    /// The file system's.
    pub fn flush(&self, volumes: &Volumes) -> Result<(), FsError> {
        self.call(volumes, |live| live.fs.commit_inode(self.node.inode))?;
        self.state.lock().written = false;
        Ok(())
    }

    /// Takes hold again if the instance that gave the hold is not the one that serves now.
    fn refresh(&self, volumes: &Volumes, live: &Arc<Live>) -> Result<(), FsError> {
        if self
            .state
            .lock()
            .hold
            .as_ref()
            .is_none_or(|(id, _)| *id == live.id)
        {
            return Ok(());
        }
        let taken = self.take_again(live);
        let hold = volumes.settle(self.node.volume, live, taken)?;
        let mut state = self.state.lock();
        let old = state.hold.replace((live.id, hold));
        let written = core::mem::take(&mut state.written);
        drop(state);
        drop(old);
        if written {
            Err(FsError::Restarted)
        } else {
            Ok(())
        }
    }

    fn take_again(&self, live: &Live) -> Result<Handle<dyn Hold>, FsError> {
        if live.fs.metadata(self.node.inode)?.kind != self.node.kind {
            return Err(FsError::NotFound);
        }
        live.fs.hold(self.node.inode)
    }
}
