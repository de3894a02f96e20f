//! What those who only read share with those who change: the instance, the numbers, what is held.
//! Guarded by a lock that is never held during a call.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::action::{Outcome, Target};
use crate::ids::Ids;
use crate::log::Basis;
use crate::order::Order;
use crate::seen::{Inodes, Names, Ticket};

/// Clients that are told apart: 0 and 1. Each takes all its holds again before it gives one back.
pub const CLIENTS: usize = 2;
/// A mark for a client of which nobody knows which one it is.
const ANYBODY: u64 = 1 << CLIENTS;

/// An inode that clients have open.
struct Hold<K> {
    count: u32,
    /// How many of them are of each client.
    clients: [u32; CLIENTS],
    /// Marks of clients of a former shadow that have not come back. For each there is one in
    /// `count`.
    left_over: u64,
    /// The number in its hidden name, if it has no other.
    orphan: Option<u64>,
    /// What keeps a removed directory alive.
    kept: Option<K>,
}

impl<K> Default for Hold<K> {
    fn default() -> Self {
        Hold {
            count: 0,
            clients: [0; CLIENTS],
            left_over: 0,
            orphan: None,
            kept: None,
        }
    }
}

/// Who holds an inode that may lose its last name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Nobody.
    Nobody,
    /// The host, which can do without it.
    Host,
    /// Clients, perhaps besides the host.
    Others,
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
    /// How many of them have a hidden name.
    hidden: usize,
    /// The inode whose last name is perhaps being removed.
    going: Option<u64>,
    /// What names led to.
    pub names: Names,
    /// What was known of inodes.
    pub inodes: Inodes<T::Known>,
}

/// What a change is about, in clients' numbers.
#[derive(Clone, Copy, Default)]
pub(crate) struct About {
    /// What its names lead to before.
    pub(crate) before: [Option<u64>; 2],
    /// The directory that loses its name.
    pub(crate) removed: Option<u64>,
}

/// What a change starts from.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) basis: Basis,
    pub(crate) about: About,
    /// Names that have to be looked up: tickets for what they lead to.
    pub(crate) unknown: [Option<Ticket>; 2],
}

impl<T: Target> Front<T> {
    /// Nothing is held.
    pub fn new(fs: T) -> Self {
        Front {
            fs,
            ids: Ids::new(),
            holds: BTreeMap::new(),
            hidden: 0,
            going: None,
            names: Names::default(),
            inodes: Inodes::default(),
        }
    }

    /// Counts a hold of an inode (a client's number). `false` if it may be losing its last name:
    /// wait until all changes are done, and ask again.
    #[must_use]
    pub fn hold(&mut self, inode: u64) -> bool {
        if self.going == Some(inode) {
            return false;
        }
        self.holds.entry(inode).or_default().count += 1;
        true
    }

    /// Counts a hold of a client. The first one takes the place of those that the same client had
    /// with a former shadow. As [`hold`](Self::hold).
    #[must_use]
    pub fn hold_for_client(&mut self, inode: u64, client: usize) -> bool {
        let left = self.holds.get(&inode).map_or(0, |hold| hold.left_over);
        let comes_back = left & (ANYBODY | mark(client));
        if comes_back == 0 && !self.hold(inode) {
            return false;
        }
        let hold = self.holds.entry(inode).or_default();
        hold.left_over &= !comes_back;
        if let Some(count) = hold.clients.get_mut(client) {
            *count += 1;
        }
        true
    }

    /// A client is about to [release](Self::release) a hold.
    pub fn leave(&mut self, inode: u64, client: usize) {
        let hold = self.holds.get_mut(&inode);
        if let Some(count) = hold.and_then(|hold| hold.clients.get_mut(client)) {
            *count = count.saturating_sub(1);
        }
    }

    /// Marks of the clients that hold an inode.
    pub(crate) fn holders(&self, inode: u64) -> u64 {
        let Some(hold) = self.holds.get(&inode) else {
            return 0;
        };
        let counts = hold.clients.iter().enumerate();
        let holders = counts.filter(|(_, count)| **count > 0);
        holders.fold(hold.left_over & !ANYBODY, |marks, (client, _)| {
            marks | mark(client)
        })
    }

    /// An inode that has only a hidden name, of this number, is held by clients of a former shadow:
    /// by those that the number says, or by one.
    pub fn leave_over(&mut self, inode: u64, orphan: u64) {
        let hold = self.holds.entry(inode).or_default();
        hold.left_over = match orphan & (ANYBODY - 1) {
            0 => ANYBODY,
            marks => marks,
        };
        hold.count += hold.left_over.count_ones();
        self.hidden += usize::from(hold.orphan.replace(orphan).is_none());
    }

    /// Takes one hold off; at the last one, what is left to be removed.
    pub fn release(&mut self, inode: u64) -> Option<Remains<T::Kept>> {
        let hold = self.holds.get_mut(&inode)?;
        hold.count = hold.count.saturating_sub(1);
        if hold.count > 0 {
            return None;
        }
        let hold = self.holds.remove(&inode)?;
        self.hidden -= usize::from(hold.orphan.is_some());
        self.ids.forget(inode);
        if hold.kept.is_some() {
            // It goes now, and with it its number.
            self.inodes.forget(inode);
            self.names.forget_directory(inode);
        }
        Some(Remains {
            orphan: hold.orphan,
            kept: hold.kept,
        })
    }

    /// Whether clients have an inode open.
    pub fn is_held(&self, inode: u64) -> bool {
        self.holds.contains_key(&inode)
    }

    /// Whether an inode has more than one hold.
    pub fn is_shared(&self, inode: u64) -> bool {
        self.holds.get(&inode).is_some_and(|hold| hold.count > 1)
    }

    /// Whether an inode has nothing but a hidden name and one hold.
    pub fn is_left(&self, inode: u64) -> bool {
        let hold = self.holds.get(&inode);
        hold.is_some_and(|hold| hold.count == 1 && hold.orphan.is_some())
    }

    /// Who holds an inode. If nobody else than the host does, by the one hold that it has of the
    /// inode `own`, nobody gets hold of it before [`stay`](Self::stay).
    pub(crate) fn go(&mut self, inode: u64, own: Option<u64>) -> Holder {
        let holder = match self.holds.get(&inode) {
            None => Holder::Nobody,
            Some(hold) if hold.count == 1 && own == Some(inode) => Holder::Host,
            Some(_) => Holder::Others,
        };
        self.going = (holder != Holder::Others).then_some(inode);
        holder
    }

    /// What was perhaps to go has gone or has stayed.
    pub fn stay(&mut self) {
        self.going = None;
    }

    /// Notes the hidden name of a held inode, or that it has none. `false` if it is not held any
    /// more.
    pub fn set_orphan(&mut self, inode: u64, orphan: Option<u64>) -> bool {
        let Some(hold) = self.holds.get_mut(&inode) else {
            return false;
        };
        self.hidden += usize::from(orphan.is_some());
        self.hidden -= usize::from(hold.orphan.is_some());
        hold.orphan = orphan;
        true
    }

    /// Whether an inode has nothing but a hidden name.
    pub fn is_orphan(&self, inode: u64) -> bool {
        self.holds
            .get(&inode)
            .is_some_and(|hold| hold.orphan.is_some())
    }

    /// Whether there are hidden names.
    pub fn has_orphans(&self) -> bool {
        let of = |hold: &&Hold<T::Kept>| hold.orphan.is_some();
        debug_assert_eq!(self.hidden, self.holds.values().filter(of).count());
        self.hidden > 0
    }

    /// The first inode from `from` on that [is left](Self::is_left).
    pub fn next_left(&self, from: u64) -> Option<u64> {
        if !self.has_orphans() {
            return None;
        }
        let mut holds = self.holds.range(from..);
        let is_left = |hold: &Hold<T::Kept>| hold.count == 1 && hold.orphan.is_some();
        holds
            .find(|(_, hold)| is_left(hold))
            .map(|(&inode, _)| inode)
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
        self.names.clear();
        self.inodes.clear();
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

    /// What is known of what a change starts from; `None`: what it is about is not there.
    pub(crate) fn look(&self, order: &Order<T>) -> Option<Seen> {
        let [first, second] = order.on.map(|inode| self.ids.real(inode));
        let mut seen = Seen {
            basis: Basis {
                on: [first?, second?],
                before: [None; 2],
                replaced: None,
            },
            about: About::default(),
            unknown: [None; 2],
        };
        for (at, place) in order.places.iter().enumerate() {
            let Some(place) = place else {
                continue;
            };
            match self.names.recall(place) {
                None => seen.unknown[at] = Some(self.names.ticket(place)),
                Some(None) => {}
                Some(Some(inode)) => {
                    seen.about.before[at] = Some(inode);
                    seen.basis.before[at] = self.ids.real(inode);
                }
            }
        }
        Some(seen)
    }

    /// A change was made, which perhaps removed a directory. The outcome in clients' numbers.
    pub(crate) fn made(&mut self, removed: Option<u64>, outcome: Outcome) -> Outcome {
        if let Some(removed) = removed {
            self.names.forget_directory(removed);
        }
        self.tell(outcome)
    }

    /// An outcome in clients' numbers.
    pub(crate) fn tell(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Made(real) => {
                let made = self.ids.born(real);
                self.inodes.forget(made);
                Outcome::Made(made)
            }
            outcome => outcome,
        }
    }
}

/// The mark of a client.
fn mark(client: usize) -> u64 {
    match client {
        client if client < CLIENTS => 1 << client,
        _ => ANYBODY,
    }
}
