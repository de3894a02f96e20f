//! Content of files: reading through the page cache, reading ahead, and keeping that true.
//!
//! Who reads what is cached takes the cache's lock for a moment and nothing else, so it neither
//! waits for the disk nor for those who change something. What is missing is looked for under the
//! volume's lock, but read from the device without one. Changes go to the library first and to the
//! cache then, both under the volume's lock. Volume, then cache; never the other way round.
//!
//! What a sequential reader will want next is loaded by a thread of its own
//! ([`Content::read_ahead_for_ever`]), so that the device and the reader work at the same time. A
//! page that somebody loads is waited for, not loaded again. If the device fails while it is read
//! ahead nobody is told: the reader, if it comes so far, tries itself.

use alloc::sync::Arc;

use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::thread;
use ext2::Place;
use pagecache::{Ahead, Found, Inserted, Miss, PAGE, PageCache};
use vfs::fence::Service;

use crate::device::Disk;
use crate::errors::Error;
use crate::page::Page;
use crate::pressure::Pressure;
use crate::volume::{Mounted, Volume};

/// How often a load is tried that changes of the file overtake.
const ATTEMPTS: u32 = 3;

/// The cached content of all files.
pub struct Content {
    state: Mutex<State>,
    /// A load has ended while somebody waited for one.
    loaded: Condvar,
    /// There is something to be read ahead.
    asked: Condvar,
    disk: Disk,
    pressure: Pressure,
}

struct State {
    cache: PageCache<Page>,
    /// Threads that wait for loads of others.
    waiting: u32,
}

/// What was loaded, and what became of it.
struct Loaded {
    buffer: Arc<Page>,
    offset: u64,
    inserted: Inserted,
}

/// A load that has begun. Dropping it ends it.
struct Loading<'a> {
    content: &'a Content,
    miss: Option<Miss>,
}

impl Loading<'_> {
    /// Brings what was loaded.
    fn insert(mut self, buffer: Arc<Page>, size: u64) -> Inserted {
        let mut state = self.content.state.lock();
        let inserted = match self.miss.take() {
            Some(miss) => state.cache.insert(miss, buffer, size),
            None => Inserted::Stale,
        };
        self.content.tell(&state);
        inserted
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if let Some(miss) = self.miss.take() {
            let mut state = self.content.state.lock();
            state.cache.give_up(miss);
            self.content.tell(&state);
        }
    }
}

impl Content {
    /// Nothing yet; at most `budget` bytes, and fewer under `pressure`.
    pub fn new(disk: Disk, budget: usize, pressure: Pressure) -> Self {
        let state = State {
            cache: PageCache::new(budget),
            waiting: 0,
        };
        Content {
            state: Mutex::new(state),
            loaded: Condvar::new(),
            asked: Condvar::new(),
            disk,
            pressure,
        }
    }

    /// What is known of the machine's memory.
    pub fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    /// Gives memory back, `bytes` bytes if there are as many; how many.
    pub fn give_back(&self, bytes: u64) -> u64 {
        let mut state = self.state.lock();
        let before = state.cache.bytes();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        state.cache.shrink(before.saturating_sub(bytes));
        (before - state.cache.bytes()) as u64
    }

    /// Reads from a file into `buffer`; how many bytes.
    ///
    /// # Errors
    /// The library's.
    pub fn read(
        &self,
        volume: &Volume,
        ino: u32,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let done = self.read_pieces(volume, ino, offset, buffer)?;
        let mut state = self.state.lock();
        let end = offset.saturating_add(done as u64);
        if state.cache.went(ino.into(), offset, end) {
            drop(state);
            self.asked.notify_one();
            // So that the device has something to do while our caller looks at what it got.
            thread::yield_now();
        }
        Ok(done)
    }

    fn read_pieces(
        &self,
        volume: &Volume,
        ino: u32,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let (mut done, mut attempts) = (0, 0);
        while done < buffer.len() {
            let at = offset.saturating_add(done as u64);
            let rest = &mut buffer[done..];
            let found = self.state.lock().cache.find(ino.into(), at, rest.len());
            let loaded = match found {
                Found::Hit(piece) => {
                    let bytes = &piece.buffer[piece.range];
                    rest[..bytes.len()].copy_from_slice(bytes);
                    done += bytes.len();
                    continue;
                }
                Found::End => break,
                Found::Busy if self.wait_for(ino, at) => continue,
                Found::Busy => None,
                Found::Miss(miss) => self.load(volume, ino, miss)?,
            };
            match loaded {
                Some(loaded) if loaded.inserted == Inserted::Kept => {}
                // It is right, but not kept: taken from here, so that reading goes on.
                Some(loaded) if loaded.inserted == Inserted::Unneeded => {
                    let from = (at - loaded.offset) as usize;
                    let bytes = loaded.buffer.get(from..).unwrap_or_default();
                    let count = bytes.len().min(rest.len());
                    rest[..count].copy_from_slice(&bytes[..count]);
                    done += count;
                    if count == 0 {
                        break;
                    }
                }
                Some(_) if attempts < ATTEMPTS => attempts += 1,
                _ => return Ok(done + volume.view(Service::OWN, |fs| fs.read(ino, at, rest))?),
            }
        }
        Ok(done)
    }

    /// Waits while somebody loads the page at `offset`. False if there is no time for that.
    fn wait_for(&self, ino: u32, offset: u64) -> bool {
        let mut state = self.state.lock();
        let mut wait = Wait::Woken;
        while wait == Wait::Woken && state.cache.is_busy(ino.into(), offset) {
            state.waiting += 1;
            (state, wait) = self.loaded.wait(state);
            state.waiting -= 1;
        }
        wait == Wait::Woken
    }

    /// Tells those who wait that a load has ended.
    fn tell(&self, state: &State) {
        if state.waiting > 0 {
            self.loaded.notify_all();
        }
    }

    /// Loads what is missing, or the start of it. `None` if there is no memory for that.
    fn load(&self, volume: &Volume, ino: u32, miss: Miss) -> Result<Option<Loaded>, Error> {
        let (offset, wanted) = (miss.offset, miss.bytes);
        let loading = Loading {
            content: self,
            miss: Some(miss),
        };
        let (size, place) = volume.view(Service::OWN, |fs| fs.locate(ino, offset, wanted))?;
        let left = size.saturating_sub(offset);
        let wanted = left.next_multiple_of(PAGE as u64).min(wanted as u64) as usize;
        let (sector, bytes) = match place {
            Place::Device { sector, bytes } => (Some(sector), bytes.min(wanted) / PAGE * PAGE),
            Place::Elsewhere => (None, 0),
        };
        let sector = sector.filter(|_| bytes > 0);
        let Some(buffer) = self.buffer(if bytes > 0 { bytes } else { wanted }, sector.is_some())
        else {
            return Ok(None);
        };
        let mut buffer = match sector {
            Some(sector) => Page(self.disk.fill(sector, buffer.0)?),
            None => read_through(volume, ino, offset, buffer)?,
        };
        // What a block has behind the end of the file means nothing.
        if left < buffer.len() as u64 {
            buffer[left as usize..].fill(0);
        }
        let buffer = Arc::new(buffer);
        let inserted = loading.insert(buffer.clone(), size);
        Ok(Some(Loaded {
            buffer,
            offset,
            inserted,
        }))
    }

    /// A buffer for at most `length` bytes. If all of it is `filled` it may be one that is in use
    /// so far, so that its memory need not be cleared. If there is no memory for one, half of the
    /// cache goes.
    fn buffer(&self, length: usize, filled: bool) -> Option<Page> {
        let may_grow = !self.pressure.is_short();
        let mut state = self.state.lock();
        let length = state.cache.piece(length);
        let used = state.cache.recycle(length, may_grow);
        if let Some(used) = used.filter(|_| filled) {
            return Some(used);
        }
        drop(state);
        if let Some(buffer) = Page::new(length) {
            return Some(buffer);
        }
        let mut state = self.state.lock();
        let half = state.cache.bytes() / 2;
        state.cache.shrink(half);
        drop(state);
        Page::new(length)
    }

    /// The body of the thread that reads ahead.
    pub fn read_ahead_for_ever(&self, volume: &Volume) {
        loop {
            let ahead = self.wait_for_window();
            let mut from = Some(ahead.offset);
            while let Some(at) = from {
                from = self.load_next(volume, ahead, at);
            }
            let mut state = self.state.lock();
            state.cache.end_ahead(ahead);
            self.tell(&state);
        }
    }

    fn wait_for_window(&self) -> Ahead {
        let mut state = self.state.lock();
        loop {
            if let Some(ahead) = state.cache.take_ahead() {
                return ahead;
            }
            (state, _) = self.asked.wait(state);
        }
    }

    /// Loads some of a window that was loaded up to `from`; where to go on, if that makes sense.
    fn load_next(&self, volume: &Volume, ahead: Ahead, from: u64) -> Option<u64> {
        let ino = u32::try_from(ahead.file).ok()?;
        let miss = self.state.lock().cache.begin(ahead, from)?;
        let loaded = self.load(volume, ino, miss).ok().flatten()?;
        let end = loaded.offset + loaded.buffer.len() as u64;
        (loaded.inserted == Inserted::Kept).then_some(end)
    }

    /// Notes that `data` was written. The volume's lock is held.
    pub fn written(&self, ino: u32, offset: u64, data: &[u8]) {
        let make = |length| {
            (!self.pressure.is_short())
                .then(|| Page::new(length))
                .flatten()
        };
        let mut state = self.state.lock();
        state.cache.write(ino.into(), offset, data, make);
    }

    /// Notes that a file has a new size. The volume's lock is held.
    pub fn resized(&self, ino: u32, size: u64) {
        self.state.lock().cache.resize(ino.into(), size);
    }

    /// Forgets the content of files: they were removed, or nobody knows what they have now. The
    /// volume's lock is held.
    pub fn forget(&self, inodes: &[u32]) {
        if inodes.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let freed = inodes.iter().copied();
        freed.for_each(|ino| state.cache.remove(ino.into()));
    }
}

/// Has the library read, as much as there is.
fn read_through(volume: &Volume, ino: u32, offset: u64, mut buffer: Page) -> Result<Page, Error> {
    volume.view(Service::OWN, |fs: &mut Mounted| {
        fs.read(ino, offset, &mut buffer)
    })?;
    Ok(buffer)
}
