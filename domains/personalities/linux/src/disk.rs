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
    EBUSY, EEXIST, EFBIG, EINTR, EINVAL, EIO, EISDIR, ELOOP, EMLINK, ENAMETOOLONG, ENOENT, ENOMEM,
    ENOSPC, ENOTDIR, ENOTEMPTY, EOPNOTSUPP, EROFS, ESTALE, EXDEV, Error,
};
use crate::pipes::NamedPipes;
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{
    FileKind, FileSystem, FsError, Handle, Metadata, RVec, Respawn, RpcError, RpcResult,
};
use linux::files::{Attributes, BLOCK, CHARACTER, DIRECTORY, FIFO, LINK, REGULAR, SOCKET};
use mounts::{Known, Live, Mount, Seat};
use vfs::again;
use vfs::walk::{self, Leap, Place, Tree, WalkError};

pub use changing::Wish;
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
}

/// What a name leads to.
#[derive(Clone)]
pub struct Node {
    known: Known,
    kind: FileKind,
    /// What is known of it, if that was asked.
    of: Option<Metadata>,
}

/// Where a path leads.
pub struct Led {
    /// The directory that the last name is in.
    directory: Known,
    /// The last name; empty: the path ends with the root, `.` or `..`.
    name: Vec<u8>,
    /// What it leads to.
    node: Option<Metadata>,
}

/// What a path leads to.
pub enum There {
    File(DiskFile),
    Directory,
    /// A device that takes and gives bytes, of this number.
    Device(u32),
    /// A pipe, held.
    Pipe(Arc<Seat>),
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
fn attributes(of: &Metadata) -> Attributes {
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
        }
    }

    /// The path on the disk of one from the root on that leads there.
    pub fn below<'a>(&self, path: &'a [u8]) -> &'a [u8] {
        path.get(self.name.len()..).unwrap_or(b"")
    }

    /// Asks something that may be asked twice.
    fn ask<T>(
        &self,
        mut question: impl FnMut(&Handle<dyn FileSystem>) -> Result<T, FsError>,
    ) -> Result<T, Error> {
        self.mount.ask(|live| question(&live.fs)).map_err(fs_error)
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        self.mount.ask(|live| live.fs.metadata(inode))
    }

    /// Where a path leads, from the root of the disk on; with `follow` also through a symbolic link
    /// at its end.
    fn walk(&self, path: &[u8], follow: bool) -> Result<Led, Error> {
        let root = self.root().map_err(fs_error)?;
        let start = Place {
            node: root,
            path: b"/".to_vec(),
        };
        // It is from the root on anyway, which would be asked for again.
        let path = match path.iter().position(|&byte| byte != b'/') {
            Some(first) => &path[first..],
            None => b"/",
        };
        let found = walk::walk(self, &start, path, follow).map_err(|error| match error {
            WalkError::NotFound => ENOENT,
            WalkError::NotDirectory => ENOTDIR,
            WalkError::Loop => ELOOP,
            WalkError::TooLong => ENAMETOOLONG,
            WalkError::Tree(error) => fs_error(error),
        })?;
        let complete = |node: Node| node.of.map_or_else(|| self.metadata(node.known.inode), Ok);
        Ok(Led {
            directory: found.directory.node.known,
            name: found.name,
            node: found.node.map(complete).transpose().map_err(fs_error)?,
        })
    }

    /// Has `attempt` made, which follows a path, until what it finds is not stale. It is told how
    /// often it was.
    fn look_again<T>(&self, attempt: impl FnMut(u32) -> Result<T, Error>) -> Result<T, Error> {
        again::look_again(|error| *error == ESTALE, ENOENT, attempt)
    }

    /// What there is at a path.
    fn at(&self, path: &[u8], follow: bool) -> Result<Metadata, Error> {
        self.look_again(|_| self.walk(path, follow)?.node.ok_or(ENOENT))
    }

    /// What there is at a path, held. After some attempts nobody changes names meanwhile.
    fn take(&self, led: &Led, before: u32) -> Result<(Metadata, Arc<Seat>), Error> {
        let of = led.node.ok_or(ENOENT)?;
        if before < again::PATIENCE || led.name.is_empty() {
            let known = match led.name.is_empty() {
                // The root stays.
                true => Known::held(of.inode),
                false => Known::from(&of),
            };
            let seat = self.mount.hold(known, of.kind).map_err(fs_error)?;
            return Ok((of, seat));
        }
        let name = text(&led.name).map_err(|error| fs_error(error.into()))?;
        match self.mount.take_name(led.directory, &name) {
            // It is another, and to be looked at.
            Ok((taken, _)) if taken.kind != of.kind => Err(ESTALE),
            taken => taken.map_err(fs_error),
        }
    }

    /// Does something with the inode that a path leads to, which is held meanwhile.
    pub fn with<T>(
        &self,
        path: &[u8],
        follow: bool,
        act: impl Fn(&Metadata) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.look_again(|before| {
            let led = self.walk(path, follow)?;
            let (of, _held) = self.take(&led, before)?;
            act(&of)
        })
    }

    /// What `stat` tells of a path.
    pub fn attributes(&self, path: &[u8], follow: bool) -> Result<Attributes, Error> {
        self.at(path, follow).map(|of| attributes(&of))
    }

    /// What `stat` tells of what is held.
    pub fn attributes_of(&self, seat: &Seat) -> Result<Attributes, Error> {
        let asked = self
            .mount
            .ask_held(seat, |live| live.fs.metadata(seat.inode()));
        asked.map(|of| attributes(&of)).map_err(fs_error)
    }

    /// The generation of an inode: which of the files it is that have had its number.
    pub fn generation(&self, inode: u64) -> Result<u32, Error> {
        let of = self.metadata(inode).map_err(fs_error)?;
        Ok(of.generation)
    }

    /// Where the symbolic link at a path leads.
    pub fn link_target(&self, path: &[u8]) -> Result<Vec<u8>, Error> {
        self.look_again(|_| {
            let of = self.walk(path, false)?.node.ok_or(ENOENT)?;
            self.target(&of.into()).map_err(fs_error)?.ok_or(EINVAL)
        })
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

impl Tree for Disk {
    type Node = Node;
    type Error = FsError;

    fn root(&self) -> Result<Node, FsError> {
        let root = self.mount.ask(|live| Ok(live.root))?;
        Ok(Node {
            known: Known::held(root),
            kind: FileKind::Directory,
            of: None,
        })
    }

    fn look_up(&self, directory: &Node, name: &[u8]) -> Result<Option<Node>, FsError> {
        let name = text(name)?;
        let found = self.mount.ask(|live| live.find(directory.known, &name))?;
        Ok(found.map(Node::from))
    }

    fn leap(&self, directory: &Node, path: &[u8]) -> Result<Option<Leap<Node>>, FsError> {
        let path = text(path)?;
        let walk = |live: &Live| match live.walks() {
            true => live.walk(directory.known, &path),
            false => Ok(None),
        };
        let walked = self.mount.ask(walk)?.filter(|walked| walked.used > 0);
        Ok(walked.map(|walked| Leap {
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

    fn target(&self, node: &Node) -> Result<Option<Vec<u8>>, FsError> {
        if node.kind != FileKind::Symlink {
            return Ok(None);
        }
        let target: RVec<u8> = self.mount.ask(|live| {
            let room = RVec::zeroed(LONGEST)?;
            live.target(node.known, room)
        })?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(target.len())
            .map_err(|_| RpcError::NoMemory)?;
        bytes.extend_from_slice(&target);
        Ok(Some(bytes))
    }

    fn is_directory(&self, node: &Node) -> bool {
        node.kind == FileKind::Directory
    }
}
