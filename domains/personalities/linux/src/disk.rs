//! The file system of a disk, below `/disk`: programs read its files, write to them and map them,
//! and change its names. It is asked through its shadow, so its crash, or that of the disk's
//! driver, makes a call take longer.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`file`] | a file that is open or mapped |
//! | [`listing`] | a directory that is being listed |
//! | [`changing`] | what is made, moved and removed |

mod changing;
mod file;
mod listing;

use crate::errno::{
    EBUSY, EEXIST, EFBIG, EINTR, EINVAL, EIO, EISDIR, EMLINK, ENAMETOOLONG, ENOENT, ENOMEM, ENOSPC,
    ENOTDIR, ENOTEMPTY, EOPNOTSUPP, EROFS, ESTALE, EXDEV, Error,
};
use crate::pipes::NamedPipes;
use crate::sockets::names::NamedSockets;
use crate::walk::{self, Led};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use interfaces::{
    FileKind, FileSystem, FsError, Handle, Metadata, RVec, Respawn, RpcError, RpcResult,
};
use linux::files::{Attributes, BLOCK, CHARACTER, DIRECTORY, FIFO, LINK, REGULAR, SOCKET};
use mounts::{Known, Live, Mount, Seat};
use vfs::again;
use vfs::walk::Leap;

pub use changing::Making;
pub use file::{Access, DiskFile, Mapped, OnDisk, SEEK_DATA, SEEK_HOLE};
pub use listing::Listing;

/// The number that it has as a device. What is not on it has none.
const DEVICE: u64 = 1;
/// The longest target of a symbolic link.
const LONGEST: usize = 4096;

/// A file system.
pub struct Disk {
    /// Where it is in the tree of files: a name in the root, or empty, if it is the root itself.
    pub name: &'static [u8],
    mount: Mount,
    pub pipes: NamedPipes,
    pub sockets: NamedSockets,
    locks: Locks,
}

/// What a name leads to.
#[derive(Clone)]
pub struct Node {
    known: Known,
    kind: FileKind,
    /// What is known of it, if that was asked.
    of: Option<Metadata>,
}

fn fs_error(error: FsError) -> Error {
    match error {
        FsError::NotFound => ENOENT,
        FsError::Exists => EEXIST,
        FsError::NotDirectory => ENOTDIR,
        FsError::IsDirectory => EISDIR,
        FsError::NotEmpty => ENOTEMPTY,
        FsError::NoSpace => ENOSPC,
        FsError::TooLarge => EFBIG,
        FsError::NameTooLong => ENAMETOOLONG,
        FsError::ReadOnly => EROFS,
        FsError::TooManyLinks => EMLINK,
        FsError::BadName | FsError::Invalid => EINVAL,
        FsError::Unsupported => EOPNOTSUPP,
        FsError::CrossDevice => EXDEV,
        FsError::Busy => EBUSY,
        FsError::Stale => ESTALE,
        FsError::Rpc(RpcError::NoMemory) => ENOMEM,
        FsError::Rpc(RpcError::Interrupted) => EINTR,
        _ => EIO,
    }
}

fn text(bytes: &[u8]) -> RpcResult<RVec<u8>> {
    RVec::from_slice(bytes)
}

/// What `stat` tells of an inode.
pub fn attributes(of: &Metadata) -> Attributes {
    let kind = match of.kind {
        FileKind::Regular => REGULAR,
        FileKind::Directory => DIRECTORY,
        FileKind::Symlink => LINK,
        FileKind::CharacterDevice => CHARACTER,
        FileKind::BlockDevice => BLOCK,
        FileKind::Pipe => FIFO,
        FileKind::Socket => SOCKET,
    };
    Attributes {
        device: DEVICE,
        inode: of.inode,
        links: of.links.into(),
        mode: kind | u32::from(of.mode),
        user: of.user,
        group: of.group,
        node: of.device,
        size: of.size,
        allocated: of.allocated,
        times: [of.accessed, of.modified, of.changed],
    }
}

impl Disk {
    /// The one that `respawn` leads to, with its place in the tree of files.
    pub fn new(name: &'static [u8], respawn: Handle<dyn Respawn>) -> Self {
        Disk {
            name,
            // `rv6` may be the other one.
            mount: Mount::new("/disk", respawn).beside(),
            pipes: NamedPipes::default(),
            sockets: NamedSockets::default(),
            locks: Locks::default(),
        }
    }

    /// Calls of programs at the file system that are under way at this moment.
    pub fn under_way(&self) -> u64 {
        self.mount.under_way()
    }

    /// Asks something that may be asked twice.
    fn ask<T>(
        &self,
        mut question: impl FnMut(&Handle<dyn FileSystem>) -> Result<T, FsError>,
    ) -> Result<T, Error> {
        self.mount.ask(|live| question(&live.fs)).map_err(fs_error)
    }

    /// What is known of what a name has led to.
    ///
    /// # Errors
    /// `ESTALE`: it lives no more. The file system's.
    pub fn of(&self, node: &Node) -> Result<Metadata, Error> {
        match node.of {
            Some(of) => Ok(of),
            None => self
                .mount
                .ask(|live| live.metadata(node.known))
                .map_err(fs_error),
        }
    }

    /// What is known of an inode that is held.
    fn metadata(&self, inode: u64) -> Result<Metadata, Error> {
        self.ask(|fs| fs.metadata(inode))
    }

    /// What a path has led to, held. After some attempts nobody changes names meanwhile.
    ///
    /// # Errors
    /// `ESTALE`: it is another by now. The file system's.
    pub fn take(
        &self,
        led: &Led,
        node: &Node,
        before: u32,
    ) -> Result<(Metadata, Arc<Seat>), Error> {
        let directory = match &led.directory {
            walk::Node::Disk(directory) if !led.name.is_empty() => Some(directory),
            _ => None,
        };
        let Some(directory) = directory.filter(|_| before >= again::PATIENCE) else {
            let of = self.of(node)?;
            let seat = self.mount.hold(node.known, node.kind).map_err(fs_error)?;
            return Ok((of, seat));
        };
        let name = text(&led.name).map_err(|error| fs_error(error.into()))?;
        match self.mount.take_name(directory.known, &name) {
            // It is another, and to be looked at.
            Ok((taken, _)) if taken.kind != node.kind => Err(ESTALE),
            taken => taken.map_err(fs_error),
        }
    }

    /// What `stat` tells of what is held.
    pub fn attributes_of(&self, seat: &Seat) -> Result<Attributes, Error> {
        let asked = self
            .mount
            .ask_held(seat, |live| live.fs.metadata(seat.inode()));
        asked.map(|of| attributes(&of)).map_err(fs_error)
    }

    /// What `stat` tells of an inode that is held.
    pub fn attributes_by(&self, inode: u64) -> Result<Attributes, Error> {
        self.metadata(inode).map(|of| attributes(&of))
    }

    /// The generation of an inode that is held: which of the files it is that have had its number.
    pub fn generation(&self, inode: u64) -> Result<u32, Error> {
        Ok(self.metadata(inode)?.generation)
    }

    /// The lock of an inode. It is held over each change of content or attributes, all attempts
    /// included: a change that is made again after a crash would else undo what others were told
    /// was done meanwhile.
    pub fn lock_of(&self, inode: u64) -> Arc<Mutex<()>> {
        self.locks.of(inode)
    }
}

/// The locks of inodes that somebody may hold.
#[derive(Default)]
struct Locks(Mutex<Table>);

#[derive(Default)]
struct Table {
    locks: BTreeMap<u64, Weak<Mutex<()>>>,
    /// How many there may be before those that nobody has any more are forgotten.
    most: usize,
}

impl Locks {
    fn of(&self, inode: u64) -> Arc<Mutex<()>> {
        let mut table = self.0.lock();
        if let Some(lock) = table.locks.get(&inode).and_then(Weak::upgrade) {
            return lock;
        }
        if table.locks.len() >= table.most {
            table.locks.retain(|_, lock| lock.strong_count() > 0);
            table.most = (2 * table.locks.len()).max(64);
        }
        let lock = Arc::default();
        table.locks.insert(inode, Arc::downgrade(&lock));
        lock
    }
}

impl Node {
    /// An inode that is held.
    pub fn held(inode: u64, kind: FileKind) -> Self {
        Node {
            known: Known::held(inode),
            kind,
            of: None,
        }
    }

    /// Its number.
    pub fn inode(&self) -> u64 {
        self.known.inode
    }

    /// What it is.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Whether names can be looked up in it.
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

impl From<Metadata> for Node {
    fn from(of: Metadata) -> Self {
        Node {
            known: Known::from(&of),
            kind: of.kind,
            of: Some(of),
        }
    }
}

/// How paths are followed on the disk; see [`walk`](crate::walk).
impl Disk {
    /// Its root directory.
    pub fn root(&self) -> Result<Node, Error> {
        let root = self.mount.ask(|live| Ok(live.root)).map_err(fs_error)?;
        Ok(Node::held(root, FileKind::Directory))
    }

    /// Whether that is its root directory.
    pub fn is_root(&self, node: &Node) -> Result<bool, Error> {
        Ok(self.root()?.known.inode == node.known.inode)
    }

    /// What a name in a directory leads to.
    pub fn find(&self, directory: &Node, name: &[u8]) -> Result<Option<Node>, Error> {
        let name = text(name).map_err(|error| fs_error(error.into()))?;
        let found = self.mount.ask(|live| live.find(directory.known, &name));
        Ok(found.map_err(fs_error)?.map(Node::from))
    }

    /// Follows several names at once; see [`vfs::walk::Tree::leap`].
    pub fn leap(&self, directory: &Node, path: &[u8]) -> Result<Option<Leap<Node>>, Error> {
        let path = text(path).map_err(|error| fs_error(error.into()))?;
        let walk = |live: &Live| match live.walks() {
            true => live.walk(directory.known, &path),
            false => Ok(None),
        };
        let walked = self.mount.ask(walk).map_err(fs_error)?;
        Ok(walked.filter(|walked| walked.used > 0).map(|walked| Leap {
            used: usize::try_from(walked.used).unwrap_or(usize::MAX),
            directory: match walked.directory == directory.known.inode {
                true => directory.clone(),
                false => Node {
                    known: Known {
                        inode: walked.directory,
                        life: walked.life,
                    },
                    kind: FileKind::Directory,
                    of: None,
                },
            },
            node: walked.found.map(Node::from),
        }))
    }

    /// Where a symbolic link leads; `None`: it is something else.
    pub fn target(&self, node: &Node) -> Result<Option<Vec<u8>>, Error> {
        if node.kind != FileKind::Symlink {
            return Ok(None);
        }
        let target = self.mount.ask(|live| {
            let room = RVec::zeroed(LONGEST)?;
            live.target(node.known, room)
        });
        let target: RVec<u8> = target.map_err(fs_error)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(target.len()).map_err(|_| ENOMEM)?;
        bytes.extend_from_slice(&target);
        Ok(Some(bytes))
    }
}
