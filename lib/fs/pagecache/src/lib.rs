//! A page cache: content of files in memory, bounded, shared by all readers.
//!
//! It knows nothing of devices and never waits: who asks gets what is there ([`Found::Hit`]),
//! learns what to load ([`Found::Miss`]), loads it without a lock, and brings it
//! ([`PageCache::insert`]), or learns that somebody else does ([`Found::Busy`]). The buffers are
//! whatever the device filled; they are shared by count, so a reader copies from one (or, one day,
//! maps it) after the lock is let go.
//!
//! - [`file`]: what is cached of one file;
//! - [`stream`]: its readers, and what is worth loading before they ask;
//! - [`plan`]: what is being loaded;
//! - [`queue`]: which chunk goes when room is needed.
//!
//! # Reading ahead
//! A reader says how far it went ([`PageCache::went`]). Somebody else, a thread of its own where
//! there are threads, takes the windows that come of it ([`PageCache::take_ahead`]), loads what is
//! missing in them ([`PageCache::begin`]), and says when it is done with each
//! ([`PageCache::end_ahead`]), also when the device failed: who waited for a page that is still
//! missing then loads it, and meets the error, if he wants the page at all.
//!
//! # Words
//! A *page* has [`PAGE`] bytes. A *chunk* is one buffer: some pages of a file that follow each
//! other, loaded or written together. Chunks of a file do not overlap. Bytes of a chunk behind the
//! end of the file are zero.
//!
//! # Stale loads
//! Between a miss and its insertion the file may be changed, cut, or removed and its blocks given
//! to another. So each file has a version, a number that is never used twice, which every change
//! replaces. A load says which version it began with, and is refused when that is gone.
//!
//! # Who goes first
//! See [`queue`]: a reader that streams through a large file uses each chunk once, and so takes no
//! room from those that are used again.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod file;
mod plan;
mod queue;
mod stream;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::ops::{DerefMut, Range};

use file::File;
use plan::Plan;
use queue::Queue;
pub use stream::Ahead;

/// Bytes in a page.
pub const PAGE: usize = 4096;
/// The most bytes of a chunk: what is kept with it in an allocator of powers of two fits behind it.
pub const LARGE: usize = 63 * PAGE;
/// The most bytes of a chunk that is not about as large as [`LARGE`].
pub const SMALL: usize = 8 * PAGE;
/// Files without content that are remembered at most.
const MOST_FILES: usize = 4096;

/// What a buffer must be.
pub trait Buffer: DerefMut<Target = [u8]> {
    /// Bytes of memory that a buffer of `bytes` bytes takes.
    fn footprint(bytes: usize) -> usize;
}

/// Part of a cached buffer.
#[derive(Debug)]
pub struct Piece<B> {
    /// The buffer.
    pub buffer: Arc<B>,
    /// The bytes in it that were asked for.
    pub range: Range<usize>,
}

/// Pages that are to be loaded. Others wait for them until they are inserted or given up.
#[derive(Debug, PartialEq, Eq)]
pub struct Miss {
    /// The file.
    pub file: u64,
    /// Where they start in the file: at a page.
    pub offset: u64,
    /// How many bytes: whole pages, at most [`LARGE`] bytes. May reach beyond the end of the file.
    pub bytes: usize,
    version: u64,
    load: u64,
}

/// What came of a question.
#[derive(Debug)]
pub enum Found<B> {
    /// The first of the bytes that were asked for.
    Hit(Piece<B>),
    /// They have to be loaded, and nobody else does it.
    Miss(Miss),
    /// They are on their way: wait until something was inserted, given up or read ahead, and ask
    /// again.
    Busy,
    /// They lie behind the end of the file.
    End,
}

/// What came of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is cached.
    Kept,
    /// It is right, but part of it is cached already, or it is larger than the budget.
    Unneeded,
    /// The file has changed meanwhile: it may be wrong.
    Stale,
}

/// The cache.
pub struct PageCache<B> {
    files: BTreeMap<u64, File>,
    queue: Queue<B>,
    plan: Plan,
    budget: usize,
    version: u64,
}

impl<B: Buffer> PageCache<B> {
    /// An empty cache for `budget` bytes of memory.
    pub fn new(budget: usize) -> Self {
        PageCache {
            files: BTreeMap::new(),
            queue: Queue::new(),
            plan: Plan::default(),
            budget,
            version: 0,
        }
    }

    /// Bytes of memory that are taken.
    pub fn bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Bytes of memory that may be taken.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// How many of `bytes` bytes are to be in one chunk: as many as do not waste half of its
    /// memory, and leave room for others in the budget.
    pub fn piece(&self, bytes: usize) -> usize {
        let most = (self.budget / 8 / PAGE * PAGE).clamp(PAGE, LARGE);
        let bytes = bytes.min(most);
        match bytes > SMALL && B::footprint(bytes) >= 2 * bytes {
            true => SMALL,
            false => bytes,
        }
    }

    /// Drops what is worth least until no more than `bytes` bytes of memory are taken: memory is
    /// short.
    pub fn shrink(&mut self, bytes: usize) {
        while self.queue.bytes() > bytes && self.evict().is_some() {}
    }

    /// A buffer of `bytes` bytes of what has to go to make room for it, with whatever is in it;
    /// `None` if there is room, or nothing of this size that nobody is using. There is no room in
    /// the budget, or anywhere unless the cache may grow.
    pub fn recycle(&mut self, bytes: usize, may_grow: bool) -> Option<B> {
        let most = match may_grow {
            true => self.budget,
            false => self.queue.bytes(),
        };
        while self.queue.bytes() + B::footprint(bytes) > most {
            let buffer = Arc::try_unwrap(self.evict()?).ok();
            if let Some(buffer) = buffer.filter(|buffer| buffer.len() == bytes) {
                return Some(buffer);
            }
        }
        None
    }

    fn evict(&mut self) -> Option<Arc<B>> {
        let gone = self.queue.evict(self.budget)?;
        self.detach(gone.file, gone.offset);
        Some(gone.buffer)
    }

    /// Looks for `length` bytes (at least one) at `offset` of a file.
    pub fn find(&mut self, number: u64, offset: u64, length: usize) -> Found<B> {
        let version = self.version + 1;
        let file = self
            .files
            .entry(number)
            .or_insert_with(|| File::new(version));
        self.version = self.version.max(file.version);
        let length = match file.size {
            Some(size) if offset >= size => return Found::End,
            Some(size) => length.min((size - offset).min(usize::MAX as u64) as usize),
            None => length,
        };
        if let Some((start, id)) = file.chunk_at(offset) {
            let from = (offset - start) as usize;
            let (buffer, to) = self.queue.touch(id, from, length);
            let range = from..to;
            return Found::Hit(Piece { buffer, range });
        }
        if self.plan.covers(number, offset) {
            return Found::Busy;
        }
        file.readers.missed(offset);
        let page = offset / PAGE as u64 * PAGE as u64;
        let wanted = ((offset - page) as usize + length).next_multiple_of(PAGE);
        let wanted = match file.readers.is_sequential(offset) {
            true => wanted.max(SMALL),
            false => wanted,
        };
        let miss = self.begin_load(number, page, wanted);
        self.forget_empty_files(number);
        match miss {
            Some(miss) => Found::Miss(miss),
            None => Found::End,
        }
    }

    /// Begins to load up to `bytes` bytes at `offset`, a page that is not cached and that nobody
    /// loads. `None` if the file is not known or ends before.
    fn begin_load(&mut self, number: u64, offset: u64, bytes: usize) -> Option<Miss> {
        let file = self.files.get(&number)?;
        let left = file
            .size
            .map_or(u64::MAX, |size| size.saturating_sub(offset));
        let left = left.min(LARGE as u64) as usize;
        let bytes = bytes.min(left).next_multiple_of(PAGE);
        let bytes = file.free_from(offset, self.plan.free_from(number, offset, bytes));
        let bytes = self.piece(bytes);
        (left > 0 && bytes > 0).then(|| Miss {
            file: number,
            offset,
            bytes,
            version: file.version,
            load: self.plan.begin(number, offset, bytes),
        })
    }

    /// Brings what a [`Miss`] asked for, or the start of it: `buffer` has whole pages, at most as
    /// many bytes, zero behind the end of the file, whose size is `size`.
    pub fn insert(&mut self, miss: Miss, buffer: Arc<B>, size: u64) -> Inserted {
        self.plan.end(miss.load);
        let bytes = buffer.len();
        let Some(file) = self.files.get_mut(&miss.file) else {
            return Inserted::Stale;
        };
        if file.version != miss.version {
            return Inserted::Stale;
        }
        file.size = Some(size);
        let fits = B::footprint(bytes) <= self.budget && bytes > 0 && bytes.is_multiple_of(PAGE);
        if !fits || file.overlaps(miss.offset, bytes) {
            return Inserted::Unneeded;
        }
        self.attach(miss.file, miss.offset, buffer);
        Inserted::Kept
    }

    /// Ends a load that brought nothing.
    pub fn give_up(&mut self, miss: Miss) {
        self.plan.end(miss.load);
    }

    /// Whether the page at `offset` is on its way.
    pub fn is_busy(&self, number: u64, offset: u64) -> bool {
        self.plan.covers(number, offset)
    }

    /// Notes that somebody read from `from` to `to`. Whether something is to be read ahead now.
    pub fn went(&mut self, number: u64, from: u64, to: u64) -> bool {
        let most = (self.budget / 4 / PAGE * PAGE).max(PAGE);
        if !self.plan.has_room() {
            return false;
        }
        let Some((file, size)) = self.files.get_mut(&number).and_then(|file| {
            let size = file.size?;
            Some((file, size))
        }) else {
            return false;
        };
        let Some((offset, end)) = file.readers.went(from, to, size, most) else {
            return false;
        };
        self.plan.add(Ahead {
            file: number,
            offset,
            end,
        });
        true
    }

    /// A window that is to be read ahead. Others wait for it until [`end_ahead`](Self::end_ahead).
    pub fn take_ahead(&mut self) -> Option<Ahead> {
        self.plan.take()
    }

    /// What is to be loaded next of a window that was taken, if something is missing there that
    /// nobody loads: behind `from`, up to which it was loaded before. That may be gone again, when
    /// there is room for less than the window; who then began anew would not come to an end.
    pub fn begin(&mut self, ahead: Ahead, from: u64) -> Option<Miss> {
        let mut at = ahead.offset.max(from);
        while at < ahead.end {
            let file = self.files.get(&ahead.file)?;
            if let Some((start, id)) = file.chunk_at(at) {
                at = start.saturating_add(self.queue.length(id) as u64);
            } else if self.plan.loads(ahead.file, at) {
                at = at.saturating_add(PAGE as u64);
            } else {
                return self.begin_load(ahead.file, at, (ahead.end - at) as usize);
            }
        }
        None
    }

    /// Ends a window, whatever came of it.
    pub fn end_ahead(&mut self, ahead: Ahead) {
        self.plan.done(ahead);
    }

    /// Notes that `data` was written at `offset`, any number. Whole pages that are not cached are
    /// cached now, if `make` has a buffer of so many bytes for them.
    pub fn write(
        &mut self,
        number: u64,
        offset: u64,
        data: &[u8],
        mut make: impl FnMut(usize) -> Option<B>,
    ) {
        if data.is_empty() {
            return;
        }
        self.version += 1;
        let version = self.version;
        let Some(file) = self.files.get_mut(&number) else {
            return;
        };
        file.version = version;
        let Some(end) = offset.checked_add(data.len() as u64) else {
            // No file is that long, so it is not known what was written.
            return self.remove(number);
        };
        file.size = file.size.map(|size| size.max(end));
        self.update(number, offset, data);
        let mut at = page_end(offset);
        while at < end && end - at >= PAGE as u64 {
            let Some(file) = self.files.get(&number) else {
                return;
            };
            if let Some((start, id)) = file.chunk_at(at) {
                at = start.saturating_add(self.queue.length(id) as u64);
                continue;
            }
            let whole = (end - at) as usize / PAGE * PAGE;
            let bytes = self.piece(file.free_from(at, whole));
            let Some(mut buffer) = make(bytes).filter(|it| it.len() == bytes) else {
                return;
            };
            buffer.copy_from_slice(&data[(at - offset) as usize..][..bytes]);
            if B::footprint(bytes) <= self.budget {
                self.attach(number, at, Arc::new(buffer));
            }
            at = at.saturating_add(bytes as u64);
        }
    }

    /// Notes that a file has a new size.
    pub fn resize(&mut self, number: u64, size: u64) {
        self.version += 1;
        let Some(file) = self.files.get_mut(&number) else {
            return;
        };
        file.version = self.version;
        let shorter = file.size.is_none_or(|old| size < old);
        file.size = Some(size);
        if shorter {
            let gone = file.cut(size);
            gone.for_each(|id| self.queue.remove(id));
        }
    }

    /// Forgets a file.
    pub fn remove(&mut self, number: u64) {
        if let Some(mut file) = self.files.remove(&number) {
            let gone = file.cut(0);
            gone.for_each(|id| self.queue.remove(id));
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.files.clear();
        self.queue = Queue::new();
    }

    /// Copies `data` into the chunks that are there. One that a reader is using is dropped instead.
    fn update(&mut self, number: u64, offset: u64, data: &[u8]) {
        let Some(file) = self.files.get_mut(&number) else {
            return;
        };
        let end = offset + data.len() as u64;
        for (start, id) in file.chunks_in(offset, end) {
            let to = end.min(start.saturating_add(self.queue.length(id) as u64));
            let from = offset.max(start);
            let part = &data[(from - offset) as usize..(to - offset) as usize];
            match self.queue.bytes_mut(id) {
                Some(bytes) => bytes[(from - start) as usize..][..part.len()].copy_from_slice(part),
                None => {
                    file.detach(start);
                    self.queue.remove(id);
                }
            }
        }
    }

    /// Puts a chunk in its place, and makes room for it.
    fn attach(&mut self, number: u64, offset: u64, buffer: Arc<B>) {
        self.shrink(self.budget - B::footprint(buffer.len()));
        let bytes = buffer.len();
        let id = self.queue.add(number, offset, buffer);
        if let Some(file) = self.files.get_mut(&number) {
            file.attach(offset, bytes, id);
        }
    }

    fn detach(&mut self, number: u64, offset: u64) {
        if let Some(file) = self.files.get_mut(&number) {
            file.detach(offset);
        }
    }

    /// Keeps the number of files without content small; not `but`.
    fn forget_empty_files(&mut self, but: u64) {
        if self.files.len() > MOST_FILES + self.queue.count() {
            self.files
                .retain(|number, file| *number == but || !file.is_empty());
        }
    }
}

/// Where the page ends that has the byte before `offset`; there is no page at the very end.
fn page_end(offset: u64) -> u64 {
    offset
        .checked_next_multiple_of(PAGE as u64)
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
