//! `/proc`: what the system knows of itself, as files that cannot be written.
//!
//! A file system of this domain's own, behind a handle like all others. A file has as many bytes as
//! its text has at that moment; a reader that takes it in several pieces may see two moments.

use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{FileKind, FsError, FsStatistics, Metadata, RVec, RpcError, Text};
use readonly::{ROOT, Tree};

use crate::proc_text::{FILES, File};
use crate::system::System;

/// The tree: a directory with files, whose inodes follow its own.
pub struct Proc {
    system: Arc<System>,
}

impl Proc {
    /// Shows `system`.
    pub fn new(system: Arc<System>) -> Self {
        Proc { system }
    }

    fn text(&self, inode: u64) -> Result<Vec<u8>, FsError> {
        let text = file(inode)?.text(&self.system);
        text.ok_or(FsError::Rpc(RpcError::NoMemory))
    }
}

fn file(inode: u64) -> Result<&'static File, FsError> {
    let at = inode.checked_sub(ROOT + 1).ok_or(FsError::NotFound)?;
    FILES.get(at as usize).ok_or(FsError::NotFound)
}

impl Tree for Proc {
    fn is_directory(&self, inode: u64) -> Result<bool, FsError> {
        match inode {
            ROOT => Ok(true),
            _ => file(inode).map(|_| false),
        }
    }

    fn entry(&self, _directory: u64, position: u64) -> Option<(u64, &[u8])> {
        match position {
            0 => Some((ROOT, b".")),
            1 => Some((ROOT, b"..")),
            _ => {
                let inode = ROOT + position - 1;
                file(inode).ok().map(|file| (inode, file.name.as_bytes()))
            }
        }
    }

    fn look_up(&self, directory: u64, name: &[u8]) -> Result<u64, FsError> {
        if name.len() > 255 {
            return Err(FsError::NameTooLong);
        }
        let mut all = (0..).map_while(|position| self.entry(directory, position));
        let found = all.find(|(_, known)| *known == name);
        found.map(|(inode, _)| inode).ok_or(FsError::NotFound)
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        let (kind, mode, links, size) = match inode {
            ROOT => (FileKind::Directory, 0o555, 2, 0),
            _ => {
                let text = self.text(inode)?;
                (FileKind::Regular, 0o444, 1, text.len() as u64)
            }
        };
        let now = domain_rt::time::wall_coarse();
        Ok(Metadata {
            inode,
            kind,
            mode,
            links,
            size,
            allocated: 0,
            modified: now,
            accessed: now,
            changed: now,
            user: 0,
            group: 0,
            device: 0,
            generation: 0,
        })
    }

    fn read(&self, inode: u64, offset: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        let text = self.text(inode)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = text.get(start..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(buffer.truncated(count))
    }

    fn statistics(&self) -> FsStatistics {
        FsStatistics {
            kind: Text::new("proc"),
            block_size: 4096,
            blocks: 0,
            free_blocks: 0,
            inodes: FILES.len() as u64 + 1,
            free_inodes: 0,
            read_only: true,
        }
    }
}
