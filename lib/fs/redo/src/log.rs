//! The log of changes since the last `sync`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Deref;

use crate::action::{Action, Kind, Outcome};

/// What an inode may be, as far as the log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const ANY: Kinds = Kinds(7);
    pub(crate) const NO_DIRECTORY: Kinds = Kinds(5);

    pub(crate) fn only(kind: Kind) -> Self {
        Kinds(match kind {
            Kind::File => 1,
            Kind::Directory => 2,
            Kind::Other => 4,
        })
    }

    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & Kinds::only(kind).0 != 0
    }
}

/// What is known before a change is tried, in the file system's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Basis {
    /// The inodes that it is about.
    pub on: [u64; 2],
    /// What its names lead to.
    pub before: [Option<u64>; 2],
    /// What a rename replaces.
    pub replaced: Option<Kind>,
}

/// What a change of the log is about, so that it is found again when numbers change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// An inode that was there before the log: its number.
    Old(u64),
    /// The inode that this entry of the log made.
    Born(usize),
}

/// One change.
pub(crate) struct Entry<D, S> {
    pub(crate) action: Action<D, S>,
    pub(crate) on: [Object; 2],
    /// What the names that it changes led to before.
    pub(crate) before: [Option<Object>; 2],
    /// The inode that it made, by the number that it has now. `None`: it makes none, or not yet.
    pub(crate) made: Option<u64>,
    replaced: Option<Kind>,
    /// Instances that died of it, and shadows.
    pub(crate) deaths: u8,
    pub(crate) shadows: u8,
}

/// Changes in their order. The last one may still be under way.
pub struct Log<D, S> {
    pub(crate) entries: Vec<Entry<D, S>>,
    /// How many changes were in the log before the first of them.
    pub(crate) before: u64,
    /// For numbers, the entry that made the inode that has it; by the numbers that were right
    /// before a recovery began.
    born: BTreeMap<u64, usize>,
    /// What the inodes are that were there before.
    kinds: BTreeMap<u64, Kinds>,
    weight: usize,
    /// Nobody knows yet what came of the last entry.
    pub(crate) pending: bool,
    /// An entry that makes an inode and was being done again when the instance died: nobody knows
    /// whether it was, and what number the inode then has.
    pub(crate) redoing: Option<usize>,
    /// How many of the entries name their objects: the others have [`Object::Old`] for each number,
    /// and `born` and `kinds` know nothing of them, see [`resolve`](Self::resolve).
    resolved: usize,
}

impl<D: Deref<Target = [u8]>, S> Default for Log<D, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Deref<Target = [u8]>, S> Log<D, S> {
    /// No changes.
    pub fn new() -> Self {
        Log {
            entries: Vec::new(),
            before: 0,
            born: BTreeMap::new(),
            kinds: BTreeMap::new(),
            weight: 0,
            pending: false,
            redoing: None,
            resolved: 0,
        }
    }

    /// How many changes there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether there is a place for one more, or memory for it.
    pub fn has_place(&mut self) -> bool {
        self.entries.try_reserve(1).is_ok()
    }

    /// Bytes of content and names in it.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Everything is on the disk.
    pub fn clear(&mut self) {
        let before = self.ever();
        *self = Self {
            before,
            ..Self::new()
        };
    }

    /// How many changes there ever were.
    pub fn ever(&self) -> u64 {
        self.before + self.entries.len() as u64
    }

    /// The first `count` changes that there ever were are on the disk. None may be under way.
    pub fn forget(&mut self, count: u64) {
        let count = count.saturating_sub(self.before) as usize;
        if count >= self.entries.len() {
            return self.clear();
        }
        self.resolve();
        let (gone, rest) = self.entries.split_at_mut(count);
        // What they made is from now on something that was there before the log.
        let earlier = |object: &mut Object| match *object {
            Object::Born(entry) if entry >= count => *object = Object::Born(entry - count),
            Object::Born(entry) => {
                if let Some(made) = gone[entry].made {
                    *object = Object::Old(made);
                }
            }
            Object::Old(_) => {}
        };
        for entry in rest {
            let objects = entry.on.iter_mut().chain(entry.before.iter_mut().flatten());
            objects.for_each(earlier);
        }
        for entry in self.entries.drain(..count) {
            self.weight -= entry.action.weight();
        }
        self.resolved = self.entries.len();
        self.before += count as u64;
        self.born.retain(|_, entry| *entry >= count);
        self.born.values_mut().for_each(|entry| *entry -= count);
        // Numbers may have gone from one inode to another meanwhile.
        self.kinds.clear();
        (0..self.entries.len()).for_each(|entry| self.learn_from(entry));
    }

    /// Finds out what the entries are about that were noted since this was called last, in their
    /// order, so that a number means what it meant then. Nobody has to know it before numbers
    /// change or entries go, so a change does not wait for it.
    pub(crate) fn resolve(&mut self) {
        for number in self.resolved..self.entries.len() {
            let entry = &self.entries[number];
            let of = |object| match object {
                Object::Old(number) => self.object(number),
                born => born,
            };
            let (on, before) = (entry.on.map(of), entry.before.map(|object| object.map(of)));
            let is_under_way = self.pending && number + 1 == self.entries.len();
            let entry = &mut self.entries[number];
            (entry.on, entry.before) = (on, before);
            if is_under_way {
                break;
            }
            if let Some(made) = entry.made {
                self.born.insert(made, number);
            }
            self.learn_from(number);
        }
        self.resolved = self.entries.len();
    }

    fn object(&self, number: u64) -> Object {
        match self.born.get(&number) {
            Some(&entry) => Object::Born(entry),
            None => Object::Old(number),
        }
    }

    /// The number of an object now; `None` if it could not be made again.
    pub(crate) fn number(&self, object: Object) -> Option<u64> {
        match object {
            Object::Old(number) => Some(number),
            Object::Born(entry) => self.entries[entry].made,
        }
    }

    /// What an object is.
    pub(crate) fn kinds(&self, object: Object) -> Kinds {
        match object {
            Object::Old(number) => self.kinds.get(&number).copied().unwrap_or(Kinds::ANY),
            Object::Born(entry) => self.kinds_made(entry),
        }
    }

    /// What an entry makes.
    pub(crate) fn kinds_made(&self, entry: usize) -> Kinds {
        match &self.entries[entry].action {
            Action::Create { kind, .. } => Kinds::only(*kind),
            _ => Kinds::only(Kind::Other),
        }
    }

    /// Learns from the last entry, which is done, what inodes are that were there before.
    pub(crate) fn learn(&mut self) {
        if let Some(last) = self.entries.len().checked_sub(1) {
            self.learn_from(last);
        }
    }

    fn learn_from(&mut self, entry: usize) {
        let entry = &self.entries[entry];
        let [first, second] = entry.before;
        let learned = match &entry.action {
            Action::Write { .. } | Action::Truncate { .. } => {
                Some((Some(entry.on[0]), Kinds::only(Kind::File)))
            }
            Action::Unlink { .. } => Some((first, Kinds::NO_DIRECTORY)),
            Action::RemoveDirectory { .. } => Some((first, Kinds::only(Kind::Directory))),
            Action::Rename { .. } => entry.replaced.map(|kind| (second, Kinds::only(kind))),
            _ => None,
        };
        if let Some((Some(Object::Old(number)), kinds)) = learned {
            let known = self.kinds.entry(number).or_insert(Kinds::ANY);
            known.0 &= kinds.0;
        }
    }

    /// Notes a change that is about to be tried.
    pub fn begin(&mut self, action: Action<D, S>, basis: Basis) -> &Action<D, S> {
        debug_assert!(!self.pending, "one change at a time");
        self.weight += action.weight();
        let entry = Entry {
            on: basis.on.map(Object::Old),
            before: basis.before.map(|number| number.map(Object::Old)),
            action,
            made: None,
            replaced: basis.replaced,
            deaths: 0,
            shadows: 0,
        };
        self.pending = true;
        self.entries.push(entry);
        &self.entries[self.entries.len() - 1].action
    }

    /// The change that was tried is done. `cut` shortens content.
    pub fn commit(&mut self, outcome: Outcome, cut: impl FnOnce(D, usize) -> D) {
        debug_assert!(self.resolved < self.entries.len(), "a change under way");
        self.pending = false;
        let Some(entry) = self.entries.last_mut() else {
            return;
        };
        match outcome {
            Outcome::Done => {}
            Outcome::Made(made) => entry.made = Some(made),
            Outcome::Wrote(count) => self.shorten(count, cut),
        }
    }

    /// Only `count` bytes of the last entry were written.
    pub(crate) fn shorten(&mut self, count: u64, cut: impl FnOnce(D, usize) -> D) {
        let is_short = |entry: &mut Entry<D, S>| matches!(&entry.action, Action::Write { data, .. } if (data.len() as u64) > count);
        let Some(mut entry) = self.entries.pop_if(is_short) else {
            return;
        };
        self.weight -= entry.action.weight();
        if let Action::Write { offset, data } = entry.action {
            let data = cut(data, count as usize);
            entry.action = Action::Write { offset, data };
            self.weight += entry.action.weight();
            self.entries.push(entry);
        }
    }

    /// So many shadows died of the last change.
    pub(crate) fn set_shadows_of_last(&mut self, shadows: u8) {
        if let Some(entry) = self.entries.last_mut() {
            entry.shadows = shadows;
        }
    }

    /// An instance died while it made the change of entry `number`.
    pub(crate) fn note_death(&mut self, number: usize) {
        if let Some(entry) = self.entries.get_mut(number) {
            entry.deaths = entry.deaths.saturating_add(1);
        }
    }

    /// An instance died while it made the change that is under way.
    pub(crate) fn note_death_of_last(&mut self) {
        self.note_death(self.entries.len().saturating_sub(1));
    }

    /// The change that was tried was refused.
    pub fn cancel(&mut self) {
        self.pending = false;
        if let Some(entry) = self.entries.pop() {
            self.weight -= entry.action.weight();
        }
        self.resolved = self.resolved.min(self.entries.len());
    }

    /// The numbers that have changed, old and new, of inodes that still go by the old one; no new
    /// one if an inode could not be made again. From now on the new ones are known. Of those that
    /// had one number one after the other the last one has it: the others are gone, and whatever
    /// went by their old numbers.
    pub(crate) fn settle(&mut self) -> Vec<(u64, Option<u64>)> {
        let mut now = BTreeMap::new();
        for (number, entry) in self.entries.iter().enumerate() {
            if let Some(made) = entry.made {
                now.insert(made, number);
            }
        }
        let mut changes = Vec::new();
        for (&known, &entry) in &self.born {
            // An entry that was taken back had no number.
            let made = self.entries.get(entry).and_then(|entry| entry.made);
            let is_gone = made.is_some_and(|made| now.get(&made) != Some(&entry));
            if made != Some(known) && !is_gone {
                changes.push((known, made));
            }
        }
        self.born = now;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = Log<Vec<u8>, ()>;

    fn name() -> Vec<u8> {
        b"a".to_vec()
    }

    fn basis(on: u64, before: Option<u64>) -> Basis {
        Basis {
            on: [on; 2],
            before: [before, None],
            replaced: None,
        }
    }

    fn make(log: &mut Plain, made: u64) {
        let create = Action::Create {
            name: name(),
            kind: Kind::File,
            mode: 0,
        };
        log.begin(create, basis(2, None));
        log.commit(Outcome::Made(made), |data, _| data);
    }

    fn cut(log: &mut Plain, inode: u64) {
        log.begin(Action::Truncate { size: 0 }, basis(inode, None));
        log.commit(Outcome::Done, |data, _| data);
    }

    fn remove(log: &mut Plain, inode: u64) {
        log.begin(Action::Unlink { name: name() }, basis(2, Some(inode)));
        log.commit(Outcome::Done, |data, _| data);
    }

    #[test]
    fn a_number_means_what_it_meant_when_it_was_noted() {
        let mut log = Plain::new();
        cut(&mut log, 7);
        remove(&mut log, 7);
        make(&mut log, 7);
        cut(&mut log, 7);
        remove(&mut log, 7);
        make(&mut log, 7);
        // Under way.
        log.begin(Action::Truncate { size: 1 }, basis(7, None));
        log.resolve();
        let on = |at: usize| log.entries[at].on[0];
        assert_eq!(
            [0, 3, 6].map(on),
            [7, 2, 5].map(|of| match of {
                7 => Object::Old(7),
                entry => Object::Born(entry),
            })
        );
        let before = |at: usize| log.entries[at].before[0];
        assert_eq!(
            [1, 4].map(before),
            [Some(Object::Old(7)), Some(Object::Born(2))]
        );
        assert_eq!(log.kinds(Object::Old(7)), Kinds::only(Kind::File));
        // The one that was under way is gone; what comes next is found out again.
        log.cancel();
        remove(&mut log, 7);
        log.forget(3);
        assert_eq!(log.entries[0].on[0], Object::Old(7));
        assert_eq!(log.entries[3].before[0], Some(Object::Born(2)));
        assert_eq!(log.ever(), 7);
    }

    #[test]
    fn the_last_that_had_a_number_has_it() {
        let mut log = Plain::new();
        make(&mut log, 12);
        remove(&mut log, 12);
        make(&mut log, 13);
        remove(&mut log, 13);
        make(&mut log, 11);
        log.resolve();
        // Another instance gives each of them the number that the one before had.
        for entry in [0, 2, 4] {
            log.entries[entry].made = Some(20);
        }
        assert_eq!(log.settle(), [(11, Some(20))]);
        assert_eq!(log.object(20), Object::Born(4));
    }
}
