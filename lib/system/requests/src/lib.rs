//! Requests that somebody has to carry out, in the order in which they were submitted, until each
//! has its one answer.
//!
//! A [`Book`] stands between a *submitter* and a *carrier*. The submitter enters requests under
//! tags of its own and takes answers; the carrier gets them one by one, each under a number that is
//! never used again, and says how each ended. A driver keeps such a book in front of its device, a
//! shadow one in front of its driver.
//!
//! # Protocol
//! ```text
//! Waiting -> peek, give -> Given -> complete -> answered -> take
//!    ^                       |
//!    +-------- again --------+        the carrier is gone, the next one gets all of them
//! ```
//! - Requests are given in their order. What [`again`](Book::again) sends back is given again
//!   before all that is waiting, in its old order; what was answered is not.
//! - In a book that [keeps barriers](Book::keeping_barriers) a request with a barrier is given when
//!   all before it are answered, and nothing behind it before it is answered itself. In one that
//!   [passes them on](Book::passing_barriers_on) that is the carrier's affair.
//! - An answer that nobody waits for (a number that was never given, or has its answer already) is
//!   refused and changes nothing.
//! - [`end`](Book::end) answers everything at once: when it returns nothing is with the carrier any
//!   more, as far as the submitter can see. That this is true is up to who calls it.
//!
//! # Limits
//! A book has room for so many requests as it is made for, from the oldest that is not answered to
//! the newest, and answers that were not taken count as well. All memory is taken when it is made.
//!
//! Requests that are to be begun together or not at all are a [`group`]. What a submitter keeps of
//! his requests is in [`tickets`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod group;
#[cfg(test)]
mod tests;
pub mod tickets;

use alloc::collections::{TryReserveError, VecDeque};
use alloc::vec::Vec;

struct Entry<R> {
    tag: u64,
    request: R,
    is_barrier: bool,
    /// It has its answer. Else the carrier has it, if it is before the next to be given.
    is_answered: bool,
}

/// The book has no room for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The carrier does not have a request of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGiven;

/// Requests, and answers of the kind `A` that were not taken.
pub struct Book<R, A> {
    /// As many as the next power of two: a request lies where the last bits of its number say.
    entries: Vec<Entry<R>>,
    mask: u64,
    /// The oldest without an answer; those between that were answered stay until it has one.
    first: u64,
    /// The number of the next entry to be given: no one from here on is given.
    next: u64,
    /// The number of the next entry to come.
    end: u64,
    /// Entries that the carrier has.
    given: usize,
    /// Entries that have no answer.
    open: usize,
    /// One of those that are given is a barrier that has to be kept: then it is the only one.
    is_held: bool,
    keeps_barriers: bool,
    answers: VecDeque<(u64, A)>,
    capacity: usize,
}

impl<R: Copy, A> Book<R, A> {
    fn new(capacity: usize, keeps_barriers: bool, blank: R) -> Result<Self, TryReserveError> {
        let places = capacity.next_power_of_two();
        let mut entries = Vec::new();
        entries.try_reserve_exact(places)?;
        entries.resize_with(places, || Entry {
            tag: 0,
            request: blank,
            is_barrier: false,
            is_answered: true,
        });
        let mut answers = VecDeque::new();
        answers.try_reserve_exact(capacity)?;
        Ok(Book {
            entries,
            mask: places as u64 - 1,
            first: 0,
            next: 0,
            end: 0,
            given: 0,
            open: 0,
            is_held: false,
            keeps_barriers,
            answers,
            capacity,
        })
    }

    /// An empty book for so many requests, whose barriers are kept here. Where none is, there is
    /// `blank`.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn keeping_barriers(capacity: usize, blank: R) -> Result<Self, TryReserveError> {
        Self::new(capacity, true, blank)
    }

    /// An empty book for so many requests, whose barriers are the carrier's affair. Where none is,
    /// there is `blank`.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn passing_barriers_on(capacity: usize, blank: R) -> Result<Self, TryReserveError> {
        Self::new(capacity, false, blank)
    }

    /// How many more requests can be entered now.
    #[inline]
    pub fn room(&self) -> usize {
        let without_answer = self.capacity - (self.end - self.first) as usize;
        without_answer.min(self.capacity - self.open - self.answers.len())
    }

    /// How many requests have no answer.
    pub fn open(&self) -> usize {
        self.open
    }

    /// How many requests the carrier has.
    pub fn given(&self) -> usize {
        self.given
    }

    /// The number of the oldest request that the carrier has.
    pub fn oldest(&self) -> Option<u64> {
        // The first has no answer, and it is given before all others.
        (self.next > self.first).then_some(self.first)
    }

    /// How many answers were not taken.
    pub fn answers(&self) -> usize {
        self.answers.len()
    }

    #[inline]
    fn entry(&self, number: u64) -> Option<&Entry<R>> {
        self.entries.get((number & self.mask) as usize)
    }

    /// Enters a request.
    ///
    /// # Errors
    /// [`Full`]; nothing was done.
    pub fn enter(&mut self, tag: u64, is_barrier: bool, request: R) -> Result<(), Full> {
        match self.enter_all(&[()], |(), _| (tag, is_barrier, request)) {
            0 => Err(Full),
            _ => Ok(()),
        }
    }

    /// Enters requests as far as there is room, each as `make` says, which is told its number: its
    /// tag, whether it is a barrier, and what it is. How many.
    #[inline(always)]
    pub fn enter_all<'q, Q>(
        &mut self,
        all: &'q [Q],
        mut make: impl FnMut(&'q Q, u64) -> (u64, bool, R),
    ) -> usize {
        let count = all.len().min(self.room());
        for (one, number) in all[..count].iter().zip(self.end..) {
            let Some(place) = self.entries.get_mut((number & self.mask) as usize) else {
                break;
            };
            let (tag, is_barrier, request) = make(one, number);
            place.tag = tag;
            place.request = request;
            place.is_barrier = is_barrier;
            place.is_answered = false;
        }
        self.end += count as u64;
        self.open += count;
        count
    }

    /// Answers a request that was never entered.
    ///
    /// # Errors
    /// [`Full`]; nothing was done.
    pub fn refuse(&mut self, tag: u64, answer: A) -> Result<(), Full> {
        if self.room() == 0 {
            return Err(Full);
        }
        self.answers.push_back((tag, answer));
        Ok(())
    }

    /// The request that can be given next, and its number; `None` if there is none, or a barrier is
    /// in the way.
    pub fn peek(&mut self) -> Option<(u64, &R)> {
        self.find_next()?;
        Some((self.next, &self.entry(self.next)?.request))
    }

    /// Goes on to the request that can be given next, if there is one.
    fn find_next(&mut self) -> Option<()> {
        while self.next < self.end {
            let (is_held, given) = (self.is_held, self.given);
            let entry = self.entry(self.next)?;
            if !entry.is_answered {
                let waits = is_held || entry.is_barrier && given > 0;
                return (!(self.keeps_barriers && waits)).then_some(());
            }
            self.next += 1;
        }
        None
    }

    /// Whether there may be requests that are not given.
    pub fn has_waiting(&self) -> bool {
        self.next < self.end
    }

    /// All that are not given, in their order, whatever barriers say: for a carrier that keeps
    /// them.
    #[inline]
    pub fn waiting(&self) -> impl Iterator<Item = (u64, &R)> {
        let (entries, mask) = (&self.entries[..], self.mask);
        (self.next..self.end).filter_map(move |number| {
            let entry = entries.get((number & mask) as usize)?;
            (!entry.is_answered).then_some((number, &entry.request))
        })
    }

    /// Gives the request that [`peek`](Self::peek) shows. Without one nothing happens.
    pub fn give(&mut self) -> Option<(u64, &R)> {
        self.find_next()?;
        let number = self.next;
        self.next += 1;
        self.given += 1;
        self.is_held = self.keeps_barriers && self.entry(number)?.is_barrier;
        Some((number, &self.entry(number)?.request))
    }

    /// Gives the first `count` of those that [wait](Self::waiting), whatever barriers say.
    pub fn give_waiting(&mut self, count: usize) {
        let behind = (self.end - self.next) as usize;
        if behind == self.open - self.given {
            // None of them is answered.
            let count = count.min(behind);
            self.next += count as u64;
            self.given += count;
            return;
        }
        let mut left = count;
        while left > 0 && self.next < self.end {
            let is_answered = self.entry(self.next).is_none_or(|it| it.is_answered);
            self.next += 1;
            left -= usize::from(!is_answered);
        }
        self.given += count - left;
    }

    /// The carrier is done with a request.
    ///
    /// # Errors
    /// [`NotGiven`]: it does not have it. Nothing was done.
    pub fn complete(&mut self, number: u64, answer: A) -> Result<(), NotGiven> {
        self.settle(number, |_, _| Some(answer))?;
        self.forget_settled();
        Ok(())
    }

    /// The carrier is done with a request. `answer` sees its tag and what it was, and says what its
    /// answer is, if that is to be kept until it is [taken](Self::take). The request has its place
    /// until [`forget_settled`](Self::forget_settled), which must follow.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    // Inlined, as all that each request of a batch goes through.
    #[inline(always)]
    pub fn settle(
        &mut self,
        number: u64,
        answer: impl FnOnce(u64, &R) -> Option<A>,
    ) -> Result<(), NotGiven> {
        // What is not known is far behind the first, or before it, which is farther still.
        let is_given = number.wrapping_sub(self.first) < self.next - self.first;
        let entry = self.entries.get_mut((number & self.mask) as usize);
        let Some(entry) = entry.filter(|entry| is_given && !entry.is_answered) else {
            return Err(NotGiven);
        };
        entry.is_answered = true;
        if let Some(answer) = answer(entry.tag, &entry.request) {
            self.answers.push_back((entry.tag, answer));
        }
        self.given -= 1;
        self.open -= 1;
        // A barrier that is kept is alone with the carrier.
        self.is_held = false;
        Ok(())
    }

    /// Forgets the oldest requests, as far as they were answered.
    pub fn forget_settled(&mut self) {
        if self.open == 0 {
            self.first = self.end;
        }
        while self.first < self.end && self.entry(self.first).is_some_and(|it| it.is_answered) {
            self.first += 1;
        }
        self.next = self.next.max(self.first);
    }

    /// The oldest answer that was not taken, with the submitter's tag.
    #[inline]
    pub fn take(&mut self) -> Option<(u64, A)> {
        self.answers.pop_front()
    }

    /// The carrier is gone: what it had waits for the next one. How many that are.
    pub fn again(&mut self) -> usize {
        self.next = self.first;
        self.is_held = false;
        core::mem::take(&mut self.given)
    }

    /// Answers all requests that have no answer, in their order.
    pub fn end(&mut self, answer: impl Fn(&R) -> A) {
        for number in self.first..self.end {
            let entry = self.entries.get((number & self.mask) as usize);
            if let Some(entry) = entry.filter(|entry| !entry.is_answered) {
                self.answers.push_back((entry.tag, answer(&entry.request)));
            }
        }
        self.first = self.end;
        self.next = self.end;
        self.given = 0;
        self.open = 0;
        self.is_held = false;
    }
}
