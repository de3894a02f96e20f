//! What those who only read share with those who change: the instance, the numbers, what is held.
//! Guarded by a lock that is never held during a call.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::action::Target;
use crate::ids::Ids;

/// How many names are remembered.
const NAMES: usize = 4;

/// An inode that clients have open.
struct Hold<K> {
    count: u32,
    /// The number in its hidden name, if it has no other.
    orphan: Option<u64>,
    /// What keeps a removed directory alive.
    kept: Option<K>,
}

/// One remembered name, in clients' numbers.
struct Seen {
    directory: u64,
    name: Vec<u8>,
    leads_to: Option<u64>,
}

/// What a released inode leaves behind.
pub struct Remains<K> {
    /// The number in its hidden name.
    pub orphan: Option<u64>,
    /// What kept it alive.
    pub kept: Option<K>,
}

/// The shared state.
pub struct Front<T: Target> {
    /// The instance to read from.
    pub fs: T,
    /// The numbers.
    pub ids: Ids,
    holds: BTreeMap<u64, Hold<T::Kept>>,
    /// The inode whose last name is perhaps being removed.
    going: Option<u64>,
    /// Counts changes of names.
    epoch: u64,
    seen: Vec<Seen>,
    next_seen: usize,
}

impl<T: Target> Front<T> {
    /// Nothing is held.
    pub fn new(fs: T) -> Self {
        Front {
            fs,
            ids: Ids::new(),
            holds: BTreeMap::new(),
            going: None,
            epoch: 0,
            seen: Vec::new(),
            next_seen: 0,
        }
    }

    /// Counts a hold of an inode (a client's number). `false` if it may be losing its last name:
    /// wait until all changes are done, and ask again.
    #[must_use]
    pub fn hold(&mut self, inode: u64) -> bool {
        if self.going == Some(inode) {
            return false;
        }
        let empty = Hold {
            count: 0,
            orphan: None,
            kept: None,
        };
        self.holds.entry(inode).or_insert(empty).count += 1;
        true
    }

    /// Takes one hold off; at the last one, what is left to be removed.
    pub fn release(&mut self, inode: u64) -> Option<Remains<T::Kept>> {
        let hold = self.holds.get_mut(&inode)?;
        hold.count = hold.count.saturating_sub(1);
        if hold.count > 0 {
            return None;
        }
        let hold = self.holds.remove(&inode)?;
        self.ids.forget(inode);
        Some(Remains {
            orphan: hold.orphan,
            kept: hold.kept,
        })
    }

    /// Whether clients have an inode open.
    pub fn is_held(&self, inode: u64) -> bool {
        self.holds.contains_key(&inode)
    }

    /// Whether an inode has nothing but a hidden name and one hold.
    pub fn is_left(&self, inode: u64) -> bool {
        let hold = self.holds.get(&inode);
        hold.is_some_and(|hold| hold.count == 1 && hold.orphan.is_some())
    }

    /// Whether an inode is held. If it is not, nobody gets hold of it before [`stay`](Self::stay).
    pub fn go(&mut self, inode: u64) -> bool {
        let is_held = self.holds.contains_key(&inode);
        self.going = (!is_held).then_some(inode);
        is_held
    }

    /// What was perhaps to go has gone or has stayed.
    pub fn stay(&mut self) {
        self.going = None;
    }

    /// Notes the hidden name of a held inode, or that it has none. `false` if it is not held any
    /// more.
    pub fn set_orphan(&mut self, inode: u64, orphan: Option<u64>) -> bool {
        let hold = self.holds.get_mut(&inode);
        hold.map(|hold| hold.orphan = orphan).is_some()
    }

    /// Whether an inode has nothing but a hidden name.
    pub fn is_orphan(&self, inode: u64) -> bool {
        self.holds
            .get(&inode)
            .is_some_and(|hold| hold.orphan.is_some())
    }

    /// Whether there are hidden names.
    pub fn has_orphans(&self) -> bool {
        self.holds.values().any(|hold| hold.orphan.is_some())
    }

    /// Notes what keeps a removed directory alive. Given back if nobody holds it any more.
    pub fn set_kept(&mut self, inode: u64, kept: T::Kept) -> Option<T::Kept> {
        match self.holds.get_mut(&inode) {
            Some(hold) => hold.kept.replace(kept),
            None => Some(kept),
        }
    }

    /// The number of a removed directory leads to nothing from now on, for as long as it is held.
    pub fn bury(&mut self, inode: u64) {
        if self.holds.contains_key(&inode) {
            self.ids.bury(inode);
        }
    }

    /// Goes over to a new instance. What is given back died with the old one.
    pub fn replace(&mut self, fs: T, renumbered: &[(u64, Option<u64>)]) -> (T, Vec<T::Kept>) {
        self.ids.renumber(renumbered);
        let mut dead = Vec::new();
        for (&inode, hold) in &mut self.holds {
            if let Some(kept) = hold.kept.take() {
                self.ids.bury(inode);
                dead.push(kept);
            }
        }
        (core::mem::replace(&mut self.fs, fs), dead)
    }

    /// Counts changes of names; to be given back to [`remember`](Self::remember).
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Names change, or have changed.
    pub fn forget_names(&mut self) {
        self.epoch += 1;
        self.seen.clear();
    }

    /// Remembers what a name led to, unless names have changed since `epoch`.
    pub fn remember(&mut self, epoch: u64, directory: u64, name: &[u8], leads_to: Option<u64>) {
        if epoch != self.epoch {
            return;
        }
        let seen = Seen {
            directory,
            name: name.into(),
            leads_to,
        };
        match self.seen.get_mut(self.next_seen) {
            Some(place) => *place = seen,
            None => self.seen.push(seen),
        }
        self.next_seen = (self.next_seen + 1) % NAMES;
    }

    /// What a name leads to, if that is remembered.
    pub fn recall(&self, directory: u64, name: &[u8]) -> Option<Option<u64>> {
        let is_it = |seen: &&Seen| seen.directory == directory && seen.name == name;
        self.seen.iter().find(is_it).map(|seen| seen.leads_to)
    }
}
