//! Attributes of inodes: what `stat` tells, and changes of mode, owner and times.

use crate::device::BlockDevice;
use crate::error::Result;
use crate::fs::FileSystem;
use crate::inode::{FileKind, Inode};
use crate::time::Time;

/// What is known about an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub ino: u32,
    /// What it is.
    pub kind: FileKind,
    /// Permission bits, 12 of them.
    pub mode: u16,
    /// Names that it has.
    pub links: u16,
    /// Owner.
    pub uid: u32,
    /// Group of the owner.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Sectors of 512 bytes that it takes, indirect blocks included.
    pub sectors: u32,
    /// Last access. Reading does not change it.
    pub atime: Time,
    /// Last change of the content.
    pub mtime: Time,
    /// Last change of the inode.
    pub ctime: Time,
    /// Counts the lives of the inode number: number and generation name one inode for ever.
    pub generation: u32,
    /// The device number of a device, in the form that Linux stores it; 0 for others.
    pub device: u32,
}

impl Attributes {
    fn of(inode: &Inode) -> Self {
        let device = matches!(
            inode.kind,
            FileKind::CharacterDevice | FileKind::BlockDevice
        );
        let [old, new, ..] = inode.pointers;
        Attributes {
            ino: inode.ino,
            kind: inode.kind,
            mode: inode.permissions,
            links: inode.links,
            uid: inode.uid,
            gid: inode.gid,
            size: inode.size,
            sectors: inode.sectors,
            atime: inode.atime,
            mtime: inode.mtime,
            ctime: inode.ctime,
            generation: inode.generation,
            device: match (device, old) {
                (false, _) => 0,
                (true, 0) => new,
                (true, old) => old,
            },
        }
    }
}

impl<D: BlockDevice> FileSystem<D> {
    /// The attributes of an inode.
    ///
    /// # Errors
    /// `NotFound` if it is not in use; `Corrupt`; device errors.
    pub fn getattr(&mut self, ino: u32) -> Result<Attributes> {
        self.view(|tx| tx.inode(ino))
            .map(|inode| Attributes::of(&inode))
    }

    /// Sets the permission bits.
    ///
    /// # Errors
    /// `ReadOnly`; as [`getattr`](Self::getattr).
    pub fn chmod(&mut self, ino: u32, mode: u16) -> Result<()> {
        self.update(|tx| {
            tx.edit_inode(ino, |inode, now| {
                inode.permissions = mode & 0xFFF;
                inode.ctime = now;
            })
        })
    }

    /// Sets the owner and the owner's group.
    ///
    /// # Errors
    /// `ReadOnly`; as [`getattr`](Self::getattr).
    pub fn chown(&mut self, ino: u32, uid: u32, gid: u32) -> Result<()> {
        self.update(|tx| {
            tx.edit_inode(ino, |inode, now| {
                (inode.uid, inode.gid) = (uid, gid);
                inode.ctime = now;
            })
        })
    }

    /// Sets the times of last access and last change of the content; `None` leaves one as it is.
    ///
    /// # Errors
    /// `ReadOnly`; as [`getattr`](Self::getattr).
    pub fn set_times(&mut self, ino: u32, atime: Option<Time>, mtime: Option<Time>) -> Result<()> {
        self.update(|tx| {
            tx.edit_inode(ino, |inode, now| {
                inode.atime = atime.unwrap_or(inode.atime);
                inode.mtime = mtime.unwrap_or(inode.mtime);
                inode.ctime = now;
            })
        })
    }
}
