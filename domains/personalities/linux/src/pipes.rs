//! Pipes: those that a program makes for itself, and those that have a name on a disk.
//!
//! # Pipes with names
//! What is on the disk is the name alone. All that have it open share one pipe, which is there for
//! as long as somebody has, and holds the inode meanwhile, so that the number is no other one's.
//! Whoever opens one end waits until somebody opens the other (fifo(7)).

use crate::bells::{ALL, BROKEN, Bell, ENDED, READS, WRITES, Waiters};
use crate::disk::Disk;
use crate::errno::{EAGAIN, EBADF, EINVAL, ENOMEM, ENXIO, EPIPE, Error};
use crate::task::Task;
use crate::users::{Pages, User};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use domain_rt::sync::Mutex;
use linux::files::Attributes;
use mounts::Seat;
use pipe::{Blocked, End, Pipe};

/// Pipes without a name are on a device of their own, and have numbers there.
const DEVICE: u64 = 0xc;
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Mode of a pipe without a name.
const MODE: u32 = 0o10_600;

/// The pipes of a disk that somebody has open, by their inodes.
#[derive(Default)]
pub struct NamedPipes(Mutex<BTreeMap<u64, Weak<Shared>>>);

/// How a pipe is opened.
#[derive(Clone, Copy)]
pub struct Ends {
    pub reads: bool,
    pub writes: bool,
    /// `O_NONBLOCK`: what would wait is an error.
    pub never_waits: bool,
}

/// What has been opened of a pipe: one end, or both of one with a name. It is closed with the last
/// descriptor.
pub struct PipeEnd {
    pipe: Arc<Shared>,
    reads: bool,
    writes: bool,
    never_waits: AtomicBool,
    /// How often it had been opened for writing, if it was opened to be read before anybody wrote.
    writers_before: Option<u64>,
}

/// A pipe.
struct Shared {
    /// By which programs tell it from others; 0: by its name.
    number: u64,
    state: Mutex<Watched>,
    name: Option<Name>,
    /// The user's, for what is in it.
    _pages: Pages,
}

/// A pipe, and who waits for it to change.
struct Watched {
    pipe: Pipe,
    waiting: Waiters,
    /// How often each end was opened.
    readers_ever: u64,
    writers_ever: u64,
}

/// Where a pipe has its name.
struct Name {
    disk: Arc<Disk>,
    seat: Arc<Seat>,
}

impl Watched {
    fn new(mut pipe: Pipe, pages: &Pages) -> Self {
        pipe.set_room(pages.bytes());
        Watched {
            pipe,
            waiting: Waiters::default(),
            readers_ever: 0,
            writers_ever: 0,
        }
    }

    /// How often an end was opened.
    fn ever(&self, end: End) -> u64 {
        match end {
            End::Read => self.readers_ever,
            End::Write => self.writers_ever,
        }
    }

    fn open(&mut self, ends: Ends) {
        if ends.reads {
            self.pipe.open(End::Read);
            self.readers_ever += 1;
        }
        if ends.writes {
            self.pipe.open(End::Write);
            self.writers_ever += 1;
        }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut pipes = self.disk.pipes.0.lock();
        let inode = self.seat.inode();
        // Somebody may have opened it anew meanwhile.
        if pipes.get(&inode).is_some_and(|it| it.strong_count() == 0) {
            pipes.remove(&inode);
        }
    }
}

/// The two ends of a new pipe.
///
/// # Errors
/// `ENFILE`: the user has far too many pages in pipes.
pub fn pipe(user: &Arc<User>, never_waits: bool) -> Result<[PipeEnd; 2], Error> {
    let pages = user.pipe()?;
    let pipe = Arc::new(Shared {
        number: NEXT.fetch_add(1, Ordering::Relaxed),
        state: Mutex::new(Watched::new(Pipe::new(), &pages)),
        _pages: pages,
        name: None,
    });
    Ok([true, false].map(|reads| PipeEnd {
        pipe: pipe.clone(),
        reads,
        writes: !reads,
        never_waits: AtomicBool::new(never_waits),
        writers_before: None,
    }))
}

/// The pipe whose inode is held, which others may have open.
fn named(user: &Arc<User>, disk: &Arc<Disk>, seat: Arc<Seat>) -> Result<Arc<Shared>, Error> {
    let inode = seat.inode();
    let mut pipes = disk.pipes.0.lock();
    if let Some(there) = pipes.get(&inode).and_then(Weak::upgrade) {
        return Ok(there);
    }
    let pages = user.pipe()?;
    let new = Arc::new(Shared {
        number: 0,
        state: Mutex::new(Watched::new(Pipe::with_name(), &pages)),
        _pages: pages,
        name: Some(Name {
            disk: disk.clone(),
            seat,
        }),
    });
    pipes.insert(inode, Arc::downgrade(&new));
    Ok(new)
}

impl PipeEnd {
    /// Opens a pipe by its name. Who opens it to read waits for one that writes, and the other way
    /// round; who opens it for both does not wait.
    ///
    /// # Errors
    /// The disk's; no memory; `ENXIO`: nobody reads, and one is not to wait; `EINTR`: a signal has
    /// come.
    pub fn open(task: &Task, disk: &Arc<Disk>, seat: Arc<Seat>, ends: Ends) -> Result<Self, Error> {
        Self::open_shared(task, named(&task.process.owner.user(), disk, seat)?, ends)
    }

    /// Opens the same pipe once more, likewise. One without a name is there already: nobody waits
    /// for the other end, which may have been closed with bytes left to read.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_again(&self, task: &Task, ends: Ends) -> Result<Self, Error> {
        Self::open_shared(task, self.pipe.clone(), ends)
    }

    fn open_shared(task: &Task, pipe: Arc<Shared>, ends: Ends) -> Result<Self, Error> {
        let mut state = pipe.state.lock();
        let other = if ends.reads { End::Write } else { End::Read };
        let is_there = pipe.name.is_none() || ends.reads == ends.writes;
        let has_met = is_there || state.pipe.holders(other) > 0;
        if !has_met && ends.writes && ends.never_waits {
            return Err(ENXIO);
        }
        let came = state.ever(other);
        let is_early = !has_met && ends.never_waits;
        let writers_before = is_early.then_some(state.writers_ever);
        state.open(ends);
        let rung = state.waiting.take(ALL);
        drop(state);
        rung.ring();
        // From here on it is closed if the wait is broken off.
        let end = PipeEnd {
            pipe,
            reads: ends.reads,
            writes: ends.writes,
            never_waits: AtomicBool::new(ends.never_waits),
            writers_before,
        };
        if !has_met && !ends.never_waits {
            // Who has come and gone again meanwhile has come.
            end.wait_for(task, |state| state.ever(other) != came)?;
        }
        Ok(end)
    }

    fn wait_for(&self, task: &Task, is_so: impl Fn(&Watched) -> bool) -> Result<(), Error> {
        let bell = Bell::of(&task.ears);
        task.until(|| {
            let mut state = self.pipe.state.lock();
            match is_so(&state) {
                true => Some(Ok(())),
                false => state.waiting.add(&bell, ALL).err().map(Err),
            }
        })?
    }

    /// Does something with the pipe, which wakes those that wait, or waits itself until it can be
    /// done.
    fn change(
        &self,
        task: &Task,
        (event, makes): (u64, u64),
        mut act: impl FnMut(&mut Pipe) -> Result<usize, Blocked>,
    ) -> Result<usize, Error> {
        let bell = Bell::of(&task.ears);
        task.until(|| {
            let mut state = self.pipe.state.lock();
            // Whoever waits to write has found no room, so where there was some nobody waits.
            let had_room = state.pipe.is_ready(End::Write);
            match act(&mut state.pipe) {
                Err(Blocked::Wait) if self.never_waits() => Some(Err(EAGAIN)),
                Err(Blocked::Wait) => state.waiting.add(&bell, event).err().map(Err),
                Err(Blocked::Broken) => Some(Err(EPIPE)),
                Err(Blocked::NoMemory) => Some(Err(ENOMEM)),
                Ok(count) => {
                    let is_news = makes != WRITES || !had_room;
                    let rung = state.waiting.take(if is_news { makes } else { 0 });
                    drop(state);
                    rung.ring();
                    Some(Ok(count))
                }
            }
        })?
    }

    /// Reads some bytes; how many, none at the end.
    pub fn read(&self, task: &Task, to: &mut [u8]) -> Result<usize, Error> {
        match self.reads {
            true => self.change(task, (READS, WRITES), |pipe| pipe.read(to)),
            false => Err(EBADF),
        }
    }

    /// Puts back what was read and could not be handed over.
    pub fn give_back(&self, bytes: &[u8]) {
        let mut state = self.pipe.state.lock();
        state.pipe.give_back(bytes);
        let rung = state.waiting.take(READS);
        drop(state);
        rung.ring();
    }

    /// Writes bytes; how many: fewer only where one is not to wait for room, or a signal has ended
    /// the wait.
    pub fn write(&self, task: &Task, bytes: &[u8]) -> Result<usize, Error> {
        if !self.writes {
            return Err(EBADF);
        }
        let mut done = self.change(task, (WRITES, READS), |pipe| pipe.write(bytes))?;
        while done < bytes.len() && !task.is_ending() {
            match self.change(task, (WRITES, READS), |pipe| pipe.write(&bytes[done..])) {
                Ok(more) => done += more,
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Whether one can read (1) and write (4) without waiting, and whether the other end is gone
    /// (8, 16); if not, `bell` hears of a change.
    pub fn ready(&self, bell: &Bell) -> u64 {
        let mut state = self.pipe.state.lock();
        let mut ready = 0;
        let mut tell = |is_so, mark| ready |= if is_so { mark } else { 0 };
        // Where nobody has written yet there is no end to be told of.
        let is_new = self.writers_before == Some(state.writers_ever);
        let [readers, writers] = [End::Read, End::Write].map(|end| state.pipe.holders(end));
        tell(self.reads && !state.pipe.is_empty(), READS);
        tell(self.reads && writers == 0 && !is_new, ENDED);
        tell(self.writes && state.pipe.is_ready(End::Write), WRITES);
        tell(self.writes && readers == 0, BROKEN);
        let mut wanted = 0;
        for (is_for, event) in [(self.reads, READS), (self.writes, WRITES)] {
            wanted |= if is_for { event } else { 0 };
        }
        state.waiting.look(bell, wanted, ready)
    }

    /// Whether what would wait is an error.
    pub fn never_waits(&self) -> bool {
        self.never_waits.load(Ordering::Relaxed)
    }

    /// Sets whether what would wait is an error.
    pub fn set_never_waits(&self, never_waits: bool) {
        self.never_waits.store(never_waits, Ordering::Relaxed);
    }

    /// Whether it can be read and written to.
    pub fn is_for(&self) -> (bool, bool) {
        (self.reads, self.writes)
    }

    /// The disk that it has its name on, and its number there.
    pub fn node(&self) -> Result<(Arc<Disk>, u64), Error> {
        let name = self.pipe.name.as_ref().ok_or(EINVAL)?;
        Ok((name.disk.clone(), name.seat.inode()))
    }

    /// What `stat` tells of it.
    pub fn attributes(&self) -> Result<Attributes, Error> {
        match &self.pipe.name {
            Some(name) => name.disk.attributes_of(&name.seat),
            None => Ok(Attributes {
                device: DEVICE,
                inode: self.pipe.number,
                ..Attributes::new(MODE, 0)
            }),
        }
    }

    /// The number of one without a name, by which programs tell it from others.
    pub fn number(&self) -> u64 {
        self.pipe.number
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        if self.reads {
            state.pipe.close(End::Read);
        }
        if self.writes {
            state.pipe.close(End::Write);
        }
        let rung = state.waiting.take(ALL);
        drop(state);
        rung.ring();
    }
}
