//! An inode that is kept for as long as something has it open, over restarts of its file system.

use alloc::sync::Arc;
use domain_rt::sync::Mutex;
use interfaces::{FileKind, FileSystem, FsError, Handle, Hold, RVec};

use crate::mount::{Live, Mount};
use crate::mount_table::InUse;
use crate::volumes::{Node, Volume, Volumes};

/// A node and the hold on its inode.
///
/// After a restart the hold is taken again by inode number, if there still is an inode of the same
/// kind. If the new instance does not go on where the one before was, and something was written
/// through this before the restart, part of it may be lost: the first use afterwards says so with
/// `FsError::Restarted`, and the next one works.
pub struct Held {
    node: Node,
    /// Where it is held; `None`: it need not be.
    place: Option<(Arc<Mount>, Arc<Seat>)>,
    /// Keeps the file system mounted. Behind the hold, which goes first.
    _in_use: Option<InUse>,
}

/// A hold, which passes from instance to instance.
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
}

/// An instance.
#[derive(Clone, Copy)]
struct By {
    id: u32,
    lineage: Option<u64>,
}

impl Seat {
    fn new(node: &Node) -> Self {
        Seat {
            inode: node.inode,
            kind: node.kind,
            state: Mutex::default(),
        }
    }

    /// Takes a hold that `live` has given.
    pub fn sit(&self, live: &Live, hold: Handle<dyn Hold>) {
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
    pub fn is_of_another(&self, live: &Live) -> bool {
        self.state.lock().by.is_some_and(|by| by.id != live.id)
    }

    /// Takes hold again by an instance that goes on. What has gone wrong is seen by who uses it.
    pub fn sit_again(&self, live: &Live) {
        let hold = self.take(live).ok();
        let old = self.put(live, hold);
        drop(old);
    }

    fn take(&self, live: &Live) -> Result<Handle<dyn Hold>, FsError> {
        if live.fs.metadata(self.inode)?.kind != self.kind {
            return Err(FsError::NotFound);
        }
        live.fs.hold(self.inode)
    }
}

impl Held {
    /// Takes hold of a node.
    ///
    /// # Errors
    /// The file system's.
    pub fn new(volumes: &Volumes, node: Node) -> Result<Self, FsError> {
        if node.volume == Volume::EMPTY {
            return Ok(Held {
                node,
                place: None,
                _in_use: None,
            });
        }
        let in_use = volumes.mounts.enter(node.volume)?;
        let mount = volumes.mounts.get(node.volume).ok_or(FsError::Device)?;
        let seat = Arc::new(Seat::new(&node));
        mount.add_seat(&seat)?;
        let (live, hold) = volumes.again(node.volume, || {
            volumes.attempt(node.volume, |live| {
                Ok((live.clone(), live.fs.hold(node.inode)?))
            })
        })?;
        let serves = mount.sit(&seat, &live, hold);
        let held = Held {
            node,
            place: Some((mount, seat)),
            _in_use: Some(in_use),
        };
        if !serves {
            held.keep(volumes);
        }
        Ok(held)
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Calls the file system, with the inode held by the instance that is called.
    fn attempt<T>(
        &self,
        volumes: &Volumes,
        operation: impl FnOnce(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        volumes.attempt(self.node.volume, |live| {
            self.refresh(live)?;
            operation(live)
        })
    }

    /// Has the file system do what may be done twice, with the inode held by the instance that is
    /// called, and its next instance again where that makes sense; see [`Volumes::ask`].
    ///
    /// # Errors
    /// The file system's; [`FsError::NotFound`] if a restart lost the inode.
    pub fn ask<T>(
        &self,
        volumes: &Volumes,
        mut question: impl FnMut(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let attempt = || self.attempt(volumes, &mut question);
        volumes.again(self.node.volume, attempt)
    }

    /// Writes at the end of the file, once; where, and how many bytes.
    ///
    /// # Errors
    /// The file system's.
    pub fn append(&self, volumes: &Volumes, data: &RVec<u8>) -> Result<(u64, u64), FsError> {
        // The hold first.
        self.ask(volumes, |_| Ok(()))?;
        let append = |fs: &Handle<dyn FileSystem>| fs.append(self.node.inode, data);
        volumes.change(self.node.volume, append, |outcome| {
            (outcome.first, outcome.second)
        })
    }

    /// Takes hold again, if the file system was restarted. What goes wrong is seen by the next
    /// call.
    pub fn keep(&self, volumes: &Volumes) {
        let _ = volumes.attempt(self.node.volume, |live| self.refresh(live));
    }

    /// Notes that something was written.
    pub fn note_written(&self) {
        if let Some((_, seat)) = &self.place {
            seat.state.lock().written = true;
        }
    }

    /// Makes what was written to the file survive a power cut, whoever has written it.
    ///
    /// # Errors
    /// The file system's.
    pub fn flush(&self, volumes: &Volumes) -> Result<(), FsError> {
        self.ask(volumes, |live| live.fs.commit_inode(self.node.inode))?;
        if let Some((_, seat)) = &self.place {
            seat.state.lock().written = false;
        }
        Ok(())
    }

    /// Takes hold again if the instance that gave the hold is not the one that serves now.
    fn refresh(&self, live: &Live) -> Result<(), FsError> {
        let Some((mount, seat)) = &self.place else {
            return Ok(());
        };
        let state = seat.state.lock();
        if state.hold.is_some() && state.by.is_some_and(|by| by.id == live.id) {
            return Ok(());
        }
        drop(state);
        let hold = seat.take(live)?;
        let (old, before) = seat.put(live, Some(hold));
        drop(old);
        if before.is_some_and(|by| live.goes_on(by.lineage)) {
            return Ok(());
        }
        let written = core::mem::take(&mut seat.state.lock().written);
        match written && !mount.is_unchanging() {
            true => Err(FsError::Restarted),
            false => Ok(()),
        }
    }
}
