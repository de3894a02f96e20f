//! The mounted file system behind its lock, and the write-back of what was changed.
//!
//! A change is in memory first. It reaches the disk when somebody calls `sync` or `commit`,
//! otherwise [`DELAY`] after the first change that is not on the disk. So when this domain crashes,
//! at most the changes of that time are lost, and `lib/fs/ext2`'s journal, or its order of writes
//! where there is none, leaves a consistent file system.
//!
//! The timer only commits, which with a journal is one write of all changes together. `sync`, and
//! the timer when nothing changed for [`QUIET`], bring everything to its place and leave the disk
//! marked as clean.
//!
//! # Commits are shared
//! With a journal a commit is written without the volume's lock, so others go on meanwhile; what
//! they change is for the next one. Changes are counted. Who wants a commit says up to which one;
//! if too few are safe and nobody commits, he commits for all that there are, else he waits for who
//! does ([`Sharing`]). So those who come while one is written share the next. Who fails to commit
//! tells only his own caller; another of those who wait tries then.
//!
//! The order of locks is `state`, `flight`, and `sharing` and `level` only for moments. Who writes
//! a commit holds `flight` without `state`, and takes `state` again only after he gave `flight`
//! back: the library may wait for the end of the commit under `state`.
//!
//! # Reading without the lock
//! An operation that needs a block of metadata that is not cached, and has changed nothing yet, is
//! given up; the block is read while others use the volume, and the operation is run again
//! (`ext2::absent`).
//!
//! # Services that follow each other
//! Each operation is of a service, or of this domain itself, and whoever has the lock looks whether
//! that service still serves before anything is done ([`vfs::fence`]). How the next one begins is
//! in [`begin`](crate::begin).

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{log, time};
use ext2::{Attempt, BlockDevice, DeviceError, Mapped};
use meter::Meter;
use vfs::fence::{Fence, Fenced, Service};

use crate::content::Content;
use crate::device::Disk;
use crate::errors::Error;
use crate::fair::{FairGuard, FairMutex};
use crate::load::Loads;
use crate::options::Settings;
use crate::pressure::Pressure;

/// The library's file system on the disk.
pub type Mounted = ext2::FileSystem<Disk>;

/// How long a change may stay in memory only, in nanoseconds.
const DELAY: u64 = 1_000_000_000;

/// How often an operation is begun anew since something is missing that it needs.
const LOADS: u32 = 8;

/// Bytes of content for which a flush without the lock is worth its time.
const MUCH: usize = 1 << 20;

/// For how long nothing must change before the disk is marked as clean, in nanoseconds.
const QUIET: u64 = 5_000_000_000;

/// A mounted file system.
pub struct Volume {
    pub(crate) state: FairMutex<State>,
    /// Which service may do something. Changed with `state` and the loads locked.
    pub(crate) fence: Fence,
    /// As [`State::level`], for the thread that waits for changes. Locked for moments, also while
    /// `state` is.
    level: Mutex<Level>,
    /// Notified when `level` is raised to `Dirty`.
    changed: Condvar,
    /// Counts changes. Raised while `state` is locked, and after the change.
    changes: AtomicU64,
    sharing: Mutex<Sharing>,
    /// Notified when a commit has ended.
    committed: Condvar,
    /// How the last write of a commit ended. Locked while one is written.
    flight: Arc<Mutex<Result<(), DeviceError>>>,
    content: Content,
    /// Loads of pages of others, and who waits for their end.
    pub(crate) loads: Loads,
    disk: Disk,
}

/// Who commits for whom.
#[derive(Default)]
struct Sharing {
    /// How many of the changes are safe.
    committed: u64,
    /// Somebody commits.
    is_busy: bool,
}

/// Where the changes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// In their places, and the disk is marked as clean.
    Rest,
    /// Safe, but perhaps in the journal only.
    Committed,
    /// Some are in memory only.
    Dirty,
}

pub(crate) struct State {
    mounted: Mounted,
    level: Level,
}

impl State {
    /// Brings all changes to `goal`.
    fn settle(&mut self, goal: Level) -> Result<(), ext2::Error> {
        match goal {
            Level::Rest if self.level != Level::Rest => self.mounted.sync()?,
            Level::Committed if self.level == Level::Dirty => self.mounted.commit()?,
            _ => return Ok(()),
        }
        self.level = goal;
        Ok(())
    }
}

/// Says in the log of which groups nothing is allocated any more, each once.
pub fn tell_distrusted(mounted: &mut Mounted) {
    for group in mounted.take_distrusted() {
        log!("{group}; `e2fsck -f` on the host can mend it");
    }
}

impl Volume {
    /// Puts a mounted file system behind a lock; at most as much content of files is kept as
    /// `settings` say, and less under `pressure`.
    pub fn new(mounted: Mounted, disk: Disk, settings: &Settings<'_>, pressure: Pressure) -> Self {
        let state = State {
            mounted,
            level: Level::Rest,
        };
        Volume {
            state: FairMutex::new(state, Meter::new("volume", settings.tells_held)),
            fence: Fence::default(),
            level: Mutex::new(Level::Rest),
            changed: Condvar::new(),
            changes: AtomicU64::new(0),
            sharing: Mutex::default(),
            committed: Condvar::new(),
            flight: Arc::new(Mutex::new(Ok(()))),
            content: Content::new(disk.clone(), settings.cache_bytes, pressure),
            loads: Loads::default(),
            disk,
        }
    }

    /// The device.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Runs an operation of a service that changes nothing on the disk.
    ///
    /// # Errors
    /// Those of the operation; the service is fenced.
    pub fn view<T>(
        &self,
        service: Service,
        operation: impl FnMut(&mut Mounted) -> Result<T, ext2::Error>,
    ) -> Result<T, Error> {
        Ok(self.operate(service, operation)?.0?)
    }

    /// Runs an operation of a service that may change something, but not the content of a file that
    /// stays.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn change<T>(
        &self,
        service: Service,
        operation: impl FnMut(&mut Mounted) -> Result<T, ext2::Error>,
    ) -> Result<T, Error> {
        self.change_content(service, operation, |_, _| ())
    }

    /// Runs an operation, and keeps the lock. What it needs of the disk is read without the lock,
    /// and then it is run once more.
    fn operate<T>(
        &self,
        service: Service,
        mut operation: impl FnMut(&mut Mounted) -> T,
    ) -> Result<(T, FairGuard<'_, State>), Fenced> {
        let mut state = self.state.lock();
        for _ in 0..LOADS {
            self.fence.admit(service)?;
            let load = match state.mounted.attempt_cached(&mut operation) {
                Attempt::Done(result) => {
                    tell_distrusted(&mut state.mounted);
                    return Ok((result, state));
                }
                Attempt::Missing(load) => load,
            };
            drop(state);
            let content = load.read(&self.disk);
            state = self.state.lock();
            let has_failed = content.is_err();
            state.mounted.loaded(load, content.ok());
            if has_failed {
                break;
            }
        }
        // It needs so much that it would begin again and again; or the device fails, of which the
        // operation is to tell itself.
        self.fence.admit(service)?;
        let result = operation(&mut state.mounted);
        tell_distrusted(&mut state.mounted);
        Ok((result, state))
    }

    /// Runs an operation of a service that may change something; `note` then tells the cache of it.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub(crate) fn change_content<T>(
        &self,
        service: Service,
        operation: impl FnMut(&mut Mounted) -> Result<T, ext2::Error>,
        note: impl FnOnce(&Content, &Result<T, ext2::Error>),
    ) -> Result<T, Error> {
        let (result, mut state) = self.operate(service, operation)?;
        note(&self.content, &result);
        self.content.forget(&state.mounted.take_freed());
        self.changes.fetch_add(1, Ordering::Relaxed);
        if state.level != Level::Dirty && !state.mounted.is_read_only() {
            state.level = Level::Dirty;
            *self.level.lock() = Level::Dirty;
            self.changed.notify_all();
        }
        Ok(result?)
    }

    /// Content is on its way to the places `mapped` no more: it has arrived, and what was read
    /// meanwhile may be older; or it `has_failed`, and new places have anything.
    pub(crate) fn renew_content(&self, ino: u32, mapped: &Mapped, has_failed: bool) {
        let mut state = self.state.lock();
        state.mounted.forget_content(mapped);
        if has_failed {
            if let Err(error) = state.mounted.clear_content(mapped) {
                log!("inode {ino} may show what is not its own: {error}");
            }
            self.disk.content_cleared();
        }
        self.content.forget(&[ino]);
    }

    /// Reads from a file; how many bytes.
    ///
    /// # Errors
    /// The library's.
    pub fn read(&self, ino: u32, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.content.read(self, ino, offset, buffer)
    }

    /// The body of the thread that reads ahead.
    pub fn read_ahead_for_ever(&self) {
        self.content.read_ahead_for_ever(self);
    }

    /// The body of the thread that gives memory back.
    pub fn give_back_for_ever(&self) {
        self.content.pressure().give_back_for_ever(self);
    }

    /// Gives `bytes` bytes of memory back if there are as many; how many.
    pub fn give_back(&self, bytes: u64) -> u64 {
        self.content.give_back(bytes)
    }

    /// Writes to a file, at the end if there is no `offset`; where, and how many bytes.
    ///
    /// # Errors
    /// The library's.
    pub fn write(
        &self,
        service: Service,
        ino: u32,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<(u64, usize), Error> {
        let write = |fs: &mut Mounted| {
            let at = match offset {
                Some(offset) => offset,
                None => fs.getattr(ino)?.size,
            };
            fs.write(ino, at, data).map(|count| (at, count))
        };
        self.change_content(service, write, |content, result| match result {
            Ok((at, count)) => content.written(ino, *at, &data[..*count]),
            Err(_) => content.forget(&[ino]),
        })
    }

    /// Makes a file shorter or longer.
    ///
    /// # Errors
    /// The library's.
    pub fn truncate(&self, service: Service, ino: u32, size: u64) -> Result<(), Error> {
        // What it frees may be another file's soon.
        let _cut = self.begin_cut(service, ino)?;
        self.while_open(service, ino, || {
            let begin = |fs: &mut Mounted| fs.begin_truncate(ino, size);
            let mut is_done =
                self.change_content(service, begin, |content, result| match result {
                    Ok(_) => content.resized(ino, size),
                    Err(_) => content.forget(&[ino]),
                })?;
            while !is_done {
                is_done = self.change(service, |fs| fs.cut_some(ino))?;
            }
            Ok(())
        })
    }

    /// Does `work` in steps between which others have the volume. Meanwhile the file stays the same
    /// one, whatever becomes of its name.
    fn while_open(
        &self,
        service: Service,
        ino: u32,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.view(service, |fs| fs.open(ino))?;
        let done = work();
        if let Err(error) = self.close(ino) {
            log!("letting go of inode {ino}: {error}");
        }
        done
    }

    /// Makes a hole in a file.
    ///
    /// # Errors
    /// The library's.
    pub fn punch(&self, service: Service, ino: u32, offset: u64, length: u64) -> Result<(), Error> {
        // As in `truncate`.
        let _cut = self.begin_cut(service, ino)?;
        self.while_open(service, ino, || {
            let (mut at, mut left) = (offset, length);
            loop {
                let punch = |fs: &mut Mounted| fs.punch_some(ino, at, left);
                let forget = |content: &Content, _: &_| content.forget(&[ino]);
                let done = self.change_content(service, punch, forget)?;
                at = at.saturating_add(done);
                left -= done;
                if left == 0 {
                    return Ok(());
                }
            }
        })
    }

    /// Makes everything survive a power cut.
    ///
    /// # Errors
    /// Those of the device.
    pub fn commit(&self) -> Result<(), ext2::Error> {
        // What the caller changed was counted before its operation was done.
        let wanted = self.changes.load(Ordering::Relaxed);
        let mut sharing = self.sharing.lock();
        while sharing.is_busy && sharing.committed < wanted {
            let wait;
            (sharing, wait) = self.committed.wait(sharing);
            if wait == Wait::Interrupted {
                return Err(DeviceError::Io.into());
            }
        }
        if sharing.committed >= wanted {
            return Ok(());
        }
        sharing.is_busy = true;
        drop(sharing);
        let result = self.commit_for_all();
        let mut sharing = self.sharing.lock();
        sharing.is_busy = false;
        if let Ok(covered) = result {
            sharing.committed = covered;
        }
        drop(sharing);
        self.committed.notify_all();
        result.map(|_| ())
    }

    /// Commits all changes so far, and says how many they are. One thread at a time does it.
    fn commit_for_all(&self) -> Result<u64, ext2::Error> {
        let mut state = self.state.lock();
        let covered = self.changes.load(Ordering::Relaxed);
        if state.level != Level::Dirty {
            return Ok(covered);
        }
        let flight = self.flight.clone();
        let commit = match state.mounted.begin_commit(move || *flight.lock()) {
            Ok(Some(commit)) => commit,
            // Without a journal, or without memory for copies, everybody waits.
            Ok(None) | Err(ext2::Error::Device(DeviceError::NoMemory)) => {
                drop(state);
                return self.settle(Level::Committed).map(|()| covered);
            }
            Err(error) => return Err(error),
        };
        let mut flight = self.flight.lock();
        drop(state);
        let result = commit.write(&self.disk);
        *flight = result;
        drop(flight);

        let mut state = self.state.lock();
        state.mounted.finish_commit(&commit, result);
        result?;
        if state.level == Level::Dirty && self.changes.load(Ordering::Relaxed) == covered {
            state.level = Level::Committed;
            *self.level.lock() = Level::Committed;
        }
        Ok(covered)
    }

    /// Brings everything to the disk, and marks that as clean.
    ///
    /// # Errors
    /// Those of the device.
    pub fn sync(&self) -> Result<(), ext2::Error> {
        self.state.meter.tell();
        let result = self.settle(Level::Rest);
        self.state.meter.reset();
        result
    }

    /// Brings content of a file to the medium, if it is found there without a commit; whether it
    /// is.
    ///
    /// # Errors
    /// Those of the device.
    pub fn flush_content(&self, ino: u32) -> Result<bool, ext2::Error> {
        let mut state = self.state.lock();
        if !state.mounted.is_settled(ino) {
            return Ok(false);
        }
        state.mounted.write_content()?;
        drop(state);
        self.disk.flush()?;
        Ok(true)
    }

    /// Brings all changes to `goal`. Much content of files goes to the medium first, while others
    /// may use the volume: what is left to do under the lock is little.
    fn settle(&self, goal: Level) -> Result<(), ext2::Error> {
        let mut state = self.state.lock();
        if state.level == Level::Dirty && state.mounted.write_content()? >= MUCH {
            drop(state);
            self.disk.flush()?;
            state = self.state.lock();
        }
        state.settle(goal)?;
        *self.level.lock() = state.level;
        Ok(())
    }

    /// The body of the write-back thread.
    pub fn write_back_for_ever(&self) {
        let mut failing = false;
        loop {
            let goal = self.wait_for_work();
            let done = match goal {
                Level::Rest => self.sync(),
                _ => self.commit(),
            };
            match done {
                Ok(()) => failing = false,
                // Said once for a row of failures; the next round tries again.
                Err(error) if !failing => {
                    log!("write-back: {error}");
                    failing = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Waits until something is to be written, and returns how far it is to go: there is a change
    /// that is [`DELAY`] old, or after [`QUIET`] without one something is not in its place.
    fn wait_for_work(&self) -> Level {
        let mut level = self.level.lock();
        while *level != Level::Dirty {
            let (guard, wait) = match *level {
                Level::Committed => self.changed.wait_until(level, time::now() + QUIET),
                _ => self.changed.wait(level),
            };
            level = guard;
            match (wait, *level) {
                (Wait::TimedOut, Level::Committed) => return Level::Rest,
                (Wait::Interrupted, _) => return Level::Committed,
                _ => {}
            }
        }
        drop(level);
        time::sleep(DELAY);
        Level::Committed
    }
}
