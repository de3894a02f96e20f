//! The ready threads of one processor.
//!
//! Deadlines, then real time, then groups. A group with ready threads here is an *entry* in the
//! heap `ready`, sorted by the group's virtual time when it was put in; since that only grows, and
//! grows on other processors too, the least is put back with the present value until it still is
//! the least. That and the return of groups and deadlines whose time has come take a step for each
//! group at the most.

use alloc::vec::Vec;

use crate::group::Group;
use crate::heap::{self, Key, Link, NIL, Store};
use crate::nodes::{Nodes, Piece};
use crate::task::{Class, Moment, Task, Word, asked, get, set};
use crate::{GROUP_LAG, MARGIN, MOST_GROUPS, NEVER, PERIOD, REAL_TIME, SLICE, THREAD_LAG};

/// Entries that are looked at before one is taken as it is.
const ROUNDS: usize = 64;
/// Returns from rest in one go.
const RETURNS: usize = 32;

/// A group's threads that are ready here.
#[derive(Clone, Copy)]
struct Entry {
    ready: Link,
    held: Link,
    is_ready: bool,
    is_held: bool,
    /// Those that were in a service when they were taken off: they may hold what others wait for.
    service: u32,
    /// The others.
    others: u32,
}

const NOBODY: Entry = Entry {
    ready: Link::NONE,
    held: Link::NONE,
    is_ready: false,
    is_held: false,
    service: NIL,
    others: NIL,
};

/// The entries as elements of `ready`.
struct Ready<'a>(&'a mut [Entry]);

impl Store for Ready<'_> {
    fn link(&self, index: u32) -> &Link {
        &self.0[index as usize].ready
    }
    fn link_mut(&mut self, index: u32) -> &mut Link {
        &mut self.0[index as usize].ready
    }
}

/// The entries as elements of `held`.
struct Held<'a>(&'a mut [Entry]);

impl Store for Held<'_> {
    fn link(&self, index: u32) -> &Link {
        &self.0[index as usize].held
    }
    fn link_mut(&mut self, index: u32) -> &mut Link {
        &mut self.0[index as usize].held
    }
}

/// A fair thread that becomes ready.
pub(crate) struct Newcomer<T> {
    pub task: T,
    pub group: usize,
    /// What it is sorted by in its group.
    pub key: u64,
    /// It goes before those of its group that are in no service.
    pub service: bool,
    /// At least one other of its group shall go first.
    pub gives_way: bool,
}

/// What others may want to know of a queue without its lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sign {
    /// Virtual time of the group that is next; [`NEVER`]: none.
    pub next: u64,
    /// That group.
    pub group: u32,
    /// Virtual time of its thread that is next.
    pub thread: u64,
    /// Threads in all.
    pub length: usize,
    /// Somebody of a real-time class waits.
    pub urgent: bool,
    /// Where groups wake up.
    pub floor: u64,
}

/// The ready threads of one processor.
pub struct Queue<T> {
    nodes: Nodes<T>,
    entries: Vec<Entry>,
    ready: u32,
    held: u32,
    deadlines: u32,
    resting: u32,
    real_time: u32,
    length: usize,
    sequence: u64,
    /// The greatest virtual time of a group when it was picked, or that it would have had if others
    /// had used the processors while they idled.
    floor: u64,
    /// The period that `spent` is of, and what real-time threads have used in it.
    period: u64,
    spent: u64,
    /// The group that gave way last and shall not be taken next, plus one.
    gave_way: usize,
}

impl<T> Queue<T> {
    /// Without room.
    pub const fn new() -> Self {
        Self {
            nodes: Nodes::new(),
            entries: Vec::new(),
            ready: NIL,
            held: NIL,
            deadlines: NIL,
            resting: NIL,
            real_time: NIL,
            length: 0,
            sequence: 0,
            floor: 0,
            period: 0,
            spent: 0,
            gave_way: 0,
        }
    }

    /// Threads that there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.nodes.capacity()
    }

    /// Whether it has its tables.
    pub(crate) fn is_made(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Gives it its tables, unless it has them; what is left over is to be freed without the lock.
    pub(crate) fn make(&mut self, tables: Tables<T>) -> Tables<T> {
        if self.is_made() {
            return tables;
        }
        let entries = core::mem::replace(&mut self.entries, tables.entries);
        let pieces = self.nodes.set_table(tables.pieces);
        Tables { entries, pieces }
    }

    /// Adds room; gives it back if there is as much as there can be.
    pub(crate) fn add(&mut self, piece: Piece<T>) -> Result<(), Piece<T>> {
        self.nodes.add(piece)
    }
}

/// What a queue needs once.
pub(crate) struct Tables<T> {
    entries: Vec<Entry>,
    pieces: Vec<Piece<T>>,
}

impl<T> Tables<T> {
    /// `None` for lack of memory.
    pub(crate) fn new() -> Option<Self> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(MOST_GROUPS).ok()?;
        entries.resize(MOST_GROUPS, NOBODY);
        let pieces = Nodes::table()?;
        Some(Self { entries, pieces })
    }
}

impl<T: Task> Queue<T> {
    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Keeps a thread of the fair class; gives it back if there is no room.
    pub(crate) fn insert_fair(&mut self, new: Newcomer<T>, groups: &[Group]) -> Result<(), T> {
        if new.group >= self.entries.len() {
            return Err(new.task);
        }
        let index = self.nodes.keep(new.task)?;
        let sequence = self.next_sequence();
        let entry = &mut self.entries[new.group];
        if new.service {
            heap::push(&mut self.nodes, &mut entry.service, index, (0, sequence));
        } else {
            let first = self.nodes.key(entry.others).filter(|_| new.gives_way);
            let key = first.map_or(new.key, |(first, _)| first.max(new.key));
            heap::push(&mut self.nodes, &mut entry.others, index, (key, sequence));
        }
        self.length += 1;
        self.gave_way = if new.gives_way {
            new.group + 1
        } else {
            self.gave_way
        };
        let entry = &self.entries[new.group];
        if !entry.is_ready && (new.service || !entry.is_held) {
            self.show(new.group, groups[new.group].now());
        }
        Ok(())
    }

    /// Puts a group into `ready`.
    fn show(&mut self, group: usize, at: u64) {
        let key = (at, self.next_sequence());
        self.entries[group].is_ready = true;
        heap::push(
            &mut Ready(&mut self.entries),
            &mut self.ready,
            group as u32,
            key,
        );
    }

    /// Takes the first group out of `ready`.
    fn hide(&mut self) -> Option<usize> {
        let group = heap::pop(&mut Ready(&mut self.entries), &mut self.ready)? as usize;
        self.entries[group].is_ready = false;
        Some(group)
    }

    /// Has a group wait for its next period.
    fn hold(&mut self, group: usize, until: u64) {
        if !self.entries[group].is_held {
            let key = (until, self.next_sequence());
            self.entries[group].is_held = true;
            heap::push(
                &mut Held(&mut self.entries),
                &mut self.held,
                group as u32,
                key,
            );
        }
    }

    /// Keeps a first-in first-out or round robin thread. `first`: before those of its priority.
    pub(crate) fn insert_real_time(&mut self, task: T, priority: u8, first: bool) -> Result<(), T> {
        let index = self.nodes.keep(task)?;
        let sequence = self.next_sequence();
        let place = if first {
            u64::MAX / 2 - sequence
        } else {
            u64::MAX / 2 + sequence
        };
        let key = (rank_of(priority), place);
        heap::push(&mut self.nodes, &mut self.real_time, index, key);
        self.length += 1;
        Ok(())
    }

    /// Keeps a thread with a deadline, which has used up its budget if it `rests`.
    pub(crate) fn insert_deadline(&mut self, task: T, rests: bool) -> Result<(), T> {
        let deadline = get(&task, Word::Deadline);
        let index = self.nodes.keep(task)?;
        let key = (deadline, self.next_sequence());
        let heap = if rests {
            &mut self.resting
        } else {
            &mut self.deadlines
        };
        heap::push(&mut self.nodes, heap, index, key);
        self.length += 1;
        Ok(())
    }

    /// Lets those go on whose rest is over.
    pub(crate) fn wake_due(&mut self, groups: &[Group], now: u64) {
        for _ in 0..RETURNS {
            let due = self
                .nodes
                .key(self.resting)
                .is_some_and(|(at, _)| at <= now);
            let Some(index) = due
                .then(|| heap::pop(&mut self.nodes, &mut self.resting))
                .flatten()
            else {
                break;
            };
            let key = (
                self.nodes.task(index).map_or(0, renew),
                self.next_sequence(),
            );
            heap::push(&mut self.nodes, &mut self.deadlines, index, key);
        }
        for _ in 0..RETURNS {
            if self.first_held() > now {
                break;
            }
            self.unhold(groups);
        }
    }

    /// When the first group that waits for its period may go on.
    fn first_held(&self) -> u64 {
        match self.held {
            NIL => NEVER,
            group => self.entries[group as usize].held.key.0,
        }
    }

    fn unhold(&mut self, groups: &[Group]) {
        let Some(group) = heap::pop(&mut Held(&mut self.entries), &mut self.held) else {
            return;
        };
        let group = group as usize;
        let entry = &mut self.entries[group];
        entry.is_held = false;
        if !entry.is_ready && (entry.service != NIL || entry.others != NIL) {
            groups[group].raise(self.floor);
            self.show(group, groups[group].now());
        }
    }

    /// When somebody's rest is over.
    pub(crate) fn next_return(&self) -> u64 {
        let rest = self.nodes.key(self.resting).map_or(NEVER, |(at, _)| at);
        rest.min(self.first_held())
    }

    /// Groups wake up at `floor` at the least from now on.
    pub(crate) fn wake_up_at(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    /// Takes who runs next.
    pub(crate) fn take(&mut self, groups: &[Group], at: Moment) -> Option<T> {
        self.wake_due(groups, at.now);
        if let Some(index) = heap::pop(&mut self.nodes, &mut self.deadlines) {
            return self.release(index);
        }
        if self.real_time != NIL && (self.may_run_real_time(at.now) || self.ready == NIL) {
            let index = heap::pop(&mut self.nodes, &mut self.real_time)?;
            return self.release(index);
        }
        self.let_another_first(groups);
        self.take_fair(groups, at, NEVER, |_| true)
    }

    fn release(&mut self, index: u32) -> Option<T> {
        self.length -= 1;
        self.nodes.release(index)
    }

    /// Whether real-time threads have not had their part of the present period.
    fn may_run_real_time(&self, now: u64) -> bool {
        self.period != now / PERIOD || self.spent < REAL_TIME
    }

    /// Counts what a real-time thread has used.
    pub(crate) fn spend_real_time(&mut self, used: u64, now: u64) {
        if self.period != now / PERIOD {
            (self.period, self.spent) = (now / PERIOD, 0);
        }
        self.spent += used;
    }

    /// Puts the group that gave way behind the second in `ready`.
    fn let_another_first(&mut self, groups: &[Group]) {
        let gave_way = core::mem::take(&mut self.gave_way);
        if gave_way == 0 || self.ready as usize != gave_way - 1 {
            return;
        }
        if self.entries[gave_way - 1].ready.is_alone() {
            return;
        }
        self.settle(groups);
        if self.ready as usize != gave_way - 1 {
            return;
        }
        if let Some(group) = self.hide() {
            let second = self.first_key().map_or(0, |(second, _)| second);
            // Right soon: the real key comes back when it is first again.
            self.show(group, second.max(groups[group].now()));
        }
    }

    /// Sees to it that the first in `ready` has the key that it should have.
    fn settle(&mut self, groups: &[Group]) {
        for _ in 0..ROUNDS {
            let Some((key, _)) = self.first_key() else {
                return;
            };
            let group = self.ready as usize;
            if groups[group].now() <= key {
                return;
            }
            self.hide();
            self.show(group, groups[group].now());
        }
    }

    fn first_key(&self) -> Option<Key> {
        (self.ready != NIL).then(|| self.entries[self.ready as usize].ready.key)
    }

    /// Takes the next fair thread, if its group is before `limit` and it is `wanted`.
    pub(crate) fn take_fair(
        &mut self,
        groups: &[Group],
        at: Moment,
        limit: u64,
        wanted: impl Fn(&T) -> bool,
    ) -> Option<T> {
        loop {
            self.settle(groups);
            let (key, _) = self.first_key()?;
            let group = self.ready as usize;
            if key >= limit {
                return None;
            }
            let held = groups[group].held_until(at.now);
            let entry = &self.entries[group];
            if let Some(until) = held.filter(|_| entry.service == NIL) {
                self.hide();
                self.hold(group, until);
                continue;
            }
            let first = if entry.service != NIL {
                entry.service
            } else {
                entry.others
            };
            if !self.nodes.task(first).is_some_and(&wanted) {
                return None;
            }
            self.hide();
            let task = self.take_of(group, groups);
            self.put_back(group, groups, held);
            return task;
        }
    }

    /// Takes the next thread of a group.
    fn take_of(&mut self, group: usize, groups: &[Group]) -> Option<T> {
        let entry = &mut self.entries[group];
        if let Some(index) = heap::pop(&mut self.nodes, &mut entry.service) {
            return self.release(index);
        }
        let index = heap::pop(&mut self.nodes, &mut entry.others)?;
        let (key, _) = self.nodes.link(index).key;
        groups[group].threads_reach(key);
        let second = self.nodes.key(entry.others).map_or(0, |(second, _)| second);
        let least = second.saturating_sub(THREAD_LAG);
        if let Some(task) = self
            .nodes
            .task(index)
            .filter(|task| get(*task, Word::Virtual) < least)
        {
            set(task, Word::Virtual, least);
        }
        self.release(index)
    }

    /// Puts a group back that a thread was taken of, if it has others; nobody is too far behind
    /// then.
    fn put_back(&mut self, group: usize, groups: &[Group], held: Option<u64>) {
        self.floor = self.floor.max(groups[group].now());
        if let Some((second, _)) = self.first_key() {
            groups[group].raise(second.saturating_sub(GROUP_LAG));
        }
        let entry = &self.entries[group];
        match held {
            _ if entry.service != NIL => self.show(group, groups[group].now()),
            _ if entry.others == NIL => {}
            Some(until) => self.hold(group, until),
            None => self.show(group, groups[group].now()),
        }
    }

    /// Takes a thread that another processor may run: one of a group that is before `limit` by more
    /// than a margin, or of the group `same` if it is before `thread` itself.
    pub(crate) fn take_for(
        &mut self,
        groups: &[Group],
        at: Moment,
        limit: u64,
        same: Option<(u32, u64)>,
    ) -> Option<T> {
        let allowed = |task: &T| asked(task).allows(at.cpu, at.online);
        if limit == NEVER
            && let Some(task) = self.take_real_time(allowed)
        {
            return Some(task);
        }
        self.settle(groups);
        let (group, entry) = (self.ready, self.entries.get(self.ready as usize)?);
        let ahead = self.nodes.key(entry.others).map_or(NEVER, |(key, _)| key);
        let limit = match same {
            Some((own, thread)) if own == group && ahead.saturating_add(SLICE) < thread => NEVER,
            _ if limit == NEVER => NEVER,
            _ => limit.saturating_sub(MARGIN),
        };
        self.take_fair(groups, at, limit, allowed)
    }

    fn take_real_time(&mut self, allowed: impl Fn(&T) -> bool) -> Option<T> {
        let task = self.nodes.task(match self.real_time {
            NIL => return None,
            index => index,
        });
        if !task.is_some_and(allowed) {
            return None;
        }
        let index = heap::pop(&mut self.nodes, &mut self.real_time)?;
        self.release(index)
    }

    /// Whether somebody waits to whom a thread of this class gives way at the end of its slice.
    pub(crate) fn waits(&self, class: Class, now: u64) -> bool {
        let urgent = self.deadlines != NIL;
        let others = self.nodes.key(self.real_time).map(|(rank, _)| rank);
        let over = !self.may_run_real_time(now) && self.ready != NIL;
        match class {
            Class::Deadline { .. } => urgent,
            Class::Fair => urgent || others.is_some() || self.ready != NIL,
            Class::Fifo(own) => urgent || over || others.is_some_and(|rank| rank < rank_of(own)),
            Class::RoundRobin(own) => {
                urgent || over || others.is_some_and(|rank| rank <= rank_of(own))
            }
        }
    }

    /// What others may know.
    pub(crate) fn sign(&self) -> Sign {
        let next = self.first_key().map_or(NEVER, |(key, _)| key);
        let entry = self.entries.get(self.ready as usize);
        let thread = entry.and_then(|entry| self.nodes.key(entry.others));
        Sign {
            next,
            group: self.ready,
            thread: thread.map_or(NEVER, |(key, _)| key),
            length: self.length,
            urgent: self.deadlines != NIL || self.real_time != NIL,
            floor: self.floor,
        }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// What real-time threads are sorted by: the greatest priority first.
fn rank_of(priority: u8) -> u64 {
    u64::from(u8::MAX - priority)
}

/// Begins a thread's next period; when it ends.
fn renew<T: Task>(task: &T) -> u64 {
    let Class::Deadline { runtime, period } = asked(task).class else {
        return get(task, Word::Deadline);
    };
    let deadline = get(task, Word::Deadline).saturating_add(period.max(1));
    set(task, Word::Deadline, deadline);
    set(task, Word::Budget, runtime);
    deadline
}
