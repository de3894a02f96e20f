//! What brings files to the disk, and asks for what will be needed of them.

use super::Result;
use crate::disk::{Disk, OnDisk};
use crate::errno::{EBADF, EINVAL, ESPIPE, Error};
use crate::files::Open;
use crate::memory::PAGE;
use crate::task::Task;

/// What `sync_file_range` can do: wait, write, wait.
const SYNC_ALL: u64 = 7;
/// The advice of `fadvise64` that something will be needed.
const FADV_WILLNEED: u64 = 3;

impl Task {
    /// `fsync` and `fdatasync`: of a directory all of the disk is committed.
    pub(super) fn commit(&self, descriptor: u64, data_only: bool) -> Result<u64> {
        match &*self.opened(descriptor)? {
            Open::Disk(open) => open.file.commit(data_only).map(|()| 0),
            Open::Directory(_) | Open::File(..) => self.sync_disk(Disk::commit),
            _ => Err(EINVAL),
        }
    }

    /// Has the disk do something, if there is one.
    pub(super) fn sync_disk(
        &self,
        how: fn(&Disk) -> core::result::Result<(), Error>,
    ) -> Result<u64> {
        let disk = self.process.system.disk.as_ref();
        disk.map_or(Ok(()), |disk| how(disk)).map(|()| 0)
    }

    /// `sync_file_range`: descriptor, offset, bytes (0: up to the end), what to do. Who has it
    /// written waits until it is, and is told more than he asked for: it would survive a power cut.
    pub(super) fn sync_range(
        &self,
        descriptor: u64,
        offset: u64,
        bytes: u64,
        how: u64,
    ) -> Result<u64> {
        let bytes = if bytes == 0 { i64::MAX as u64 } else { bytes };
        let end = offset.checked_add(bytes).ok_or(EINVAL)?;
        if offset > i64::MAX as u64 || how & !SYNC_ALL != 0 {
            return Err(EINVAL);
        }
        match &*self.opened(descriptor)? {
            Open::Disk(_) if how == 0 => Ok(0),
            Open::Disk(open) => open.file.commit_data(offset, end).map(|()| 0),
            Open::Directory(_) | Open::File(..) => Ok(0),
            _ => Err(ESPIPE),
        }
    }

    /// `readahead`: descriptor, offset, bytes.
    pub(super) fn read_ahead(&self, descriptor: u64, offset: u64, bytes: u64) -> Result<u64> {
        match &*self.opened(descriptor)? {
            Open::Disk(open) if !open.access.reads => Err(EBADF),
            Open::Disk(open) => ask_for(open, offset, bytes),
            // It is in memory.
            Open::File(..) => Ok(0),
            _ => Err(EINVAL),
        }
    }

    /// `fadvise64`: descriptor, offset, bytes (0: up to the end), advice. What will be needed is
    /// asked for; other advice is not taken.
    pub(super) fn advise_file(
        &self,
        descriptor: u64,
        offset: u64,
        bytes: u64,
        what: u64,
    ) -> Result<u64> {
        let bytes = if bytes == 0 { i64::MAX as u64 } else { bytes };
        match &*self.opened(descriptor)? {
            Open::Disk(_) | Open::File(..) | Open::Directory(_) if what > 5 => Err(EINVAL),
            Open::Disk(open) if what == FADV_WILLNEED => ask_for(open, offset, bytes),
            Open::Disk(_) | Open::File(..) | Open::Directory(_) => Ok(0),
            _ => Err(ESPIPE),
        }
    }

    /// `syncfs`.
    pub(super) fn sync_of(&self, descriptor: u64) -> Result<u64> {
        self.opened(descriptor).map_err(|_| EBADF)?;
        self.sync_disk(Disk::commit)
    }
}

/// Asks for the pages of an open file that have these bytes.
fn ask_for(open: &OnDisk, offset: u64, bytes: u64) -> Result<u64> {
    let first = offset / PAGE;
    let end = offset.saturating_add(bytes).div_ceil(PAGE);
    open.file.request(first, end - first).map(|()| 0)
}
