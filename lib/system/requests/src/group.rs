//! Requests that are begun together or not at all, in their order.
//!
//! A [`Group`] is filled in one step, so there is never a part of one. From then on it is its
//! keeper's, who goes on with it though the submitter be gone. Members go into a
//! [`Book`](crate::Book) as room comes there; the group says which may be begun, and has one answer
//! in the end.
//!
//! # Protocol
//! ```text
//! Empty -> fill -> next, begun -> ended -> (all ended, or one failed) -> take -> Empty
//! ```
//! - A member with a barrier is begun when all before it have ended, and nothing behind it before
//!   it has ended itself.
//! - After the first failure nothing more is begun. The group has its answer when what was begun
//!   has ended: the first failure, or none.
//!
//! All memory is taken when a group is made.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// The group cannot be filled with so many, or still has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

/// Room for requests that belong together. See the module.
pub struct Group<R, A> {
    tag: u64,
    /// Each with whether it is a barrier.
    members: Vec<(bool, R)>,
    /// The first that was not begun.
    next: usize,
    /// Members that were begun and have not ended.
    under_way: usize,
    /// One of these is a barrier: then it is the only one.
    is_held: bool,
    failure: Option<A>,
    capacity: usize,
}

impl<R: Copy, A> Group<R, A> {
    /// An empty one, for so many requests.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn new(capacity: usize) -> Result<Self, TryReserveError> {
        let mut members = Vec::new();
        members.try_reserve_exact(capacity)?;
        Ok(Group {
            tag: 0,
            members,
            next: 0,
            under_way: 0,
            is_held: false,
            failure: None,
            capacity,
        })
    }

    /// Whether it can be filled: it is not, or its answer was taken.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether something of it is still to be done.
    pub fn is_open(&self) -> bool {
        let more = self.failure.is_none() && self.next < self.members.len();
        self.under_way > 0 || more
    }

    /// Puts requests in, each with whether it is a barrier: all of them.
    ///
    /// # Errors
    /// [`Unfit`]: there are none, or too many, or it is not empty. Nothing was done.
    pub fn fill(
        &mut self,
        tag: u64,
        members: impl ExactSizeIterator<Item = (bool, R)>,
    ) -> Result<(), Unfit> {
        if !self.is_empty() || members.len() == 0 || members.len() > self.capacity {
            return Err(Unfit);
        }
        self.tag = tag;
        self.next = 0;
        self.members.extend(members);
        Ok(())
    }

    /// The member that may be begun now, if there is one.
    pub fn next(&self) -> Option<R> {
        let (is_barrier, request) = *self.members.get(self.next)?;
        let waits = self.is_held || is_barrier && self.under_way > 0;
        (self.failure.is_none() && !waits).then_some(request)
    }

    /// The member that [`next`](Self::next) has shown is begun. Without one nothing happens.
    pub fn begun(&mut self) {
        if self.next().is_some() {
            self.is_held = self.members[self.next].0;
            self.next += 1;
            self.under_way += 1;
        }
    }

    /// A member that was begun has ended, perhaps with a failure.
    pub fn ended(&mut self, failure: Option<A>) {
        self.under_way = self.under_way.saturating_sub(1);
        self.is_held = false;
        self.failure = self.failure.take().or(failure);
    }

    /// All its requests, until its answer is taken.
    pub fn members(&self) -> impl Iterator<Item = &R> {
        self.members.iter().map(|(_, request)| request)
    }

    /// Its answer, once: tag, and the first failure. It is empty then.
    pub fn take(&mut self) -> Option<(u64, Option<A>)> {
        if self.is_empty() || self.is_open() {
            return None;
        }
        self.members.clear();
        Some((self.tag, self.failure.take()))
    }
}
