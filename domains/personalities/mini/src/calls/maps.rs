//! The layout of a program's memory.

use super::Result;
use crate::errno::{EINVAL, ENODEV, ENOMEM};
use crate::memory::{self, MAPPINGS_END, PAGE};
use crate::task::Task;
use domain_rt::user;

const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_PRIVATE: u64 = 0x2;
const MADV_DONTNEED: u64 = 4;

/// Bytes of whole pages.
fn whole(bytes: u64) -> Result<u64> {
    let bytes = bytes.checked_next_multiple_of(PAGE);
    bytes.filter(|bytes| *bytes > 0).ok_or(EINVAL)
}

impl Task {
    pub(super) fn map(&mut self, at: u64, bytes: u64, bits: u64, flags: u64) -> Result<u64> {
        if flags & MAP_ANONYMOUS == 0 || flags & MAP_PRIVATE == 0 {
            return Err(ENODEV);
        }
        let bytes = whole(bytes)?;
        let mut layout = self.process.layout.lock();
        if flags & MAP_FIXED != 0 {
            memory::unmap(&self.program.space, at, bytes)?;
            memory::map_zero(&self.program.space, at, bytes, bits)?;
            return Ok(at);
        }
        let free = layout.mappings.checked_sub(bytes).ok_or(ENOMEM)?;
        layout.mappings = free;
        memory::map_zero(&self.program.space, free, bytes, bits)?;
        Ok(free)
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
            // What has not come yet is zeros.
            if user::read(space, at, &mut [0]) == 1 {
                memory::write(space, at, &[0; PAGE as usize])?;
            }
        }
        Ok(0)
    }
}
