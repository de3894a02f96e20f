//! What is told of whole file systems, and the attributes that files do not have.

use super::{AT_FDCWD, Result};
use crate::disk::Disk;
use crate::errno::{EBADF, ENOENT, EOPNOTSUPP};
use crate::files::Open;
use crate::task::Task;
use crate::walk::Node;
use alloc::sync::Arc;

/// The kinds of file systems (`linux/magic.h`): ext2 to ext4, `/proc`, files in memory.
const EXT: u64 = 0xef53;
const PROC: u64 = 0x9fa0;
/// The longest name.
const LONGEST: u64 = 255;

impl Task {
    /// `statfs`.
    pub(super) fn volume_at(&self, path: u64, at: u64) -> Result<u64> {
        let path = self.path(AT_FDCWD, path)?;
        let is_on_disk = self.walked(&path, true, |_, led, _| {
            Ok(matches!(led.node.as_ref().ok_or(ENOENT)?, Node::Disk(_)))
        })?;
        let disk = self.process.system.disk.as_ref().filter(|_| is_on_disk);
        self.put_volume(disk, at)
    }

    /// `fstatfs`.
    pub(super) fn volume_of(&self, descriptor: u64, at: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let is_on_disk = matches!(&*open, Open::Disk(_)) || open.with_node(|_, _| Ok(())).is_ok();
        let disk = self.process.system.disk.as_ref().filter(|_| is_on_disk);
        self.put_volume(disk, at)
    }

    /// Puts `struct statfs` (`asm-generic/statfs.h`).
    fn put_volume(&self, disk: Option<&Arc<Disk>>, at: u64) -> Result<u64> {
        let mut told = [0; 15];
        (told[0], told[1], told[8], told[9]) = (PROC, 4096, LONGEST, 4096);
        if let Some(disk) = disk {
            let of = disk.statistics()?;
            let block = u64::from(of.block_size);
            (told[0], told[1], told[9]) = (EXT, block, block);
            (told[2], told[3], told[4]) = (of.blocks, of.free_blocks, of.free_blocks);
            (told[5], told[6]) = (of.inodes, of.free_inodes);
            // Read only, relative times of access.
            told[10] = u64::from(of.read_only) | 0x1020;
        }
        self.put(at, &told)
    }

    /// `getxattr` and its kin, by path: no file has any.
    pub(super) fn extended_at(&self, path: u64, follows: bool) -> Result<u64> {
        let path = self.path(AT_FDCWD, path)?;
        self.walked(&path, follows, |_, led, _| match led.node {
            Some(_) => Err(EOPNOTSUPP),
            None => Err(ENOENT),
        })
    }

    /// `fgetxattr` and its kin.
    pub(super) fn extended_of(&self, descriptor: u64) -> Result<u64> {
        self.opened(descriptor).map_err(|_| EBADF)?;
        Err(EOPNOTSUPP)
    }
}
