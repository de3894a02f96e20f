//! Writing into pages.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use domain_rt::sync::MutexGuard;
use domain_rt::time;
use interfaces::{FsError, MemoryError, RVec, RpcError};
use redo::{Action, Host as _, Lane};

use super::file::{File, State};
use super::storing::Who;
use super::{PAGE, Pages, memory_error};
use crate::shadow::Shadow;

/// Files that would be longer go the old way: the file system knows how long they may be.
pub(super) const LONGEST: u64 = 1 << 30;

/// What is to be done for a page that is written to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    /// It is there.
    Present,
    /// It is not, and nothing of it is needed.
    Fresh,
    /// It is not, and some of it stays.
    Partial,
}

impl Pages {
    /// Writes into pages; where, and how many bytes. `None`: it is to be done the old way.
    ///
    /// # Errors
    /// The file system's; no memory.
    pub fn write(
        &self,
        shadow: &Shadow,
        inode: u64,
        offset: Option<u64>,
        data: &RVec<u8>,
    ) -> Result<Option<(u64, u64)>, FsError> {
        self.write_at(shadow, inode, (offset, None), data)
    }

    /// As [`write`](Self::write), at the end, for who came through a lane.
    ///
    /// # Errors
    /// As there.
    pub fn append(
        &self,
        shadow: &Shadow,
        inode: u64,
        data: &RVec<u8>,
        lane: Option<Lane>,
    ) -> Result<Option<(u64, u64)>, FsError> {
        self.write_at(shadow, inode, (None, lane), data)
    }

    fn write_at(
        &self,
        shadow: &Shadow,
        inode: u64,
        (offset, lane): (Option<u64>, Option<Lane>),
        data: &RVec<u8>,
    ) -> Result<Option<(u64, u64)>, FsError> {
        let length = data.len() as u64;
        let reach = offset.unwrap_or(0).saturating_add(length);
        let is_meant = self.known(inode).is_some() || reach > self.small;
        if self.objects.is_none() || length == 0 || !is_meant || reach > LONGEST {
            return Ok(None);
        }
        let pages = length / PAGE + 2;
        if pages > self.most / 4 || !self.may_take(shadow, pages)? {
            return Ok(None);
        }
        self.make_way(shadow, pages)?;
        for _ in 0..respawn::ATTEMPTS {
            // Where there is no room for one more file, it goes the old way.
            let Ok(file) = self.file(shadow, inode) else {
                return Ok(None);
            };
            let mut state = file.lock(shadow)?;
            self.enliven(shadow, &file)?;
            // It may have been forgotten before it counted as held.
            if self
                .known(inode)
                .is_some_and(|known| Arc::ptr_eq(&known, &file))
            {
                let written = self.write_held(shadow, &file, &mut state, (offset, lane), data);
                if written.is_err() {
                    self.end_life(shadow, &file, &mut state)?;
                }
                return written;
            }
            self.end_life(shadow, &file, &mut state)?;
        }
        Ok(None)
    }

    /// Sees to it that there is memory for more dirty pages.
    pub(super) fn make_way(&self, shadow: &Shadow, pages: u64) -> Result<(), FsError> {
        let dirty = self.dirty.load(Ordering::Relaxed) + pages;
        if dirty > self.most / 2 {
            self.bring_to_disk(shadow, Who::Writer)?;
        } else if dirty > self.most / 4 {
            self.call_keeper();
        }
        self.stay_within(pages)
    }

    fn write_held(
        &self,
        shadow: &Shadow,
        file: &File,
        state: &mut MutexGuard<'_, State>,
        (offset, lane): (Option<u64>, Option<Lane>),
        data: &RVec<u8>,
    ) -> Result<Option<(u64, u64)>, FsError> {
        let size = file.record.lock().size;
        let at = offset.unwrap_or(size);
        let end = at.saturating_add(data.len() as u64);
        if end > LONGEST {
            return Ok(None);
        }
        if end > size {
            self.clear_behind_end(file, state)?;
        }
        if let Some(lane) = lane {
            shadow.plan(lane, file.inode, at)?;
        }
        if at > size {
            // A hole is the file system's affair, which knows of it before the bytes behind.
            file.is_torn.store(true, Ordering::Relaxed);
            let hole = Action::Truncate { size: at };
            shadow.engine().change(shadow, hole, [file.inode; 2])?;
            file.set_record(|record| record.size = at)?;
        }
        if end.div_ceil(PAGE) > state.pages {
            file.set_pages(state, end.div_ceil(PAGE))?;
        }
        let put = self.put(shadow, file, state, at, data);
        let noted = match put {
            Ok(done) => file.set_record(|record| {
                record.size = record.size.max(at + done);
                record.modified = time::wall_seconds();
            }),
            Err(_) => Ok(()),
        };
        let pages = file.record.lock().size.div_ceil(PAGE);
        if pages < state.pages {
            file.set_pages(state, pages)?;
        }
        noted?;
        if let (Some(lane), Ok(done)) = (lane, &put) {
            shadow.wrote(lane, at, *done);
        }
        put.map(|done| Some((at, done)))
    }

    /// Puts bytes into pages; how many, an error only where not one could be put.
    fn put(
        &self,
        shadow: &Shadow,
        file: &File,
        state: &mut State,
        at: u64,
        data: &RVec<u8>,
    ) -> Result<u64, FsError> {
        let (mut done, end) = (0, at + data.len() as u64);
        while at + done < end {
            match self.put_run(shadow, file, state, (at, done), data) {
                Ok(more) => done += more,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Puts bytes, after the first `done`, into pages of one kind; how many bytes.
    fn put_run(
        &self,
        shadow: &Shadow,
        file: &File,
        state: &mut State,
        (at, done): (u64, u64),
        data: &RVec<u8>,
    ) -> Result<u64, FsError> {
        let (from, end) = (at + done, at + data.len() as u64);
        let first = from / PAGE;
        let mut kind = self.kind(file, first, from, end)?;
        if kind == Page::Partial {
            let begun = file.owner.load(first, 1).map_err(memory_error)?;
            self.load(shadow, file, first, begun)?;
            kind = Page::Present;
        }
        let mut behind = first + 1;
        while behind * PAGE < end && self.kind(file, behind, from, end)? == kind {
            behind += 1;
        }
        if kind == Page::Fresh {
            let begun = file.owner.load(first, behind - first);
            behind = first + begun.map_err(memory_error)?;
            self.there.fetch_add(behind - first, Ordering::Relaxed);
        }
        let until = end.min(behind * PAGE);
        let bytes = (from - at) as usize..(until - at) as usize;
        let own;
        let bytes = match bytes.len() == data.len() {
            true => data,
            false => {
                own = RVec::from_slice(&data[bytes])?;
                &own
            }
        };
        match kind {
            Page::Fresh => self.fill(file, state, (first, behind), from, bytes),
            _ => self.overwrite(file, state, (first, behind), from, bytes),
        }
    }

    /// What a page is for a write of the bytes `from..end`.
    fn kind(&self, file: &File, page: u64, from: u64, end: u64) -> Result<Page, FsError> {
        if file.owner.tags(page).map_err(memory_error)?.present {
            return Ok(Page::Present);
        }
        let size = file.record.lock().size;
        let start = page * PAGE;
        let is_whole = from <= start && end >= (start + PAGE).min(size.max(start));
        Ok(match is_whole && from <= start {
            true => Page::Fresh,
            false => Page::Partial,
        })
    }

    /// Gives pages that are being loaded, as zeros so far, their bytes.
    fn fill(
        &self,
        file: &File,
        state: &mut State,
        (first, behind): (u64, u64),
        from: u64,
        bytes: &RVec<u8>,
    ) -> Result<u64, FsError> {
        let loading = super::Loading {
            file,
            first,
            count: behind - first,
        };
        let filled = file.view.fill(from, bytes).map_err(memory_error)?;
        if filled != bytes.len() as u64 {
            return Err(FsError::Device);
        }
        loading.end()?;
        // One byte of each makes it dirty.
        let mut byte = RVec::from_slice(&[0])?;
        for page in first..behind {
            let at = from.max(page * PAGE);
            byte[0] = bytes[(at - from) as usize];
            file.view.write(at, &byte).map_err(memory_error)?;
        }
        self.count_dirty(state, behind - first);
        Ok(filled)
    }

    fn overwrite(
        &self,
        file: &File,
        state: &mut State,
        (first, behind): (u64, u64),
        from: u64,
        bytes: &RVec<u8>,
    ) -> Result<u64, FsError> {
        let mut clean = 0;
        for page in first..behind {
            clean += u64::from(!file.owner.tags(page).map_err(memory_error)?.dirty);
        }
        self.count_dirty(state, clean);
        match file.view.write(from, bytes) {
            Ok(0) => Err(RpcError::NoMemory.into()),
            Ok(count) => Ok(count),
            // It went between the look and here.
            Err(MemoryError::Absent | MemoryError::Loading) => Err(FsError::Device),
            Err(error) => Err(memory_error(error)),
        }
    }
}
