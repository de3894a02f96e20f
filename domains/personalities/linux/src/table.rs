//! The table of processes: parents, groups, sessions, and how they ended.
//!
//! Process 1 is this domain itself, which is in no table: it takes in those whose parent has ended,
//! and forgets them when they end.

use crate::errno::{EAGAIN, Error};
use crate::process::Process;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The process that takes in others.
pub const INIT: u32 = 1;

/// What others know of a process.
pub struct Entry {
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    /// The signal that its parent gets when it ends; 0: none.
    pub signal: u32,
    /// How it ended, as `wait4` says it, if somebody is still to be told.
    pub status: Option<i32>,
    /// That it has stopped or gone on, likewise, until somebody has been told.
    pub change: Option<i32>,
    /// It runs another program than its parent, which moves it to no group any more.
    pub is_replaced: bool,
    /// Whoever has begun a session waits for its end.
    pub is_awaited: bool,
    pub process: Arc<Process>,
}

impl Entry {
    /// Whether it has not ended.
    pub fn is_live(&self) -> bool {
        self.status.is_none()
    }
}

/// The processes, by number.
#[derive(Default)]
pub struct Table(Vec<(u32, Entry)>);

impl Table {
    fn place(&self, id: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |(id, _)| *id)
    }

    /// The entry of a process.
    pub fn get(&self, id: u32) -> Option<&Entry> {
        self.place(id).ok().map(|at| &self.0[at].1)
    }

    /// See [`get`](Self::get).
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Entry> {
        self.place(id).ok().map(|at| &mut self.0[at].1)
    }

    /// Notes a process.
    ///
    /// # Errors
    /// `EAGAIN`: there is no memory for it.
    pub fn insert(&mut self, id: u32, entry: Entry) -> Result<(), Error> {
        self.0.try_reserve(1).map_err(|_| EAGAIN)?;
        let at = self.place(id).unwrap_or_else(|at| at);
        self.0.insert(at, (id, entry));
        Ok(())
    }

    /// Forgets a process; what was noted of it is best dropped when nothing is locked.
    pub fn remove(&mut self, id: u32) -> Option<Entry> {
        self.place(id).ok().map(|at| self.0.remove(at).1)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.0.iter().map(|(id, entry)| (*id, entry))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The first one from a number on that is meant.
    pub fn next(&self, from: u32, is_meant: impl Fn(u32, &Entry) -> bool) -> Option<(u32, &Entry)> {
        let at = self.place(from).unwrap_or_else(|at| at);
        let mut rest = self.0[at..].iter().map(|(id, entry)| (*id, entry));
        rest.find(|(id, entry)| is_meant(*id, entry))
    }

    /// Whether a number is that of a process, a group or a session.
    pub fn has_number(&self, id: u32) -> bool {
        let mut all = self.0.iter();
        id == INIT || all.any(|(own, it)| *own == id || it.group == id || it.session == id)
    }

    /// Whether a process holds its group: its parent is in another one of the same session, so that
    /// somebody can let a stopped group go on.
    fn holds(&self, entry: &Entry) -> bool {
        let parent = self.get(entry.parent);
        parent.is_some_and(|it| it.session == entry.session && it.group != entry.group)
    }

    /// Whether nobody is left who holds a group, but for `without`, who ends.
    pub fn is_orphaned(&self, group: u32, without: u32) -> bool {
        let mut members = self.0.iter();
        !members
            .any(|(id, it)| it.group == group && *id != without && it.is_live() && self.holds(it))
    }

    /// Whether the end of one who holds its group, of which `id` and `entry` are, has left a group
    /// orphaned that is stopped; which.
    fn left(&self, was_held: bool, group: u32, without: u32) -> Option<u32> {
        let is_stopped = |(id, it): &(u32, Entry)| {
            it.group == group && *id != without && it.is_live() && it.process.is_stopped()
        };
        let is_left = was_held && self.is_orphaned(group, without) && self.0.iter().any(is_stopped);
        is_left.then_some(group)
    }

    /// The group that the end of a process leaves orphaned and stopped, if it was its own.
    pub fn leaves(&self, id: u32) -> Option<u32> {
        let entry = self.get(id)?;
        self.left(self.holds(entry), entry.group, id)
    }

    /// Gives a child of `parent`'s, which has ended, to process 1. `None`: all are given away.
    /// What is forgotten of it, if it has ended itself; and the group that is orphaned by that and
    /// stopped.
    pub fn give_away(&mut self, parent: u32) -> Option<(Option<Entry>, Option<u32>)> {
        let (id, entry) = self.iter().find(|(_, entry)| entry.parent == parent)?;
        if !entry.is_live() {
            return Some((self.remove(id), None));
        }
        let (was_held, group) = (self.holds(entry), entry.group);
        self.get_mut(id)?.parent = INIT;
        Some((None, self.left(was_held, group, 0)))
    }
}
