//! Which of many timers is due next.
//!
//! A binary heap by deadline. Each timer knows its place in it, so setting, moving and cancelling
//! take time with the logarithm of how many are set, and looking at the earliest takes none.
//!
//! # Protocol
//! All of it is meant to be behind one lock, with interrupts off, so nothing here allocates or
//! frees while it works:
//! - Whoever makes a timer books a place for it ([`Deadlines::book`]). Where there is none, the
//!   room is allocated without the lock and handed in ([`Deadlines::extend`]). A timer that was
//!   made can always be set.
//! - Whatever may be the last reference to a timer, and memory that is not needed any more, is
//!   handed out, to be dropped without the lock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod heap;
#[cfg(test)]
mod tests;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use heap::{Entry, Heap};

/// Places that are allocated together.
const CHUNK: usize = 256;
/// The most timers that there can be.
pub const MOST_TIMERS: usize = 1 << 20;
/// A timer that is not set has this place.
const NOWHERE: u32 = u32::MAX;

/// Something to be done at a time. It belongs to one [`Deadlines`].
///
/// Its numbers are changed by that alone, which the caller has locked.
pub struct Timer<T> {
    place: AtomicU32,
    overruns: AtomicU64,
    value: T,
}

impl<T> Timer<T> {
    /// A timer that is not set. A place has to be booked for it.
    pub const fn new(value: T) -> Self {
        Timer {
            place: AtomicU32::new(NOWHERE),
            overruns: AtomicU64::new(0),
            value,
        }
    }

    /// What is to be done.
    pub const fn value(&self) -> &T {
        &self.value
    }

    fn place(&self) -> Option<usize> {
        let place = self.place.load(Ordering::Relaxed);
        (place != NOWHERE).then_some(place as usize)
    }

    fn note_place(&self, place: usize) {
        self.place.store(place as u32, Ordering::Relaxed);
    }

    fn note_end(&self) {
        self.place.store(NOWHERE, Ordering::Relaxed);
    }
}

/// Why no place was booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// First there has to be [`Room`] for so many chunks in all.
    Grow(usize),
    /// There are as many timers as there can be.
    Full,
}

/// Memory for more places, that was allocated before it is known whether it is needed.
pub struct Room<T> {
    /// Where all chunks find room, if their old place is full.
    table: Vec<Vec<Entry<T>>>,
    chunk: Vec<Entry<T>>,
}

impl<T> Room<T> {
    /// Room for the last of `chunks` chunks. `None`: there is no memory.
    pub fn new(chunks: usize) -> Option<Self> {
        let (mut table, mut chunk) = (Vec::new(), Vec::new());
        table.try_reserve_exact(chunks.next_power_of_two()).ok()?;
        chunk.try_reserve_exact(CHUNK).ok()?;
        Some(Room { table, chunk })
    }
}

/// A timer whose deadline has passed.
pub struct Due<T> {
    /// Which.
    pub timer: Arc<Timer<T>>,
    /// How many of its deadlines have.
    pub times: NonZeroU64,
}

/// How a timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// When it is due next; `None`: it is not set.
    pub deadline: Option<u64>,
    /// How many of its deadlines, since it was set last, passed unseen before a later one was.
    pub overruns: u64,
}

/// The timers that are set, and places for those that are not.
pub struct Deadlines<T> {
    heap: Heap<T>,
    booked: usize,
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Deadlines::new()
    }
}

impl<T> Deadlines<T> {
    /// No timers, and no memory for them.
    pub const fn new() -> Self {
        Deadlines {
            heap: Heap::new(),
            booked: 0,
        }
    }

    /// Books a place for one more timer.
    ///
    /// # Errors
    /// There is none yet, or none any more.
    pub fn book(&mut self) -> Result<(), NoPlace> {
        if self.booked == MOST_TIMERS {
            return Err(NoPlace::Full);
        }
        if self.booked == self.heap.room() {
            return Err(NoPlace::Grow(self.booked / CHUNK + 1));
        }
        self.booked += 1;
        Ok(())
    }

    /// Takes what it needs of `room`. The rest is to be dropped without the lock.
    pub fn extend(&mut self, room: &mut Room<T>) {
        if self.booked == self.heap.room() {
            self.heap.extend(room);
        }
    }

    /// Cancels a timer, whose place is free for others then. What comes back is to be dropped
    /// without the lock.
    ///
    /// # Panics
    /// If more are forgotten than were booked.
    #[must_use = "it is to be dropped without the lock"]
    pub fn forget(&mut self, timer: &Timer<T>) -> Forgotten<T> {
        let cancelled = self.cancel(timer);
        let left = self.booked.checked_sub(1);
        self.booked = left.expect("a place was booked for each timer");
        let spare = self.heap.room() - self.booked;
        let (table, chunk) = match self.booked {
            0 => (self.heap.take_room(), None),
            // One chunk is kept, lest who makes and drops a timer in turns allocates each time.
            _ if spare >= 2 * CHUNK => (Vec::new(), self.heap.pop_chunk()),
            _ => (Vec::new(), None),
        };
        Forgotten {
            _timer: cancelled,
            _table: table,
            _chunk: chunk,
        }
    }

    /// Has `timer` be due at `deadline`, and every `period` from then on, in place of what it was
    /// set to before. Whether no other is due as early: who waits for the earliest waits too long.
    ///
    /// # Panics
    /// If no place was booked for the timer.
    #[must_use = "who waits for the earliest deadline has to learn of an earlier one"]
    pub fn set(
        &mut self,
        timer: &Arc<Timer<T>>,
        deadline: u64,
        period: Option<NonZeroU64>,
    ) -> bool {
        let before = self.next();
        timer.overruns.store(0, Ordering::Relaxed);
        match timer.place() {
            Some(place) => self.heap.change(place, deadline, period),
            None => self.heap.push(Entry {
                deadline,
                period,
                timer: timer.clone(),
            }),
        }
        before.is_none_or(|before| deadline < before)
    }

    /// Ends what `timer` was set to. What was set comes back, to be dropped without the lock;
    /// `None`: it was not set.
    #[must_use = "it is to be dropped without the lock"]
    pub fn cancel(&mut self, timer: &Timer<T>) -> Option<Arc<Timer<T>>> {
        Some(self.heap.remove(timer.place()?))
    }

    /// How `timer` is set.
    pub fn state(&self, timer: &Timer<T>) -> State {
        State {
            deadline: timer.place().map(|place| self.heap.at(place).deadline),
            overruns: timer.overruns.load(Ordering::Relaxed),
        }
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<u64> {
        self.heap.first().map(|entry| entry.deadline)
    }

    /// Puts timers whose deadlines are not after `now` into `due`, in their order, as many as find
    /// room; how many. One with a period is set to the first of its deadlines after `now`, and
    /// those that were left out are counted.
    pub fn take_due(&mut self, now: u64, due: &mut [Option<Due<T>>]) -> usize {
        let mut count = 0;
        for slot in due {
            let Some(taken) = self.take_one(now) else {
                break;
            };
            *slot = Some(taken);
            count += 1;
        }
        count
    }

    fn take_one(&mut self, now: u64) -> Option<Due<T>> {
        let first = self.heap.first()?;
        let late = now.checked_sub(first.deadline)?;
        let (deadline, period) = (first.deadline, first.period);
        let left_out = period.map_or(0, |period| late / period);
        let times = NonZeroU64::MIN.saturating_add(left_out);
        // `None`: that is later than a clock can show.
        let next = period.and_then(|period| deadline.checked_add(period.checked_mul(times)?.get()));
        let timer = match next {
            None => self.heap.remove(0),
            Some(next) => {
                let timer = first.timer.clone();
                self.heap.change(0, next, period);
                timer
            }
        };
        let overruns = timer.overruns.load(Ordering::Relaxed);
        let overruns = overruns.saturating_add(left_out);
        timer.overruns.store(overruns, Ordering::Relaxed);
        Some(Due { timer, times })
    }
}

/// What is left of a timer that was forgotten.
pub struct Forgotten<T> {
    _timer: Option<Arc<Timer<T>>>,
    _table: Vec<Vec<Entry<T>>>,
    _chunk: Option<Vec<Entry<T>>>,
}
