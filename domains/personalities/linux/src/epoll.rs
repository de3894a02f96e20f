//! Sets of what a program waits for (`epoll(7)`): what `linux::epoll` says, with files and threads.
//!
//! # Locks
//! `looking` is held by the one who goes through the items, and `state` for a moment. A file may be
//! closed for good while it is looked at, which tells sets: so no file is looked at, and none
//! dropped, with `state` locked. Sets in each other are looked at from the outside in.

use crate::bells::{ALL, Bell, READS, Rung, Waiters};
use crate::errno::{EINVAL, ENOMEM, ENOSPC, EPERM, Error};
use crate::files::Open;
use crate::task::Task;
use crate::users::{Held, User};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use domain_rt::sync::Mutex;
use linux::epoll::{Nests, Place, Set, Wish};

/// What a set costs its user, and an item of it: about what they take of memory.
const COST: u64 = 1024;
const COST_OF_ITEM: u64 = 384;

/// The sets of all programs: which are in which, and the number of the next one.
#[derive(Default)]
pub struct Sets {
    nests: Mutex<Nests>,
    next: AtomicU64,
}

/// A set.
pub struct Epoll {
    sets: Arc<Sets>,
    number: u64,
    looking: Mutex<()>,
    state: Mutex<State>,
    _held: Held,
}

#[derive(Default)]
struct State {
    set: Set<Arc<Watched>>,
    waiters: Waiters,
    /// At so many items one looks for those whose files are closed.
    most: usize,
}

/// A file in a set, for as long as somebody has it open.
struct Watched {
    open: Weak<Open>,
    _nested: Option<Nested>,
    _held: Held,
}

/// A set in another one, by their numbers, for as long as this is there.
struct Nested {
    sets: Arc<Sets>,
    outer: u64,
    inner: u64,
}

impl Drop for Nested {
    fn drop(&mut self) {
        self.sets.nests.lock().leave(self.outer, self.inner);
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        self.sets.nests.lock().forget(self.number);
        let rung = self.state.lock().waiters.take(ALL);
        rung.ring();
    }
}

/// Whether one can wait for a file: others are always ready.
fn can_wait(open: &Open) -> bool {
    matches!(
        open,
        Open::Console(_)
            | Open::Terminal(_)
            | Open::Pipe(_)
            | Open::Socket(_)
            | Open::Epoll(_)
            | Open::Counter(_)
            | Open::Random
    )
}

impl Epoll {
    /// An empty set of a user's.
    ///
    /// # Errors
    /// `ENFILE`: the user has too much already.
    pub fn new(sets: &Arc<Sets>, user: &Arc<User>) -> Result<Self, Error> {
        Ok(Epoll {
            sets: sets.clone(),
            number: sets.next.fetch_add(1, Ordering::Relaxed),
            looking: Mutex::new(()),
            state: Mutex::default(),
            _held: user.hold(COST)?,
        })
    }

    fn place(descriptor: u64, open: &Arc<Open>) -> Place {
        Place {
            descriptor: descriptor as u32,
            file: Arc::as_ptr(open).addr(),
        }
    }

    /// Adds a file.
    ///
    /// # Errors
    /// Linux's.
    pub fn add(
        &self,
        user: &Arc<User>,
        (descriptor, open): (u64, &Arc<Open>),
        wish: Wish,
    ) -> Result<(), Error> {
        if !can_wait(open) {
            return Err(EPERM);
        }
        self.drop_closed();
        let inner = match &**open {
            Open::Epoll(inner) => Some(inner.number),
            _ => None,
        };
        wish.check_new(inner.is_some())?;
        let held = user.hold(COST_OF_ITEM).map_err(|_| ENOSPC)?;
        let nested = inner.map(|inner| self.nest(inner)).transpose()?;
        let watched = Arc::new(Watched {
            open: Arc::downgrade(open),
            _nested: nested,
            _held: held,
        });
        let mut state = self.state.lock();
        let added = state
            .set
            .add(Self::place(descriptor, open), watched.clone(), wish);
        let rung = state.waiters.take(READS);
        drop(state);
        rung.ring();
        added
    }

    /// Notes that the set `inner` is in this one.
    fn nest(&self, inner: u64) -> Result<Nested, Error> {
        let (sets, outer) = (self.sets.clone(), self.number);
        sets.nests.lock().enter(outer, inner)?;
        Ok(Nested { sets, outer, inner })
    }

    /// Changes what is wanted of a file.
    ///
    /// # Errors
    /// Linux's.
    pub fn change(&self, (descriptor, open): (u64, &Arc<Open>), wish: Wish) -> Result<(), Error> {
        let mut state = self.state.lock();
        state.set.change(Self::place(descriptor, open), wish)?;
        let rung = state.waiters.take(READS);
        drop(state);
        rung.ring();
        Ok(())
    }

    /// Takes a file out.
    ///
    /// # Errors
    /// `ENOENT`: it is not in.
    pub fn remove(&self, descriptor: u64, open: &Arc<Open>) -> Result<(), Error> {
        let mut state = self.state.lock();
        let removed = state.set.remove(Self::place(descriptor, open));
        drop(state);
        removed.map(drop)
    }

    /// Takes out files that are closed, when there are twice as many items as were left then.
    fn drop_closed(&self) {
        let mut state = self.state.lock();
        if state.set.len() < state.most {
            return;
        }
        let is_closed = |it: &Arc<Watched>| it.open.strong_count() == 0;
        let mut closed = Vec::new();
        if closed.try_reserve(state.set.len()).is_ok() {
            let all = state.set.iter().filter(|(_, it)| is_closed(it));
            closed.extend(all.map(|(number, _)| number));
        }
        let mut gone = Vec::new();
        if gone.try_reserve(closed.len()).is_ok() {
            let state = &mut *state;
            gone.extend(closed.iter().filter_map(|number| state.set.forget(*number)));
        }
        state.most = (2 * state.set.len()).max(16);
        drop(state);
        drop(gone);
    }

    /// Something has happened to an item's file.
    pub fn touch(&self, item: u64, events: u64) {
        let mut state = self.state.lock();
        let rung = match state.set.touch(item, events as u32) {
            true => state.waiters.take(READS),
            false => Rung::nobody(),
        };
        drop(state);
        rung.ring();
    }

    /// Goes through the items that may have something to tell, at most once each, until `each` says
    /// that it is enough; it gets the state, an item's number, and what there is of its file.
    fn look(self: &Arc<Self>, mut each: impl FnMut(&mut State, u64, u32) -> bool) {
        let _alone = self.looking.lock();
        let turns = self.state.lock().set.listed();
        for _ in 0..turns {
            let next = self.state.lock().set.take_next();
            let Some((number, watched)) = next else {
                continue;
            };
            let Some(open) = watched.open.upgrade() else {
                let gone = self.state.lock().set.forget(number);
                drop(gone);
                continue;
            };
            let found = told(open.ready(&Bell::Set(Arc::downgrade(self), number)));
            if each(&mut self.state.lock(), number, found) {
                break;
            }
        }
    }

    /// What there is, of at most so many items.
    fn collect(self: &Arc<Self>, most: usize) -> Result<Vec<Wish>, Error> {
        let mut all = Vec::new();
        let room = most.min(self.state.lock().set.listed());
        all.try_reserve_exact(room).map_err(|_| ENOMEM)?;
        if room > 0 {
            self.look(|state, number, found| {
                all.extend(state.set.settle(number, found));
                all.len() == room
            });
        }
        Ok(all)
    }

    /// Whether there is something to tell (1); if not, `bell` hears of a change.
    pub fn ready(self: &Arc<Self>, bell: &Bell) -> u64 {
        if self.state.lock().waiters.add(bell, READS).is_err() {
            return READS;
        }
        let mut has_some = false;
        self.look(|state, number, found| {
            has_some = state.set.would_tell(number, found);
            if has_some {
                state.set.put_back(number);
            }
            has_some
        });
        u64::from(has_some)
    }

    /// Waits until there is something; what, of at most so many items. Nothing: the time has come.
    ///
    /// # Errors
    /// `EINTR`: a signal has come. `ENOMEM`.
    pub fn wait(
        self: &Arc<Self>,
        task: &Task,
        most: usize,
        deadline: Option<u64>,
    ) -> Result<Vec<Wish>, Error> {
        let bell = Bell::of(&task.ears);
        let found = task.until_timed(deadline, || {
            let noted = self.state.lock().waiters.add(&bell, READS);
            match noted.and_then(|()| self.collect(most)) {
                Ok(all) if all.is_empty() => None,
                found => Some(found),
            }
        })?;
        found.unwrap_or(Ok(Vec::new()))
    }

    /// What was told did not arrive: it is told again.
    pub fn tell_again(&self) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut all = Vec::new();
        if all.try_reserve(state.set.len()).is_ok() {
            all.extend(state.set.iter().map(|(number, _)| number));
        }
        for number in all {
            state.set.touch(number, u32::MAX);
        }
    }
}

/// What a file says, with the other names that there are for it.
fn told(ready: u64) -> u32 {
    use linux::epoll::{IN, IN_TOO, OUT, OUT_TOO};
    let mut told = (ready & ALL) as u32;
    told |= if told & IN != 0 { IN_TOO } else { 0 };
    told |= if told & OUT != 0 { OUT_TOO } else { 0 };
    told
}

/// The set that something is.
///
/// # Errors
/// `EINVAL`: it is something else.
pub fn set_of(open: &Open) -> Result<&Arc<Epoll>, Error> {
    match open {
        Open::Epoll(set) => Ok(set),
        _ => Err(EINVAL),
    }
}
