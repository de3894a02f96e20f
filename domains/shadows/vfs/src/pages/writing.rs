//! Writing into pages.

use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::Ordering;

use domain_rt::sync::MutexGuard;
use domain_rt::time;
use interfaces::{FsError, MemoryError, RpcError};
use redo::{Host as _, Lane};

use super::data::Data;
use super::file::{File, Loading, State};
use super::loading::Alone;
use super::storing::Who;
use super::{PAGE, PATIENCE, Pages, memory_error};
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

/// The lock of a file, and those pages alone that a write of `length` bytes concerns. While one of
/// them is being loaded others may write to the file, for some time.
fn lock_to_write<'a>(
    shadow: &Shadow,
    file: &'a File,
    offset: Option<u64>,
    length: u64,
) -> Result<(MutexGuard<'a, State>, Alone<'a>), FsError> {
    let concerned = || {
        let size = file.record.lock().size;
        let at = offset.unwrap_or(size);
        match at.saturating_add(length) {
            end if end <= size => at / PAGE..end.div_ceil(PAGE),
            // The last page, too: what it has behind the end counts now.
            _ => at.min(size) / PAGE..u64::MAX,
        }
    };
    for _ in 0..PATIENCE {
        let state = file.lock(shadow)?;
        let pages = concerned();
        if let Some(alone) = file.try_alone(&state, &pages) {
            return Ok((state, alone));
        }
        drop(state);
        file.await_loads(&pages)?;
    }
    let state = file.lock(shadow)?;
    let alone = file.alone(&state, concerned())?;
    Ok((state, alone))
}

impl Pages {
    /// Writes into pages; where, and how many bytes: none only of a program's, see
    /// [`Data::write`]. `None`: it is to be done the old way.
    ///
    /// # Errors
    /// The file system's; no memory.
    pub fn write(
        &self,
        shadow: &Shadow,
        inode: u64,
        offset: Option<u64>,
        data: &Data<'_>,
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
        data: &Data<'_>,
        lane: Option<Lane>,
    ) -> Result<Option<(u64, u64)>, FsError> {
        self.write_at(shadow, inode, (None, lane), data)
    }

    fn write_at(
        &self,
        shadow: &Shadow,
        inode: u64,
        (offset, lane): (Option<u64>, Option<Lane>),
        data: &Data<'_>,
    ) -> Result<Option<(u64, u64)>, FsError> {
        let length = data.len();
        let reach = offset.unwrap_or(0).saturating_add(length);
        let is_meant = self.known(inode).is_some()
            || reach > self.small
            || (!data.is_own() && self.has_place());
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
            let (mut state, _alone) = lock_to_write(shadow, &file, offset, length)?;
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
        data: &Data<'_>,
    ) -> Result<Option<(u64, u64)>, FsError> {
        let size = file.record.lock().size;
        let at = offset.unwrap_or(size);
        let end = at.saturating_add(data.len());
        if end > LONGEST {
            return Ok(None);
        }
        if at > size && !data.is_ready() {
            // No hole for what cannot be written.
            return Ok(Some((at, 0)));
        }
        if end > size {
            self.clear_behind_end(file, state)?;
        }
        if let Some(lane) = lane {
            shadow.plan(lane, file.inode, at)?;
        }
        // The file system hears of a hole with the bytes behind it: it commits by itself, and the
        // file would have the length of the hole alone.
        if end.div_ceil(PAGE) > state.pages {
            file.set_pages(state, end.div_ceil(PAGE))?;
        }
        let put = self.put(shadow, file, state, at, data);
        let noted = match put {
            Ok(0) | Err(_) => Ok(()),
            Ok(done) => file.set_record(|record| {
                record.size = record.size.max(at + done);
                record.modified = time::wall_coarse();
            }),
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

    /// Puts bytes into pages; how many, an error only where not one could be put. None of a program
    /// that may not read them now.
    fn put(
        &self,
        shadow: &Shadow,
        file: &File,
        state: &mut State,
        at: u64,
        data: &Data<'_>,
    ) -> Result<u64, FsError> {
        let (mut done, end) = (0, at + data.len());
        while at + done < end {
            match self.put_run(shadow, file, state, (at, done), data) {
                Ok(0) => break,
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
        data: &Data<'_>,
    ) -> Result<u64, FsError> {
        let (from, end) = (at + done, at + data.len());
        let first = from / PAGE;
        let mut kind = self.kind(file, first, from, end)?;
        if kind == Page::Partial {
            let count = file.owner.load(first, 1).map_err(memory_error)?;
            self.there.fetch_add(count, Ordering::Relaxed);
            let loading = Loading { file, first, count };
            self.fetch(shadow, file, first, count)?;
            loading.end()?;
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
        match kind {
            Page::Fresh => self.fill(file, state, (first, behind), (at, done..until - at), data),
            _ => self.overwrite(file, state, (first, behind), (at, done..until - at), data),
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

    /// Gives pages that are being loaded, as zeros so far, the bytes `part` of what is written from
    /// `at` on; how many. Of a program's that end within a page, that page gets none: what it had
    /// is nowhere but on the disk.
    fn fill(
        &self,
        file: &File,
        state: &mut State,
        (first, behind): (u64, u64),
        (at, part): (u64, Range<u64>),
        data: &Data<'_>,
    ) -> Result<u64, FsError> {
        let (from, wanted) = (at + part.start, part.end - part.start);
        let mut loading = Loading {
            file,
            first,
            count: behind - first,
        };
        let filled = data.fill(&file.view, at, part).map_err(memory_error)?;
        let whole = match filled == wanted {
            true => behind - first,
            false => ((from + filled) / PAGE).saturating_sub(first),
        };
        loading.keep(whole)?;
        if whole == 0 {
            return Ok(0);
        }
        loading.end_dirty()?;
        self.count_dirty(state, whole);
        Ok(filled.min((first + whole) * PAGE - from))
    }

    fn overwrite(
        &self,
        file: &File,
        state: &mut State,
        (first, behind): (u64, u64),
        (at, part): (u64, Range<u64>),
        data: &Data<'_>,
    ) -> Result<u64, FsError> {
        let (from, wanted) = (at + part.start, part.end - part.start);
        let mut clean = 0;
        for page in first..behind {
            clean += u64::from(!file.owner.tags(page).map_err(memory_error)?.dirty);
        }
        self.count_dirty(state, clean);
        let written = match data.write(&file.view, at, part) {
            // It went between the look and here.
            Err(MemoryError::Absent | MemoryError::Loading) => Err(FsError::Device),
            Ok(0) if data.is_own() => Err(RpcError::NoMemory.into()),
            written => written.map_err(memory_error),
        };
        let done = *written.as_ref().unwrap_or(&0);
        if done < wanted {
            // Those that it did not come to.
            let next = match done {
                0 => first,
                _ => (from + done).div_ceil(PAGE),
            };
            let mut still = 0;
            for page in next..behind {
                still += u64::from(!file.owner.tags(page).map_err(memory_error)?.dirty);
            }
            self.count_stored(state, still.min(clean));
        }
        written
    }
}
