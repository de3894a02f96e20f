//! The threads that wait at words of memory.
//!
//! Whoever waits looks at the word with the row of its key locked; whoever wakes has changed the
//! word before, and locks the row then: so none is missed.

use crate::errno::{ENOMEM, Error};
use crate::signals::Ears;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering as Order;
use core::sync::atomic::Ordering;
use domain_rt::sync::{Mutex, MutexGuard};
use interfaces::{RpcError, RpcResult};

/// A power of two.
const ROWS: usize = 256;

/// What a word lies in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A memory, by its number, for words that are said to be private.
    Private(u64),
    /// A memory, by its number. As on Linux that is another place, though the word is the same.
    Memory(u64),
    /// Zeros that are shared, by their number.
    Zeros(u64),
    /// A file that is shared, by its inode.
    File(u64),
}

/// A word: where it lies, and at which byte of that. Whoever has the same key waits at the same
/// word, whatever address it has there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub place: Place,
    pub at: u64,
}

impl Key {
    fn row(self) -> usize {
        let (kind, number) = match self.place {
            Place::Private(number) => (0, number),
            Place::Memory(number) => (1, number),
            Place::Zeros(number) => (2, number),
            Place::File(number) => (3, number),
        };
        let mixed = (number << 2 | kind)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(self.at >> 2)
            .wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed >> 32) as usize % ROWS
    }
}

struct Waiter {
    key: Key,
    /// A wake-up with one of these bits is for it.
    bits: u32,
    ears: Arc<Ears>,
}

type Row<'a> = MutexGuard<'a, Vec<Waiter>>;

impl Waiter {
    fn wake(&self) {
        self.ears.is_woken.store(true, Ordering::Release);
        self.ears.ring();
    }
}

/// Those that wait, in rows by their keys, in the order in which they came. There are as many at
/// most as threads.
pub struct Waiters {
    rows: Vec<Mutex<Vec<Waiter>>>,
    /// Locked while some go from one row to another. It comes before those of rows.
    moving: Mutex<()>,
}

impl Waiters {
    /// None.
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> RpcResult<Self> {
        let mut rows = Vec::new();
        rows.try_reserve_exact(ROWS)
            .map_err(|_| RpcError::NoMemory)?;
        rows.resize_with(ROWS, Mutex::default);
        Ok(Waiters {
            rows,
            moving: Mutex::default(),
        })
    }

    fn row(&self, key: Key) -> Row<'_> {
        self.rows[key.row()].lock()
    }

    /// Puts somebody among those that wait at a word if `look` says so, which sees the word as
    /// whoever wakes has left it.
    ///
    /// # Errors
    /// `ENOMEM`, and what `look` says.
    pub fn enter(
        &self,
        (key, bits): (Key, u32),
        ears: &Arc<Ears>,
        look: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut row = self.row(key);
        look()?;
        row.try_reserve(1).map_err(|_| ENOMEM)?;
        let ears = ears.clone();
        ears.is_woken.store(false, Ordering::Relaxed);
        row.push(Waiter { key, bits, ears });
        Ok(())
    }

    /// Wakes those that wait at a word, `count` at most; how many.
    pub fn wake(&self, key: Key, count: u64, bits: u32) -> u64 {
        let mut woken = 0;
        self.row(key).retain(|waiter| {
            let is_meant = waiter.key == key && waiter.bits & bits != 0 && woken < count;
            if is_meant {
                woken += 1;
                waiter.wake();
            }
            !is_meant
        });
        woken
    }

    /// Wakes those that wait at a word, and has others wait at another one, so many at most of
    /// each, if `look` lets it, which sees the word as [`enter`](Self::enter) says; how many.
    ///
    /// # Errors
    /// Likewise.
    pub fn requeue(
        &self,
        [from, to]: [Key; 2],
        [wake, shift]: [u64; 2],
        look: impl FnOnce() -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let _moving = self.moving.lock();
        let (mut row, mut other) = self.two([from, to]);
        look()?;
        if let Some(other) = &mut other {
            let most = row.iter().filter(|waiter| waiter.key == from).count();
            other
                .try_reserve(most.min(shift as usize))
                .map_err(|_| ENOMEM)?;
        }
        let mut done = 0;
        row.retain_mut(|waiter| {
            if waiter.key != from || done >= wake.saturating_add(shift) {
                return true;
            }
            done += 1;
            if done <= wake {
                waiter.wake();
                return false;
            }
            waiter.key = to;
            let Some(other) = &mut other else {
                return true;
            };
            other.push(Waiter {
                ears: waiter.ears.clone(),
                ..*waiter
            });
            false
        });
        Ok(done)
    }

    /// The row of a key, and that of another if it is another row. They are locked in the order of
    /// the table.
    fn two(&self, [from, to]: [Key; 2]) -> (Row<'_>, Option<Row<'_>>) {
        match from.row().cmp(&to.row()) {
            Order::Equal => (self.row(from), None),
            Order::Less => {
                let first = self.row(from);
                (first, Some(self.row(to)))
            }
            Order::Greater => {
                let first = self.row(to);
                (self.row(from), Some(first))
            }
        }
    }

    /// Takes out whoever does not wait any more; whether it was still there.
    pub fn take_out(&self, key: Key, ears: &Arc<Ears>) -> bool {
        let take = |row: &mut Vec<Waiter>| {
            let place = row.iter().position(|it| Arc::ptr_eq(&it.ears, ears));
            place.map(|place| drop(row.remove(place))).is_some()
        };
        if take(&mut self.row(key)) {
            return true;
        }
        if ears.is_woken.load(Ordering::Acquire) {
            return false;
        }
        // It was moved: it is in another row, or has been woken since.
        let _moving = self.moving.lock();
        self.rows.iter().any(|row| take(&mut row.lock()))
    }
}
