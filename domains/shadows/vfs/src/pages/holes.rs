//! Where files have holes: as the file system says, but for pages that it does not know of yet.

use interfaces::{FsError, PageKind};

use super::file::File;
use super::{PAGE, Pages, memory_error};
use crate::shadow::Shadow;

/// Whether a page is one that has to be stored, or is being.
fn is_dirty(file: &File, page: u64) -> Result<bool, FsError> {
    let next = file.owner.next(page, PageKind::Dirty);
    Ok(next.map_err(memory_error)? == Some(page))
}

impl Pages {
    /// The first byte from `offset` on that is no part of a hole.
    pub fn next_data(
        &self,
        shadow: &Shadow,
        inode: u64,
        offset: u64,
    ) -> Result<Option<u64>, FsError> {
        let stored = || {
            shadow.ask(inode, |instance, real| {
                instance.fs().next_data(real, offset)
            })
        };
        let Some(file) = self.known(inode) else {
            return stored();
        };
        let _state = file.lock(shadow)?;
        let size = file.record.lock().size;
        if offset >= size {
            return Ok(None);
        }
        let dirty = file.owner.next(offset / PAGE, PageKind::Dirty);
        let dirty = dirty.map_err(memory_error)?;
        let dirty = dirty.map(|page| offset.max(page * PAGE));
        let first = stored()?.into_iter().chain(dirty).min();
        Ok(first.filter(|at| *at < size))
    }

    /// The first byte from `offset` on that is part of a hole, or the end.
    pub fn next_hole(
        &self,
        shadow: &Shadow,
        inode: u64,
        offset: u64,
    ) -> Result<Option<u64>, FsError> {
        let hole = |at| shadow.ask(inode, |instance, real| instance.fs().next_hole(real, at));
        let data = |at| shadow.ask(inode, |instance, real| instance.fs().next_data(real, at));
        let Some(file) = self.known(inode) else {
            return hole(offset);
        };
        let _state = file.lock(shadow)?;
        let size = file.record.lock().size;
        if offset >= size {
            return Ok(None);
        }
        let mut at = offset;
        while at < size {
            // Behind the end of what the file system has there is nothing but a hole.
            at = hole(at)?.unwrap_or(at);
            let end = data(at)?.unwrap_or(size).min(size);
            while at < end {
                if !is_dirty(&file, at / PAGE)? {
                    return Ok(Some(at));
                }
                at = (at / PAGE + 1) * PAGE;
            }
        }
        Ok(Some(size))
    }
}
