//! The `FsVolume` and `FileSystem` interfaces over the library.
//!
//! A service begins under the lock, which nobody has who waits for a device: so nothing of the one
//! before is under way then (see [`vfs::fence`]).

use alloc::sync::Arc;
use domain_rt::sync::RwLock;
use domain_rt::time;
use interfaces::{
    FileKind, FileSystem, FileSystemBase, FsError, FsStatistics, FsVolume, Handle, Hold, Metadata,
    RVec, Renaming, RpcResult, Text,
};
use ramfs::{Error, Kind};
use vfs::entries::{self, Packer};
use vfs::fence::{self, Fence, Fenced};

use crate::Files;

/// Most calls only read, and some copy much meanwhile.
type Shared = Arc<RwLock<Files>>;

/// What the domain offers.
pub struct Entrance {
    files: Shared,
    fence: Arc<Fence>,
}

impl Entrance {
    /// The way to `files`, for one service after the other.
    pub fn new(files: Shared) -> Self {
        Entrance {
            files,
            fence: Arc::default(),
        }
    }
}

impl FsVolume for Entrance {
    fn begin(&self, service: u32) -> Result<Handle<dyn FileSystem>, FsError> {
        let caller = fence::Service::new(service).ok_or(FsError::Invalid)?;
        let files = self.files.write();
        self.fence.raise(caller).map_err(fenced)?;
        drop(files);
        Ok(Handle::<dyn FileSystem>::new(Service {
            files: self.files.clone(),
            fence: self.fence.clone(),
            caller,
        })?)
    }

    /// All of it is where it belongs.
    fn sync(&self) -> Result<(), FsError> {
        Ok(())
    }
}

/// The way to the files for one service in front of them.
struct Service {
    files: Shared,
    /// Changed with the files locked to be written.
    fence: Arc<Fence>,
    caller: fence::Service,
}

impl Service {
    fn run<T>(&self, operation: impl FnOnce(&mut Files) -> Result<T, Error>) -> Result<T, FsError> {
        let mut files = self.files.write();
        self.fence.admit(self.caller).map_err(fenced)?;
        operation(&mut files).map_err(fs_error)
    }

    fn look<T>(&self, operation: impl FnOnce(&Files) -> Result<T, Error>) -> Result<T, FsError> {
        let files = self.files.read();
        self.fence.admit(self.caller).map_err(fenced)?;
        operation(&files).map_err(fs_error)
    }
}

fn fenced(_: Fenced) -> FsError {
    FsError::Fenced
}

impl FileSystemBase for Service {
    /// What is not written below cannot be done in memory.
    fn pass<T>(
        &self,
        _call: impl FnMut(&dyn FileSystem) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        Err(FsError::Unsupported)
    }

    fn root(&self) -> Result<u64, FsError> {
        self.look(|fs| Ok(fs.root()))
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        self.look(|fs| fs.attributes(inode)).map(metadata)
    }

    fn lookup(&self, directory: u64, name: &RVec<u8>) -> Result<u64, FsError> {
        self.look(|fs| fs.lookup(directory, name))
    }

    fn hold(&self, inode: u64, life: Option<u32>) -> Result<Handle<dyn Hold>, FsError> {
        let mut files = self.files.write();
        self.fence.admit(self.caller).map_err(fenced)?;
        let is_it = |of: ramfs::Attributes| life.is_none_or(|life| life == of.life);
        if !files.attributes(inode).map(is_it).map_err(fs_error)? {
            return Err(FsError::Stale);
        }
        files.hold(inode).map_err(fs_error)?;
        drop(files);
        // From here on `Held` lets go, also if there is no handle for it.
        let held = Held {
            files: self.files.clone(),
            inode,
        };
        Ok(Handle::<dyn Hold>::new(held)?)
    }

    fn read(&self, inode: u64, offset: u64, buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        self.look(|fs| fs.read(inode, offset, buffer))
    }

    fn write(&self, inode: u64, offset: u64, data: &RVec<u8>) -> Result<u64, FsError> {
        self.run(|fs| fs.write(inode, offset, data, now()))
            .map(|count| count as u64)
    }

    fn append(&self, inode: u64, data: &RVec<u8>) -> Result<(u64, u64), FsError> {
        self.run(|fs| {
            let end = fs.attributes(inode)?.size;
            fs.write(inode, end, data, now())
                .map(|count| (end, count as u64))
        })
    }

    fn truncate(&self, inode: u64, size: u64) -> Result<(), FsError> {
        self.run(|fs| fs.truncate(inode, size, now()))
    }

    /// All of a file counts as data.
    fn next_data(&self, inode: u64, offset: u64) -> Result<Option<u64>, FsError> {
        let size = self.look(|fs| fs.attributes(inode))?.size;
        Ok((offset < size).then_some(offset))
    }

    fn next_hole(&self, inode: u64, offset: u64) -> Result<Option<u64>, FsError> {
        let size = self.look(|fs| fs.attributes(inode))?.size;
        Ok((offset < size).then_some(size))
    }

    fn create(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
    ) -> Result<u64, FsError> {
        let kind = match kind {
            FileKind::Regular => Kind::Regular,
            FileKind::Directory => Kind::Directory,
            _ => return Err(FsError::Unsupported),
        };
        self.run(|fs| fs.create(directory, name, kind, mode, now()))
    }

    fn symlink(&self, directory: u64, name: &RVec<u8>, target: &RVec<u8>) -> Result<u64, FsError> {
        self.run(|fs| fs.symlink(directory, name, target, now()))
    }

    fn read_link(&self, inode: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        let count = self.look(|fs| {
            let target = fs.read_link(inode)?;
            let count = target.len().min(buffer.len());
            buffer[..count].copy_from_slice(&target[..count]);
            Ok(count)
        })?;
        Ok(buffer.truncated(count))
    }

    fn link(&self, directory: u64, name: &RVec<u8>, inode: u64) -> Result<(), FsError> {
        self.run(|fs| fs.link(directory, name, inode, now()))
    }

    fn unlink(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        self.run(|fs| fs.unlink(directory, name, now()))
    }

    fn unnamed(&self, makes: bool) -> Result<Option<u64>, FsError> {
        self.run(|fs| fs.unnamed(makes, now()))
    }

    fn remove_directory(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        self.run(|fs| fs.remove_directory(directory, name, now()))
    }

    fn rename(
        &self,
        from: u64,
        name: &RVec<u8>,
        to: u64,
        new_name: &RVec<u8>,
        how: Renaming,
    ) -> Result<(), FsError> {
        self.run(|fs| match how {
            Renaming::Replace => fs.rename(from, name, to, new_name, now()),
            Renaming::New => match fs.lookup(to, new_name) {
                Ok(_) => Err(Error::Exists),
                Err(Error::NotFound) => fs.rename(from, name, to, new_name, now()),
                Err(error) => Err(error),
            },
            Renaming::Exchange => Err(Error::Invalid),
        })
    }

    fn read_directory(
        &self,
        inode: u64,
        cookie: u64,
        mut buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), FsError> {
        let mut packer = Packer::new(&mut buffer);
        let mut is_cut = false;
        let next = self.look(|fs| {
            fs.list(inode, cookie, |child, kind, name| {
                let fits = packer.add(child, packed_kind(kind), name);
                is_cut |= !fits;
                fits
            })
        })?;
        match packer.filled() {
            // Not even one entry fits, which must not look like the end.
            0 if is_cut => Err(FsError::Invalid),
            filled => Ok((buffer.truncated(filled), next)),
        }
    }

    fn set_mode(&self, inode: u64, mode: u16) -> Result<(), FsError> {
        self.run(|fs| fs.set_mode(inode, mode, now()))
    }

    fn set_times(
        &self,
        inode: u64,
        accessed: Option<u64>,
        modified: Option<u64>,
    ) -> Result<(), FsError> {
        self.run(|fs| fs.set_times(inode, accessed, modified, now()))
    }

    fn statistics(&self) -> Result<FsStatistics, FsError> {
        let room = self.look(|fs| Ok(fs.room()))?;
        Ok(FsStatistics {
            kind: Text::new("ramfs"),
            block_size: ramfs::BLOCK as u32,
            blocks: room.blocks,
            free_blocks: room.free_blocks,
            inodes: room.inodes,
            free_inodes: room.free_inodes,
            read_only: false,
        })
    }

    fn commit(&self) -> Result<(), FsError> {
        Ok(())
    }

    fn commit_inode(
        &self,
        _inode: u64,
        _from: u64,
        _end: u64,
        _data_only: bool,
    ) -> Result<(), FsError> {
        Ok(())
    }

    fn flush_content(&self, _inode: u64) -> Result<bool, FsError> {
        Ok(true)
    }

    fn sync(&self) -> Result<(), FsError> {
        Ok(())
    }
}

/// Keeps an inode while the handle lives.
struct Held {
    files: Shared,
    inode: u64,
}

impl Hold for Held {
    fn inode(&self) -> RpcResult<u64> {
        Ok(self.inode)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.files.write().release(self.inode);
    }
}

fn now() -> u64 {
    time::wall_coarse()
}

fn metadata(of: ramfs::Attributes) -> Metadata {
    Metadata {
        inode: of.inode,
        kind: match of.kind {
            Kind::Regular => FileKind::Regular,
            Kind::Directory => FileKind::Directory,
            Kind::Symlink => FileKind::Symlink,
        },
        mode: of.mode,
        links: of.links,
        size: of.size,
        allocated: of.memory,
        modified: of.modified,
        accessed: of.accessed,
        changed: of.changed,
        user: 0,
        group: 0,
        device: 0,
        generation: of.life,
    }
}

fn packed_kind(kind: Kind) -> u8 {
    match kind {
        Kind::Regular => entries::REGULAR,
        Kind::Directory => entries::DIRECTORY,
        Kind::Symlink => entries::SYMLINK,
    }
}

fn fs_error(error: Error) -> FsError {
    match error {
        Error::NotFound => FsError::NotFound,
        Error::Exists => FsError::Exists,
        Error::NotDirectory => FsError::NotDirectory,
        Error::IsDirectory => FsError::IsDirectory,
        Error::NotEmpty => FsError::NotEmpty,
        Error::NoSpace => FsError::NoSpace,
        Error::TooLarge => FsError::TooLarge,
        Error::NameTooLong => FsError::NameTooLong,
        Error::BadName => FsError::BadName,
        Error::TooManyLinks => FsError::TooManyLinks,
        Error::Invalid => FsError::Invalid,
        Error::Broken => FsError::Device,
    }
}
