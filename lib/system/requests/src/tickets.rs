//! The submitter's side: whose an answer is, and what may be used again.
//!
//! A *ticket* stands for what a thread has requests under way for, and for the memory that they
//! name. Its number is in their tags. One thread holds it, from [`take`](Tickets::take) until it
//! gives it back; if it cannot wait for the answers, it *abandons* the ticket, which is free when
//! the last one has come. Tickets that are needed together are a *chain*, of which the first one
//! alone has requests; the others are free with it.
//!
//! Nothing may be submitted while something abandoned is [under way](Tickets::is_haunted): it could
//! be overtaken, and a write of long ago land on one of now.
//!
//! When the queue is lost, [`end`](Tickets::end) is the answer to everything, and no ticket is
//! handed out until [`begin_life`](Tickets::begin_life), after the next queue was opened: to open
//! is to fence, so then nobody uses the memory any more.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// Bits of a tag that say the ticket; those above say the life.
const TICKET_BITS: u32 = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Nobody,
    Thread,
    /// Another ticket, whose chain it is in.
    Chain,
    Abandoned,
}

struct Ticket<A> {
    holder: Holder,
    /// Requests that have no answer.
    left: u32,
    failure: Option<A>,
    /// The next one of the chain.
    with: Option<usize>,
}

/// What an answer was for that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

/// All tickets. See the module.
pub struct Tickets<A> {
    all: Vec<Ticket<A>>,
    is_open: bool,
    life: u64,
    /// Tickets that somebody waits for as a chain: nobody else gets one meanwhile.
    wanted: bool,
    abandoned: usize,
    under_way: u64,
    answers: u64,
}

impl<A: Copy> Tickets<A> {
    /// So many tickets, none of which is to be had yet.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn new(count: usize) -> Result<Self, TryReserveError> {
        let mut all = Vec::new();
        all.try_reserve_exact(count)?;
        all.extend((0..count.min(1 << TICKET_BITS)).map(|_| Ticket {
            holder: Holder::Nobody,
            left: 0,
            failure: None,
            with: None,
        }));
        Ok(Tickets {
            all,
            is_open: false,
            life: 0,
            wanted: false,
            abandoned: 0,
            under_way: 0,
            answers: 0,
        })
    }

    /// Whether there is a queue.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// How many requests have no answer.
    pub fn under_way(&self) -> u64 {
        self.under_way
    }

    /// How many answers came so far.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Whether something is under way that nobody waits for.
    pub fn is_haunted(&self) -> bool {
        self.abandoned > 0
    }

    /// A queue was opened, and nothing that was submitted before happens any more.
    pub fn begin_life(&mut self) {
        self.life += 1;
        self.is_open = true;
    }

    /// The queue is lost: `failure` is the answer to all that is under way, and whoever holds a
    /// ticket cannot use it any more.
    pub fn end(&mut self, failure: A) {
        self.is_open = false;
        self.under_way = 0;
        for ticket in &mut self.all {
            ticket.left = 0;
            if ticket.holder != Holder::Nobody {
                ticket.failure = ticket.failure.or(Some(failure));
            }
        }
        for index in 0..self.all.len() {
            if self.all[index].holder == Holder::Abandoned {
                self.abandoned -= 1;
                self.free(index);
            }
        }
    }

    /// A ticket for a thread, if there is one.
    pub fn take(&mut self) -> Option<usize> {
        match self.wanted {
            true => None,
            false => self.take_free(),
        }
    }

    fn take_free(&mut self) -> Option<usize> {
        let free = |ticket: &Ticket<A>| ticket.holder == Holder::Nobody;
        let index = self.all.iter().position(free).filter(|_| self.is_open)?;
        self.all[index].holder = Holder::Thread;
        Some(index)
    }

    /// A chain of `count` tickets, its first. `None`: there are not so many now. While the chain is
    /// wanted nobody else gets a ticket, so that they come to be free: until it was had, or
    /// [`want_no_more`](Self::want_no_more).
    pub fn take_chain(&mut self, count: usize) -> Option<usize> {
        let free = |ticket: &&Ticket<A>| ticket.holder == Holder::Nobody;
        let is_there = count > 0 && self.all.iter().filter(free).count() >= count;
        self.wanted = !is_there || !self.is_open;
        if self.wanted {
            return None;
        }
        let first = self.take_free()?;
        let mut last = first;
        for _ in 1..count {
            let next = self.take_free()?;
            self.all[next].holder = Holder::Chain;
            self.all[last].with = Some(next);
            last = next;
        }
        Some(first)
    }

    /// Nobody waits for a chain any more.
    pub fn want_no_more(&mut self) {
        self.wanted = false;
    }

    /// The next ticket of a chain.
    pub fn next_of(&self, ticket: usize) -> Option<usize> {
        self.all.get(ticket)?.with
    }

    /// How many tickets there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// `requests` more of a ticket are about to be submitted; their tag.
    ///
    /// # Errors
    /// The failure that it has already: nothing may be submitted.
    pub fn begin(&mut self, ticket: usize, requests: u32) -> Result<u64, A> {
        let held = &mut self.all[ticket];
        if let Some(failure) = held.failure {
            return Err(failure);
        }
        held.left += requests;
        self.under_way += u64::from(requests);
        Ok(self.life << TICKET_BITS | ticket as u64)
    }

    /// So many of them were not submitted after all.
    pub fn unbegin(&mut self, ticket: usize, requests: u32) {
        let held = &mut self.all[ticket];
        let back = requests.min(held.left);
        held.left -= back;
        self.under_way -= u64::from(back);
    }

    /// A request has its answer, perhaps a failure.
    ///
    /// # Errors
    /// [`Unknown`]: there is no such request. Nothing was done.
    pub fn answered(&mut self, tag: u64, failure: Option<A>) -> Result<(), Unknown> {
        let index = (tag & ((1 << TICKET_BITS) - 1)) as usize;
        let ticket = self.all.get_mut(index).filter(|ticket| ticket.left > 0);
        let ticket = ticket.filter(|_| tag >> TICKET_BITS == self.life);
        let ticket = ticket.ok_or(Unknown)?;
        ticket.left -= 1;
        ticket.failure = ticket.failure.or(failure);
        self.under_way -= 1;
        self.answers += 1;
        if ticket.left == 0 && ticket.holder == Holder::Abandoned {
            self.abandoned -= 1;
            self.free(index);
        }
        Ok(())
    }

    /// Whether all requests of a ticket have their answers.
    pub fn is_done(&self, ticket: usize) -> bool {
        self.all[ticket].left == 0
    }

    /// The first failure of a ticket's requests.
    pub fn failure(&self, ticket: usize) -> Option<A> {
        self.all[ticket].failure
    }

    /// Its holder needs a ticket, and its chain, no more. What is still under way is abandoned.
    pub fn give_back(&mut self, ticket: usize) {
        if self.is_done(ticket) {
            self.free(ticket);
        } else {
            self.all[ticket].holder = Holder::Abandoned;
            self.abandoned += 1;
        }
    }

    fn free(&mut self, first: usize) {
        let mut next = Some(first);
        while let Some(index) = next {
            let ticket = &mut self.all[index];
            ticket.holder = Holder::Nobody;
            ticket.failure = None;
            next = ticket.with.take();
        }
    }
}
