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

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is nobody's yet.
    Waiting,
    /// The carrier has it.
    Given,
    /// It has its answer.
    Answered,
}

struct Entry<R> {
    tag: u64,
    request: R,
    is_barrier: bool,
    state: State,
}

/// The book has no room for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The carrier does not have a request of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGiven;

/// Requests, and answers of the kind `A` that were not taken.
pub struct Book<R, A> {
    /// From the oldest without an answer on; those between that were answered stay until then.
    entries: VecDeque<Entry<R>>,
    /// The number of the first entry.
    first: u64,
    /// The number of the next entry to be given: no one from here on is given.
    next: u64,
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

impl<R, A> Book<R, A> {
    fn new(capacity: usize, keeps_barriers: bool) -> Result<Self, TryReserveError> {
        let mut entries = VecDeque::new();
        entries.try_reserve_exact(capacity)?;
        let mut answers = VecDeque::new();
        answers.try_reserve_exact(capacity)?;
        Ok(Book {
            entries,
            first: 0,
            next: 0,
            given: 0,
            open: 0,
            is_held: false,
            keeps_barriers,
            answers,
            capacity,
        })
    }

    /// An empty book for so many requests, whose barriers are kept here.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn keeping_barriers(capacity: usize) -> Result<Self, TryReserveError> {
        Self::new(capacity, true)
    }

    /// An empty book for so many requests, whose barriers are the carrier's affair.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn passing_barriers_on(capacity: usize) -> Result<Self, TryReserveError> {
        Self::new(capacity, false)
    }

    /// How many more requests can be entered now.
    #[inline]
    pub fn room(&self) -> usize {
        let without_answer = self.capacity - self.entries.len();
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
        let mut entries = self.entries.iter().zip(self.first..);
        let oldest = entries.find(|(entry, _)| entry.state == State::Given);
        oldest.map(|(_, number)| number)
    }

    /// How many answers were not taken.
    pub fn answers(&self) -> usize {
        self.answers.len()
    }

    /// Enters a request.
    ///
    /// # Errors
    /// [`Full`]; nothing was done.
    #[inline]
    pub fn enter(&mut self, tag: u64, is_barrier: bool, request: R) -> Result<(), Full> {
        if self.room() == 0 {
            return Err(Full);
        }
        self.open += 1;
        self.entries.push_back(Entry {
            tag,
            request,
            is_barrier,
            state: State::Waiting,
        });
        Ok(())
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
        let index = self.next_index()?;
        Some((self.next, &self.entries[index].request))
    }

    /// Where the request is that can be given next.
    #[inline]
    fn next_index(&mut self) -> Option<usize> {
        loop {
            let index = (self.next - self.first) as usize;
            let entry = self.entries.get(index)?;
            if entry.state == State::Answered {
                self.next += 1;
                continue;
            }
            let waits = self.is_held || entry.is_barrier && self.given > 0;
            return (!(self.keeps_barriers && waits)).then_some(index);
        }
    }

    /// Whether there may be requests that are not given.
    pub fn has_waiting(&self) -> bool {
        self.next - self.first < self.entries.len() as u64
    }

    /// All that are not given, in their order, whatever barriers say: for a carrier that keeps
    /// them.
    pub fn waiting(&self) -> impl Iterator<Item = (u64, &R)> {
        let from = (self.next - self.first) as usize;
        let entries = self.entries.iter().skip(from).zip(self.next..);
        let waiting = entries.filter(|(entry, _)| entry.state == State::Waiting);
        waiting.map(|(entry, number)| (number, &entry.request))
    }

    /// Gives the request that [`peek`](Self::peek) shows. Without one nothing happens.
    #[inline]
    pub fn give(&mut self) -> Option<(u64, &R)> {
        let index = self.next_index()?;
        let (entry, number) = (&mut self.entries[index], self.next);
        entry.state = State::Given;
        self.is_held = self.keeps_barriers && entry.is_barrier;
        self.given += 1;
        self.next += 1;
        Some((number, &entry.request))
    }

    /// Gives the first `count` of those that [wait](Self::waiting), whatever barriers say.
    pub fn give_waiting(&mut self, count: usize) {
        let from = (self.next - self.first) as usize;
        let mut left = count;
        for entry in self.entries.range_mut(from..) {
            if left == 0 {
                break;
            }
            self.next += 1;
            if entry.state == State::Waiting {
                entry.state = State::Given;
                left -= 1;
            }
        }
        self.given += count - left;
    }

    /// The carrier is done with a request.
    ///
    /// # Errors
    /// [`NotGiven`]: it does not have it. Nothing was done.
    #[inline]
    pub fn complete(&mut self, number: u64, answer: A) -> Result<(), NotGiven> {
        self.settle(number, |_| Some(answer))
    }

    /// The carrier is done with a request. `answer` says what its answer is, if it has one of its
    /// own.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    #[inline]
    pub fn settle(
        &mut self,
        number: u64,
        answer: impl FnOnce(&R) -> Option<A>,
    ) -> Result<(), NotGiven> {
        let index = number.checked_sub(self.first).ok_or(NotGiven)?;
        let index = usize::try_from(index).map_err(|_| NotGiven)?;
        let entry = self.entries.get_mut(index);
        let entry = entry.filter(|entry| entry.state == State::Given);
        let entry = entry.ok_or(NotGiven)?;
        entry.state = State::Answered;
        if let Some(answer) = answer(&entry.request) {
            self.answers.push_back((entry.tag, answer));
        }
        self.given -= 1;
        self.open -= 1;
        // A barrier that is kept is alone with the carrier.
        self.is_held = false;
        if index == 0 {
            self.forget_oldest();
        }
        Ok(())
    }

    /// Forgets the oldest, which was answered, and those behind it that were.
    #[inline]
    fn forget_oldest(&mut self) {
        let answered = |entry: &Entry<R>| entry.state == State::Answered;
        loop {
            self.entries.pop_front();
            self.first += 1;
            if !self.entries.front().is_some_and(answered) {
                break;
            }
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
        let back = self.given;
        for entry in &mut self.entries {
            if entry.state == State::Given {
                entry.state = State::Waiting;
            }
        }
        self.next = self.first;
        self.given = 0;
        self.is_held = false;
        back
    }

    /// Answers all requests that have no answer, in their order.
    pub fn end(&mut self, answer: impl Fn(&R) -> A) {
        self.first += self.entries.len() as u64;
        self.next = self.first;
        self.given = 0;
        self.open = 0;
        self.is_held = false;
        for entry in self.entries.drain(..) {
            if entry.state != State::Answered {
                self.answers.push_back((entry.tag, answer(&entry.request)));
            }
        }
    }
}
