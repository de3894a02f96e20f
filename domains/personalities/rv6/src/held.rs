//! An inode that is kept for as long as something has it open, over restarts of its file system.

use alloc::sync::Arc;
use interfaces::{FsError, RVec};
use mounts::{Live, Mount, Seat};

use crate::mount_table::InUse;
use crate::volumes::{Node, Volume, Volumes};

/// A node and the hold on its inode.
pub struct Held {
    node: Node,
    /// Where it is held; `None`: it need not be.
    place: Option<(Arc<Mount>, Arc<Seat>)>,
    /// Keeps the file system mounted. Behind the hold, which goes first.
    _in_use: Option<InUse>,
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
        let seat = mount.hold(node.known(), node.kind)?;
        Ok(Held {
            node: node.held(),
            place: Some((mount, seat)),
            _in_use: Some(in_use),
        })
    }

    /// Takes hold of what a name in a directory leads to, while nobody changes names; see
    /// [`Mount::take_name`].
    ///
    /// # Errors
    /// As there.
    pub fn take(volumes: &Volumes, directory: &Node, name: &[u8]) -> Result<Self, FsError> {
        let in_use = volumes.mounts.enter(directory.volume)?;
        let mount = volumes
            .mounts
            .get(directory.volume)
            .ok_or(FsError::Device)?;
        let (of, seat) = mount.take_name(directory.known(), &RVec::from_slice(name)?)?;
        Ok(Held {
            node: Node {
                inode: of.inode,
                kind: of.kind,
                life: None,
                volume: directory.volume,
            },
            place: Some((mount, seat)),
            _in_use: Some(in_use),
        })
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Has the file system do what may be done twice, with the inode held by the instance that is
    /// called, and its next instance again where that makes sense; see [`Mount::ask`].
    ///
    /// # Errors
    /// The file system's; [`FsError::NotFound`] if a restart lost the inode.
    pub fn ask<T>(&self, question: impl FnMut(&Live) -> Result<T, FsError>) -> Result<T, FsError> {
        let (mount, seat) = self.place.as_ref().ok_or(FsError::Unsupported)?;
        mount.ask_held(seat, question)
    }

    /// Writes at the end of the file, once; where, and how many bytes.
    ///
    /// # Errors
    /// The file system's.
    pub fn append(&self, data: &RVec<u8>) -> Result<(u64, u64), FsError> {
        let (mount, seat) = self.place.as_ref().ok_or(FsError::Unsupported)?;
        mount.append(seat, |fs| fs.append(self.node.inode, data))
    }

    /// Takes hold again, if the file system was restarted. What goes wrong is seen by the next
    /// call.
    pub fn keep(&self) {
        if let Some((mount, seat)) = &self.place {
            mount.keep(seat);
        }
    }

    /// Notes that something was written.
    pub fn note_written(&self) {
        if let Some((_, seat)) = &self.place {
            seat.note_written();
        }
    }

    /// Makes what was written to the file survive a power cut, whoever has written it; what it is
    /// found without only if not of `data_only`.
    ///
    /// # Errors
    /// The file system's.
    pub fn flush(&self, data_only: bool) -> Result<(), FsError> {
        let inode = self.node.inode;
        self.ask(|live| live.fs.commit_inode(inode, 0, u64::MAX, data_only))?;
        if let Some((_, seat)) = &self.place {
            seat.note_flushed();
        }
        Ok(())
    }
}
