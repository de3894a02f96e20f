//! The layout of a program's memory.

use super::Result;
use crate::disk::Mapped;
use crate::errno::{EACCES, EEXIST, EINTR, EINVAL, ENODEV, ENOMEM};
use crate::files::Open;
use crate::memory::PAGE;
use crate::shared::{Source, Zeros};
use crate::task::Task;
use linux::layout::whole;
use linux::memory::Memory;
use linux::program::USER_END;

const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_SHARED: u64 = 0x1;
const MAP_PRIVATE: u64 = 0x2;
const PROT_WRITE: u64 = 2;
const MS_ASYNC: u64 = 1;
const MS_SYNC: u64 = 4;
const MAP_POPULATE: u64 = 0x8000;
const MADV_WILLNEED: u64 = 3;
const MADV_DONTNEED: u64 = 4;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
/// So many bytes of a range are worked on before a program is asked whether it is to end.
const PART: u64 = 1 << 30;

impl Task {
    /// `mmap`: address, length, protection, flags, descriptor, offset.
    pub(super) fn map(
        &mut self,
        [at, bytes, bits, flags, descriptor, offset]: [u64; 6],
    ) -> Result<u64> {
        let (is_shared, is_private) = (flags & MAP_SHARED != 0, flags & MAP_PRIVATE != 0);
        if is_shared == is_private || !offset.is_multiple_of(PAGE) {
            return Err(EINVAL);
        }
        let bytes = whole(bytes)?;
        let (source, page) = match flags & MAP_ANONYMOUS != 0 {
            true if is_shared => (Some(self.shared(bytes)?), 0),
            true => (None, 0),
            false => {
                let file = self.mappable(descriptor, bits, is_shared)?;
                (Some(Source::File(file, is_shared)), offset / PAGE)
            }
        };
        // As much as there is of memory can be written to, unless a program says that it will not.
        let is_own = is_private && bits & PROT_WRITE != 0 && flags & MAP_NORESERVE == 0;
        if is_own && bytes > self.process.system.total {
            return Err(ENOMEM);
        }
        let space = &self.program.mm.space;
        let _layout = space.layout();
        let at = self.make_room(at, bytes, flags)?;
        match source {
            Some(source) => space.map_source(at..at + bytes, (&source, page), bits)?,
            None => space.map_zero(at, bytes, bits)?,
        }
        if flags & MAP_POPULATE != 0 {
            // It is advice: what does not come so comes with a fault.
            let _ = space.request(at, bytes, || self.is_ending());
        }
        Ok(at)
    }

    /// Where a mapping comes, with nothing there any more.
    fn make_room(&self, at: u64, bytes: u64, flags: u64) -> Result<u64> {
        let space = &self.program.mm.space;
        if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) == 0 {
            return space.place(at, bytes);
        }
        let end = at.checked_add(bytes).filter(|end| *end <= USER_END);
        let end = end.ok_or(ENOMEM)?;
        if !at.is_multiple_of(PAGE) {
            return Err(EINVAL);
        }
        if flags & MAP_FIXED_NOREPLACE != 0 && !space.is_free(at..end) {
            return Err(EEXIST);
        }
        self.unmap_parts(at, bytes)?;
        Ok(at)
    }

    /// Zeros that will be shared with children.
    fn shared(&self, bytes: u64) -> Result<Source> {
        let objects = self.process.system.objects.as_ref().ok_or(ENODEV)?;
        Zeros::new(objects, bytes / PAGE).map(Source::Zeros)
    }

    /// The file of a descriptor that can be mapped so. Who could write to it may let a mapping that
    /// is shared be written to later.
    fn mappable(&self, descriptor: u64, bits: u64, is_shared: bool) -> Result<Mapped> {
        match &*self.opened(descriptor)? {
            Open::Disk(open) if !open.access.reads => Err(EACCES),
            Open::Disk(open) if is_shared && bits & PROT_WRITE != 0 && !open.access.writes => {
                Err(EACCES)
            }
            Open::Disk(open) => Ok(Mapped {
                file: open.file.clone(),
                is_changed: is_shared && open.access.writes,
            }),
            _ => Err(ENODEV),
        }
    }

    /// `msync`. What nobody asks for is stored after a while all the same.
    pub(super) fn store(&self, at: u64, bytes: u64, flags: u64) -> Result<u64> {
        let asked = flags & (MS_ASYNC | MS_SYNC);
        if !at.is_multiple_of(PAGE) || flags > 7 || asked == MS_ASYNC | MS_SYNC {
            return Err(EINVAL);
        }
        let space = &self.program.mm.space;
        if flags & MS_SYNC != 0 {
            space.commit(at, bytes, || self.is_ending())?;
        }
        let end = at.saturating_add(bytes);
        match space.reach(at..end) < end {
            true => Err(ENOMEM),
            false => Ok(0),
        }
    }

    /// `mprotect`. Nothing is mapped or copied by other threads meanwhile.
    pub(super) fn protect(&self, at: u64, bytes: u64, bits: u64) -> Result<u64> {
        let end = at.checked_add(bytes).ok_or(ENOMEM)?;
        if !at.is_multiple_of(PAGE) {
            return Err(EINVAL);
        }
        if end > USER_END {
            return Err(ENOMEM);
        }
        let space = &self.program.mm.space;
        let _layout = space.layout();
        // What is mapped in front of a hole is changed even so, as on Linux.
        let end = end.next_multiple_of(PAGE);
        let reach = space.reach(at..end);
        let change = |at, bytes| match space.protect(at, bytes, bits) {
            // The file was not opened for it.
            Err(EINVAL) => Err(EACCES),
            done => done,
        };
        self.in_parts(at, reach - at, change)?;
        match reach < end {
            true => Err(ENOMEM),
            false => Ok(0),
        }
    }

    pub(super) fn unmap(&mut self, at: u64, bytes: u64) -> Result<u64> {
        let bytes = whole(bytes)?;
        let _layout = self.program.mm.space.layout();
        self.unmap_parts(at, bytes).map(|()| 0)
    }

    /// `brk`: where the heap ends now, whatever was asked.
    pub(super) fn set_heap(&mut self, to: u64) -> Result<u64> {
        let mut layout = self.program.mm.space.layout();
        // More than there is of memory is no heap.
        let to = match to.saturating_sub(layout.heap()) > self.process.system.total {
            true => 0,
            false => to,
        };
        Ok(layout.set_heap(&self.program.mm.space, to))
    }

    pub(super) fn unmap_parts(&self, at: u64, bytes: u64) -> Result<()> {
        let end = at.checked_add(bytes).ok_or(EINVAL)?;
        if !at.is_multiple_of(PAGE) || end > USER_END {
            return Err(EINVAL);
        }
        self.in_parts(at, bytes, |at, bytes| {
            self.program.mm.space.unmap(at, bytes)
        })
    }

    /// Does something with a range that a program names, a part at a time, until the program is to
    /// end.
    fn in_parts(&self, at: u64, bytes: u64, each: impl Fn(u64, u64) -> Result<()>) -> Result<()> {
        for done in (0..bytes).step_by(PART as usize) {
            if self.is_ending() {
                return Err(EINTR);
            }
            each(at + done, PART.min(bytes - done))?;
        }
        Ok(())
    }

    /// `madvise`: where a program does not need pages any more it finds zeros, or what the file
    /// has, and what will be needed of files is asked for. Other advice is not taken.
    pub(super) fn advise(&self, at: u64, bytes: u64, what: u64) -> Result<u64> {
        if !at.is_multiple_of(PAGE) {
            return Err(EINVAL);
        }
        let space = &self.program.mm.space;
        if what == MADV_WILLNEED {
            return space
                .request(at, whole(bytes)?, || self.is_ending())
                .map(|()| 0);
        }
        if what != MADV_DONTNEED || bytes == 0 {
            return Ok(0);
        }
        let bytes = whole(bytes)?;
        let end = at.checked_add(bytes).ok_or(EINVAL)?;
        if end > USER_END {
            return Err(ENOMEM);
        }
        self.in_parts(at, bytes, |at, bytes| space.discard(at, bytes))?;
        match space.reach(at..end) < end {
            true => Err(ENOMEM),
            false => Ok(0),
        }
    }
}
