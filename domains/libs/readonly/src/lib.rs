//! File systems that cannot be written, over a tree of names that never changes: the boot archive,
//! `/proc`.
//!
//! Whoever has such a [`Tree`] says what is in it; [`ReadOnly`] is the file system.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{
    FileSystem, FileSystemBase, FsError, FsStatistics, Handle, Hold, Metadata, RVec, RpcResult,
    Taken, Walked,
};
use vfs::entries::{self, Packer};

/// The inode of the root directory.
pub const ROOT: u64 = vfs::files::ROOT;

/// Files and directories with names that never change.
pub trait Tree: Send + Sync + 'static {
    /// Whether the inode is a directory; otherwise it is a file.
    ///
    /// # Errors
    /// `NotFound`: there is no such inode.
    fn is_directory(&self, inode: u64) -> Result<bool, FsError>;

    /// Entry number `position` of a directory: inode and name. `.` and `..` come first.
    fn entry(&self, directory: u64, position: u64) -> Option<(u64, &[u8])>;

    /// What `name` in a directory leads to, also for `.` and `..`.
    ///
    /// # Errors
    /// `NotFound`, or that there can be no such name.
    fn look_up(&self, directory: u64, name: &[u8]) -> Result<u64, FsError>;

    /// What there is to know of the inode.
    ///
    /// # Errors
    /// `NotFound`: there is no such inode.
    fn metadata(&self, inode: u64) -> Result<Metadata, FsError>;

    /// Reads from a file; fewer bytes than the buffer has only at the file's end.
    ///
    /// # Errors
    /// Those of where its content comes from.
    fn read(&self, file: u64, offset: u64, buffer: RVec<u8>) -> Result<RVec<u8>, FsError>;

    /// What there is to know of the whole.
    fn statistics(&self) -> FsStatistics;
}

/// The file system.
pub struct ReadOnly<T>(pub T);

impl<T: Tree> ReadOnly<T> {
    /// Checks that the inode is a directory.
    fn directory(&self, inode: u64) -> Result<(), FsError> {
        match self.0.is_directory(inode)? {
            true => Ok(()),
            false => Err(FsError::NotDirectory),
        }
    }

    fn packed_kind(&self, inode: u64) -> u8 {
        match self.0.is_directory(inode) {
            Ok(true) => entries::DIRECTORY,
            Ok(false) => entries::REGULAR,
            Err(_) => entries::OTHER,
        }
    }
}

impl<T: Tree> FileSystemBase for ReadOnly<T> {
    /// Every call that is not written below would change something.
    fn pass<R>(
        &self,
        _call: impl FnMut(&dyn FileSystem) -> Result<R, FsError>,
    ) -> Result<R, FsError> {
        Err(FsError::ReadOnly)
    }

    fn root(&self) -> Result<u64, FsError> {
        Ok(ROOT)
    }

    /// Names are looked up one by one.
    fn walk(&self, _from: u64, _life: Option<u32>, _path: &RVec<u8>) -> Result<Walked, FsError> {
        Err(FsError::Unsupported)
    }

    /// A name always leads to the same.
    fn take(
        &self,
        _directory: u64,
        _life: Option<u32>,
        _name: &RVec<u8>,
    ) -> Result<Taken, FsError> {
        Err(FsError::Unsupported)
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        self.0.metadata(inode)
    }

    fn lookup(&self, directory: u64, name: &RVec<u8>) -> Result<u64, FsError> {
        self.directory(directory)?;
        self.0.look_up(directory, name)
    }

    /// A number is always the same file's.
    fn hold(&self, inode: u64, _life: Option<u32>) -> Result<Handle<dyn Hold>, FsError> {
        self.0.is_directory(inode)?;
        Ok(Handle::<dyn Hold>::new(Held(inode))?)
    }

    fn read(&self, inode: u64, offset: u64, buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        match self.0.is_directory(inode)? {
            true => Err(FsError::IsDirectory),
            false => self.0.read(inode, offset, buffer),
        }
    }

    /// Nothing has holes.
    fn next_data(&self, inode: u64, offset: u64) -> Result<Option<u64>, FsError> {
        let size = self.0.metadata(inode)?.size;
        Ok((offset < size).then_some(offset))
    }

    fn next_hole(&self, inode: u64, offset: u64) -> Result<Option<u64>, FsError> {
        let size = self.0.metadata(inode)?.size;
        Ok((offset < size).then_some(size))
    }

    fn read_link(&self, inode: u64, _buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        self.0.is_directory(inode)?;
        Err(FsError::Invalid)
    }

    fn read_directory(
        &self,
        inode: u64,
        cookie: u64,
        mut buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), FsError> {
        self.directory(inode)?;
        let mut packer = Packer::new(&mut buffer);
        let mut next = cookie;
        while let Some((child, name)) = self.0.entry(inode, next) {
            if !packer.add(child, self.packed_kind(child), name) {
                break;
            }
            next += 1;
        }
        match packer.filled() {
            // The buffer is too small for even one entry, which must not look like the end.
            0 if self.0.entry(inode, next).is_some() => Err(FsError::Invalid),
            filled => Ok((buffer.truncated(filled), next)),
        }
    }

    fn statistics(&self) -> Result<FsStatistics, FsError> {
        Ok(self.0.statistics())
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

    fn sync(&self) -> Result<(), FsError> {
        Ok(())
    }
}

/// Nothing is ever freed here, so there is nothing to keep.
struct Held(u64);

impl Hold for Held {
    fn inode(&self) -> RpcResult<u64> {
        Ok(self.0)
    }
}
