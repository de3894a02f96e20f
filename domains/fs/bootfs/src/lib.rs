//! The boot file system: the files of the boot archive under `boot/`, read-only.
//!
//! The tree is built once, when the domain starts; contents are read from the archive when they are
//! asked for. Nothing ever changes, so there are no locks, and a restarted instance has the same
//! inode numbers.
#![no_std]
#![forbid(unsafe_code)]

use domain_rt::{log, memory};
use interfaces::{
    Archive, FileKind, FileSystem, FsError, FsStatistics, Handle, Metadata, RVec, RpcResult, Text,
};
use readonly::{ROOT, ReadOnly, Tree};
use vfs::files::{Files, Kind};

/// What the paths of the archive that are shown start with.
const PREFIX: &str = "boot/";

/// Size that directories are said to have, and unit of allocation.
const BLOCK: u64 = 4096;

/// Starts the file system.
///
/// # Errors
/// Those of the archive.
pub fn start(archive: Handle<dyn Archive>) -> RpcResult<Handle<dyn FileSystem>> {
    memory::reserve(memory::SERVICE)?;
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
    Handle::<dyn FileSystem>::new(ReadOnly(BootFs { archive, files }))
}

struct BootFs {
    archive: Handle<dyn Archive>,
    files: Files,
}

impl BootFs {
    fn kind(&self, inode: u64) -> Result<Kind, FsError> {
        self.files.kind(inode).ok_or(FsError::NotFound)
    }
}

impl Tree for BootFs {
    fn is_directory(&self, inode: u64) -> Result<bool, FsError> {
        Ok(self.kind(inode)? == Kind::Directory)
    }

    fn entry(&self, directory: u64, position: u64) -> Option<(u64, &[u8])> {
        self.files.entry(directory, position)
    }

    fn look_up(&self, directory: u64, name: &[u8]) -> Result<u64, FsError> {
        self.files.look_up(directory, name).ok_or(FsError::NotFound)
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
            accessed: 0,
            changed: 0,
            user: 0,
            group: 0,
            device: 0,
            generation: 0,
        })
    }

    fn read(&self, file: u64, offset: u64, buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        match self.kind(file)? {
            Kind::Directory => Err(FsError::IsDirectory),
            Kind::File { index, .. } => Ok(self.archive.read(index, offset, buffer)?),
        }
    }

    fn statistics(&self) -> FsStatistics {
        let sizes = (ROOT..)
            .map_while(|inode| self.files.kind(inode))
            .map(|kind| match kind {
                Kind::Directory => 1,
                Kind::File { size, .. } => size.div_ceil(BLOCK),
            });
        FsStatistics {
            kind: Text::new("bootfs"),
            block_size: BLOCK as u32,
            blocks: sizes.sum(),
            free_blocks: 0,
            inodes: self.files.len() as u64,
            free_inodes: 0,
            read_only: true,
        }
    }
}
