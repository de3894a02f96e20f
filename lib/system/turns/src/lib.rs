//! Things of which there are few, lent to one at a time in the order of asking.
//!
//! Whoever finds none [waits](Turns::wait) and gets a number, his *turn*. What is given back goes
//! to the first who waits and has nothing yet; who asks later cannot take it from him. Whoever
//! stops waiting [leaves](Turns::leave), and what had been given to him goes on to the next.
//!
//! All of it is meant to be behind one lock. How to sleep is the caller's affair: `give` and
//! `leave` say whose turn has come, and whom to wake. Giving back needs no memory, so nothing is
//! ever lost for want of it.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// There is no memory for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// Somebody who waits.
struct Waiter<T> {
    turn: u64,
    /// What he was given and has not collected.
    given: Option<T>,
}

/// What can be lent, and who waits for it.
///
/// Something is free only while nobody waits without having been given something.
pub struct Turns<T> {
    free: Vec<T>,
    /// How many things there are, free or lent: `free` has room for all.
    all: usize,
    /// In the order of their turns.
    waiting: VecDeque<Waiter<T>>,
    next: u64,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Turns {
            free: Vec::new(),
            all: 0,
            waiting: VecDeque::new(),
            next: 0,
        }
    }
}

impl<T> Turns<T> {
    /// How many things there are, free or lent.
    pub fn all(&self) -> usize {
        self.all
    }

    /// How many wait and have been given nothing yet.
    pub fn waiting(&self) -> usize {
        let without = self.waiting.iter().filter(|one| one.given.is_none());
        without.count()
    }

    /// There is one thing more, which the caller has as if it were lent to him.
    ///
    /// # Errors
    /// No memory: then there is not.
    pub fn add(&mut self) -> Result<(), NoMemory> {
        let more = (self.all + 1).saturating_sub(self.free.len());
        self.free.try_reserve(more).map_err(|_| NoMemory)?;
        self.all += 1;
        Ok(())
    }

    /// Lends something, if something is free.
    pub fn take(&mut self) -> Option<T> {
        self.free.pop()
    }

    /// Joins those who wait; the turn.
    ///
    /// # Errors
    /// No memory.
    pub fn wait(&mut self) -> Result<u64, NoMemory> {
        self.waiting.try_reserve(1).map_err(|_| NoMemory)?;
        let turn = self.next;
        self.next += 1;
        self.waiting.push_back(Waiter { turn, given: None });
        Ok(turn)
    }

    /// What was given to who waits with this turn, if something was. He waits no more then.
    pub fn collect(&mut self, turn: u64) -> Option<T> {
        let at = self.find(turn)?;
        self.waiting[at].given.as_ref()?;
        self.waiting.remove(at)?.given
    }

    /// Who waits with this turn does so no more. If something had been given to him already, the
    /// next one gets it: the turn that has come.
    pub fn leave(&mut self, turn: u64) -> Option<u64> {
        let at = self.find(turn)?;
        let given = self.waiting.remove(at)?.given;
        self.give(given?)
    }

    /// Takes something back. The turn that has come, if somebody waits.
    pub fn give(&mut self, thing: T) -> Option<u64> {
        let first = self.waiting.iter_mut().find(|one| one.given.is_none());
        match first {
            Some(first) => {
                first.given = Some(thing);
                Some(first.turn)
            }
            None => {
                // There is room for all, see `add`.
                self.free.push(thing);
                None
            }
        }
    }

    fn find(&self, turn: u64) -> Option<usize> {
        self.waiting
            .binary_search_by_key(&turn, |one| one.turn)
            .ok()
    }
}
