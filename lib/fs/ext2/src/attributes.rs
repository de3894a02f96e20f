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
    /// The number of a device: the low 8 bits of the minor number, 12 bits of the major number, and
    /// the other 12 of the minor one; 0 for others.
    pub device: u32,
}

impl Attributes {
    fn of(inode: &Inode) -> Self {
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
            device: inode.device(),
        }
    }
}

/// The bits of a mode that have a program run with other rights: of its owner, and of its group if
/// that may run it. Without that right the bit means something else.
fn rights_of_owner(permissions: u16) -> u16 {
    const USER: u16 = 0o4000;
    const GROUP: u16 = 0o2000;
    match permissions & 0o010 {
        0 => USER,
        _ => USER | GROUP,
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

    /// Sets the owner and the owner's group; `None` leaves one as it is. What runs with the rights
    /// of its owner or group does so no more, as on Linux: it was another's word.
    ///
    /// # Errors
    /// `ReadOnly`; as [`getattr`](Self::getattr).
    pub fn chown(&mut self, ino: u32, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.update(|tx| {
            tx.edit_inode(ino, |inode, now| {
                inode.uid = uid.unwrap_or(inode.uid);
                inode.gid = gid.unwrap_or(inode.gid);
                if inode.kind != FileKind::Directory {
                    inode.permissions &= !rights_of_owner(inode.permissions);
                }
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
