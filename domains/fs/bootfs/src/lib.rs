//! The boot file system: the files of the boot archive under `boot/`, read-only.
//!
//! The tree is built once, when the domain starts; contents are read from the archive when they are asked
//! for. Nothing ever changes, so there are no locks, and a restarted instance has the same inode numbers.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use domain_rt::log;
use interfaces::{
    Archive, FileKind, FileSystem, FsError, FsStatistics, Handle, Hold, Metadata, RVec, RpcResult,
};
use vfs::entries::{self, Packer};
use vfs::files::{Files, Kind, ROOT};

/// What the paths of the archive that are shown start with.
const PREFIX: &str = "boot/";

/// Size that directories are said to have, and unit of allocation.
const BLOCK: u64 = 4096;

/// Starts the file system.
///
/// # Errors
/// Those of the archive.
pub fn start(archive: Handle<dyn Archive>) -> RpcResult<Handle<dyn FileSystem>> {
    let mut files = Files::new();
    for index in 0..u32::MAX {
        let Some(entry) = archive.entry(index)? else {
            break;
        };
        let Some(path) = entry.path.as_str().strip_prefix(PREFIX) else {
            continue;
        };
        if let Err(error) = files.add(path.as_bytes(), index, entry.size) {
            log!("{PREFIX}{path} is left out: {error:?}");
        }
    }
    Handle::<dyn FileSystem>::new(BootFs { archive, files })
}

struct BootFs {
    archive: Handle<dyn Archive>,
    files: Files,
}

impl BootFs {
    fn kind(&self, inode: u64) -> Result<Kind, FsError> {
        self.files.kind(inode).ok_or(FsError::NotFound)
    }

    /// Checks that the inode is a directory.
    fn directory(&self, inode: u64) -> Result<(), FsError> {
        match self.kind(inode)? {
            Kind::Directory => Ok(()),
            Kind::File { .. } => Err(FsError::NotDirectory),
        }
    }

    fn packed_kind(&self, inode: u64) -> u8 {
        match self.files.kind(inode) {
            Some(Kind::Directory) => entries::DIRECTORY,
            Some(Kind::File { .. }) => entries::REGULAR,
            None => entries::OTHER,
        }
    }
}

impl FileSystem for BootFs {
    fn root(&self) -> Result<u64, FsError> {
        Ok(ROOT)
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        let (kind, size) = match self.kind(inode)? {
            Kind::Directory => (FileKind::Directory, BLOCK),
            Kind::File { size, .. } => (FileKind::Regular, size),
        };
        Ok(Metadata {
            inode,
            kind,
            mode: 0o555,
            links: self.files.links(inode),
            size,
            allocated: size.next_multiple_of(BLOCK),
            modified: 0,
            user: 0,
            group: 0,
        })
    }

    fn lookup(&self, directory: u64, name: &RVec<u8>) -> Result<u64, FsError> {
        self.directory(directory)?;
        self.files.look_up(directory, name).ok_or(FsError::NotFound)
    }

    fn hold(&self, inode: u64) -> Result<Handle<dyn Hold>, FsError> {
        self.kind(inode)?;
        Ok(Handle::<dyn Hold>::new(Held(inode))?)
    }

    fn read(&self, inode: u64, offset: u64, buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        match self.kind(inode)? {
            Kind::Directory => Err(FsError::IsDirectory),
            Kind::File { index, .. } => Ok(self.archive.read(index, offset, buffer)?),
        }
    }

    fn write(&self, _inode: u64, _offset: u64, _data: &RVec<u8>) -> Result<u64, FsError> {
        Err(FsError::ReadOnly)
    }

    fn append(&self, _inode: u64, _data: &RVec<u8>) -> Result<(u64, u64), FsError> {
        Err(FsError::ReadOnly)
    }

    fn truncate(&self, _inode: u64, _size: u64) -> Result<(), FsError> {
        Err(FsError::ReadOnly)
    }

    fn create(
        &self,
        _directory: u64,
        _name: &RVec<u8>,
        _kind: FileKind,
        _mode: u16,
    ) -> Result<u64, FsError> {
        Err(FsError::ReadOnly)
    }

    fn symlink(
        &self,
        _directory: u64,
        _name: &RVec<u8>,
        _target: &RVec<u8>,
    ) -> Result<u64, FsError> {
        Err(FsError::ReadOnly)
    }

    fn read_link(&self, inode: u64, _buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        self.kind(inode)?;
        Err(FsError::Invalid)
    }

    fn link(&self, _directory: u64, _name: &RVec<u8>, _inode: u64) -> Result<(), FsError> {
        Err(FsError::ReadOnly)
    }

    fn unlink(&self, _directory: u64, _name: &RVec<u8>) -> Result<(), FsError> {
        Err(FsError::ReadOnly)
    }

    fn remove_directory(&self, _directory: u64, _name: &RVec<u8>) -> Result<(), FsError> {
        Err(FsError::ReadOnly)
    }

    fn rename(
        &self,
        _from: u64,
        _name: &RVec<u8>,
        _to: u64,
        _new_name: &RVec<u8>,
    ) -> Result<(), FsError> {
        Err(FsError::ReadOnly)
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
        while let Some((child, name)) = self.files.entry(inode, next) {
            if !packer.add(child, self.packed_kind(child), name) {
                break;
            }
            next += 1;
        }
        let filled = packer.filled();
        if filled == 0 && self.files.entry(inode, next).is_some() {
            // The buffer is too small for even one entry, which must not look like the end.
            return Err(FsError::Invalid);
        }
        Ok((buffer.truncated(filled), next))
    }

    fn set_mode(&self, _inode: u64, _mode: u16) -> Result<(), FsError> {
        Err(FsError::ReadOnly)
    }

    fn statistics(&self) -> Result<FsStatistics, FsError> {
        let sizes = (ROOT..)
            .map_while(|inode| self.files.kind(inode))
            .map(|kind| match kind {
                Kind::Directory => 1,
                Kind::File { size, .. } => size.div_ceil(BLOCK),
            });
        Ok(FsStatistics {
            block_size: BLOCK as u32,
            blocks: sizes.sum(),
            free_blocks: 0,
            inodes: self.files.len() as u64,
            free_inodes: 0,
            read_only: true,
        })
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
