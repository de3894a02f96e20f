//! The layout of a program's memory.

use super::Result;
use crate::disk::DiskFile;
use crate::errno::{EACCES, EINVAL, ENODEV, ENOMEM};
use crate::files::Open;
use crate::memory::{self, MAPPINGS_END, PAGE};
use crate::task::Task;
use alloc::sync::Arc;
use domain_rt::user;

const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_SHARED: u64 = 0x1;
const MAP_PRIVATE: u64 = 0x2;
const PROT_WRITE: u64 = 2;
const MADV_DONTNEED: u64 = 4;

/// Bytes of whole pages.
fn whole(bytes: u64) -> Result<u64> {
    let bytes = bytes.checked_next_multiple_of(PAGE);
    bytes.filter(|bytes| *bytes > 0).ok_or(EINVAL)
}

impl Task {
    /// `mmap`: address, length, protection, flags, descriptor, offset.
    pub(super) fn map(
        &mut self,
        [at, bytes, bits, flags, descriptor, offset]: [u64; 6],
    ) -> Result<u64> {
        let (is_shared, is_private) = (flags & MAP_SHARED != 0, flags & MAP_PRIVATE != 0);
        let file = match flags & MAP_ANONYMOUS != 0 {
            true if !is_private => return Err(ENODEV),
            true => None,
            false => Some(self.mappable(descriptor, bits, is_shared)?),
        };
        if is_shared == is_private || file.is_some() && !offset.is_multiple_of(PAGE) {
            return Err(EINVAL);
        }
        let bytes = whole(bytes)?;
        let mut layout = self.process.layout.lock();
        let space = &self.program.space;
        let at = match flags & MAP_FIXED != 0 {
            true => {
                memory::unmap(space, at, bytes)?;
                at
            }
            false => layout.mappings.checked_sub(bytes).ok_or(ENOMEM)?,
        };
        match file {
            Some(file) => {
                let from = (&file, offset / PAGE);
                memory::map_file(space, (at, bytes), from, (bits, is_shared))?;
            }
            None => memory::map_zero(space, at, bytes, bits)?,
        }
        if flags & MAP_FIXED == 0 {
            layout.mappings = at;
        }
        Ok(at)
    }

    /// The file of a descriptor that can be mapped so: none is written to.
    fn mappable(&self, descriptor: u64, bits: u64, is_shared: bool) -> Result<Arc<DiskFile>> {
        match &*self.opened(descriptor)? {
            Open::Disk(..) if is_shared && bits & PROT_WRITE != 0 => Err(EACCES),
            Open::Disk(file, _) => Ok(file.clone()),
            _ => Err(ENODEV),
        }
    }

    pub(super) fn unmap(&mut self, at: u64, bytes: u64) -> Result<u64> {
        let bytes = whole(bytes)?;
        let mut layout = self.process.layout.lock();
        memory::unmap(&self.program.space, at, bytes)?;
        // The addresses of the last mapping can be given out again.
        if at == layout.mappings && bytes <= MAPPINGS_END - at {
            layout.mappings += bytes;
        }
        Ok(0)
    }

    /// `brk`: where the heap ends now, whatever was asked.
    pub(super) fn set_heap(&mut self, to: u64) -> Result<u64> {
        let mut layout = self.process.layout.lock();
        if to < layout.heap || to > layout.mappings {
            return Ok(layout.heap_end);
        }
        let [old, new] = [layout.heap_end, to].map(|end| end.next_multiple_of(PAGE));
        let space = &self.program.space;
        let done = match new > old {
            true => memory::map_zero(space, old, new - old, 3),
            false => memory::unmap(space, new, old - new),
        };
        if new == old || done.is_ok() {
            layout.heap_end = to;
        }
        Ok(layout.heap_end)
    }

    /// `madvise`: who says that he does not need a page any more finds zeros there. Other advice is
    /// not taken.
    pub(super) fn advise(&self, at: u64, bytes: u64, what: u64) -> Result<u64> {
        if !at.is_multiple_of(PAGE) {
            return Err(EINVAL);
        }
        if what != MADV_DONTNEED || bytes == 0 {
            return Ok(0);
        }
        let space = &self.program.space;
        for page in 0..whole(bytes)? / PAGE {
            let at = at.wrapping_add(page * PAGE);
            // What has not come yet is zeros. A file stays as it is: the advice is not taken.
            if !space.has_file(at) && user::read(space, at, &mut [0]) == 1 {
                memory::write(space, at, &[0; PAGE as usize])?;
            }
        }
        Ok(0)
    }
}
