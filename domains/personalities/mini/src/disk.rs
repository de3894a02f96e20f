//! The file system of a disk, below `/disk`: programs read its files and map them. It is asked
//! through its shadow, so its crash, or that of the disk's driver, makes a call take longer.

use crate::errno::{EINTR, EIO, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR, Error};
use crate::memory::PAGE;
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{
    FileKind, FileSystem, FsError, Handle, Hold, MemoryError, Metadata, RVec, Respawn, RpcError,
    VmoView,
};
use respawn::Client;
use vfs::entries::{self, Entries};
use vfs::walk::{self, Place, Tree, WalkError};

/// Where it is in the tree of files.
pub const NAME: &[u8] = b"disk";

/// Pages that are brought at once, for a fault and for a read.
const AROUND: u64 = 16;
const AHEAD: u64 = 64;
/// How often one looks again at pages that go as soon as they have come.
const ATTEMPTS: u32 = 64;
/// Bytes of directory entries that are asked for at once.
const LISTING: usize = 16 << 10;
/// The longest target of a symbolic link.
const LONGEST: usize = 4096;

/// A file system.
pub struct Disk(Client<dyn FileSystem>);

/// A file that is open or mapped.
pub struct DiskFile {
    disk: Arc<Disk>,
    inode: u64,
    view: Handle<dyn VmoView>,
    _hold: Handle<dyn Hold>,
}

/// What a path leads to.
pub enum There {
    File(DiskFile),
    Directory,
}

fn fs_error(error: FsError) -> Error {
    match error {
        FsError::NotFound => ENOENT,
        FsError::NotDirectory => ENOTDIR,
        FsError::IsDirectory => EISDIR,
        FsError::NameTooLong => ENAMETOOLONG,
        FsError::Rpc(RpcError::NoMemory) => ENOMEM,
        FsError::Rpc(RpcError::Interrupted) => EINTR,
        _ => EIO,
    }
}

fn text(bytes: &[u8]) -> Result<RVec<u8>, FsError> {
    Ok(RVec::from_slice(bytes)?)
}

impl Disk {
    /// The one that `respawn` leads to.
    pub fn new(respawn: Handle<dyn Respawn>) -> Self {
        Disk(Client::new(respawn, "file system"))
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        self.0.call(|fs| fs.metadata(inode))
    }

    /// The inode that a path leads to, from the root of the disk on.
    fn walk(&self, path: &[u8]) -> Result<Metadata, Error> {
        let root = self.root().map_err(fs_error)?;
        let start = Place {
            node: root,
            path: b"/".to_vec(),
        };
        let path = if path.is_empty() { b"/" } else { path };
        let found = walk::walk(self, &start, path, true).map_err(|error| match error {
            WalkError::NotFound => ENOENT,
            WalkError::NotDirectory => ENOTDIR,
            WalkError::Loop => ELOOP,
            WalkError::TooLong => ENAMETOOLONG,
            WalkError::Tree(error) => fs_error(error),
        })?;
        found.node.ok_or(ENOENT)
    }

    /// What a path leads to, held.
    pub fn find(self: &Arc<Self>, path: &[u8]) -> Result<There, Error> {
        let of = self.walk(path)?;
        if of.kind == FileKind::Directory {
            return Ok(There::Directory);
        }
        let hold = self.0.call(|fs| fs.hold(of.inode)).map_err(fs_error)?;
        let view = self.0.call(|fs| fs.pages(of.inode)).map_err(fs_error)?;
        Ok(There::File(DiskFile {
            disk: self.clone(),
            inode: of.inode,
            view,
            _hold: hold,
        }))
    }

    /// The names in a directory, and whether they are directories.
    pub fn names(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, bool)>, Error> {
        let directory = self.walk(path)?.inode;
        let (mut names, mut position) = (Vec::new(), 0);
        loop {
            let listed = self.0.call(|fs| {
                let room = RVec::zeroed(LISTING)?;
                fs.read_directory(directory, position, room)
            });
            let (listing, next): (RVec<u8>, u64) = listed.map_err(fs_error)?;
            if listing.is_empty() {
                return Ok(names);
            }
            for entry in Entries::new(&listing) {
                names.try_reserve(1).map_err(|_| ENOMEM)?;
                names.push((entry.name.to_vec(), entry.kind == entries::DIRECTORY));
            }
            position = next;
        }
    }
}

impl Tree for Disk {
    type Node = Metadata;
    type Error = FsError;

    fn root(&self) -> Result<Metadata, FsError> {
        self.0.call(|fs| fs.metadata(fs.root()?))
    }

    fn look_up(&self, directory: &Metadata, name: &[u8]) -> Result<Option<Metadata>, FsError> {
        let name = text(name)?;
        let found = self.0.call(|fs| fs.lookup(directory.inode, &name));
        match found.and_then(|inode| self.metadata(inode)) {
            Err(FsError::NotFound) => Ok(None),
            found => found.map(Some),
        }
    }

    fn target(&self, node: &Metadata) -> Result<Option<Vec<u8>>, FsError> {
        if node.kind != FileKind::Symlink {
            return Ok(None);
        }
        let target = self.0.call(|fs| {
            let room = RVec::zeroed(LONGEST)?;
            fs.read_link(node.inode, room)
        });
        target.map(|target: RVec<u8>| Some(target.to_vec()))
    }

    fn is_directory(&self, node: &Metadata) -> bool {
        node.kind == FileKind::Directory
    }
}

impl DiskFile {
    /// Mode and size, as `stat` has them.
    pub fn mode_and_size(&self) -> Result<(u32, u64), Error> {
        let of = self.disk.metadata(self.inode).map_err(fs_error)?;
        Ok((0o100_000 | u32::from(of.mode), of.size))
    }

    /// Another way to its pages.
    pub fn view(&self) -> Result<Handle<dyn VmoView>, Error> {
        self.view.duplicate().map_err(|_| ENOMEM)
    }

    /// Sees to it that pages from `first` on are there; whether one is. None is behind the end.
    pub fn bring(&self, first: u64, count: u64) -> Result<bool, Error> {
        let brought = self.disk.0.call(|fs| fs.populate(self.inode, first, count));
        brought.map(|count| count > 0).map_err(fs_error)
    }

    /// As [`bring`](Self::bring), for a program that has met a fault at a page.
    pub fn bring_around(&self, page: u64) -> Result<bool, Error> {
        self.bring(page, AROUND)
    }

    /// Reads at `offset`, `count` bytes at most; short only at the end.
    pub fn read(&self, offset: u64, count: usize) -> Result<(RVec<u8>, usize), Error> {
        let size = self.mode_and_size()?.1;
        let count = size.saturating_sub(offset).min(count as u64) as usize;
        let mut room = RVec::zeroed(count).map_err(|_| ENOMEM)?;
        if count == 0 {
            return Ok((room, 0));
        }
        for _ in 0..ATTEMPTS {
            let done = match self.view.read(offset, room) {
                Ok((read, done)) if done == count as u64 => return Ok((read, count)),
                Ok((read, done)) => {
                    room = read;
                    done
                }
                Err(MemoryError::Absent | MemoryError::Loading | MemoryError::Beyond) => {
                    room = RVec::zeroed(count).map_err(|_| ENOMEM)?;
                    0
                }
                Err(MemoryError::Rpc(RpcError::NoMemory)) => return Err(ENOMEM),
                Err(_) => return Err(EIO),
            };
            let (first, end) = (
                (offset + done) / PAGE,
                (offset + count as u64).div_ceil(PAGE),
            );
            if !self.bring(first, AHEAD.max(end - first))? {
                // It has become shorter.
                return Ok((room, done as usize));
            }
        }
        Err(EIO)
    }
}
