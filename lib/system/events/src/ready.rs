//! The slots of a word, and the row of those that were raised.
//!
//! Slots lie in chunks, which are allocated before the lock is taken and stay where they are; the
//! row is a list in both directions through them. So nothing here takes longer with more slots.

use crate::chunks::{self, CHUNK, Chunks, chunk_bytes};
use core::mem::{replace, take};
use core::num::NonZeroU64;

/// The most events that may be bound to one word.
pub const MOST_BOUND: usize = 1 << 16;
/// What a chunk is charged with, in bytes: its slots, and its place among the chunks.
pub const CHUNK_BYTES: usize = chunk_bytes::<Slot>();
/// No slot.
const NONE: u32 = u32::MAX;

/// What an event has to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raised {
    /// How often it was raised; stays at the largest number.
    pub count: u64,
    /// Nobody is left who could raise it.
    pub ended: bool,
}

impl Raised {
    fn is_nothing(self) -> bool {
        self == Raised::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No event's; `next` is the next such slot.
    Free,
    /// Not in the row.
    Quiet,
    /// In the row.
    Queued,
}

/// Where an event counts.
pub(crate) struct Slot {
    tag: u64,
    raised: Raised,
    next: u32,
    previous: u32,
    state: State,
}

/// Memory for more slots.
pub(crate) type Room<P> = chunks::Room<Slot, P>;

/// Room for the slots of `chunks` chunks. `None`: there is no memory.
pub(crate) fn room<P>(chunks: usize, payment: P) -> Option<Room<P>> {
    Room::new(chunks, payment, || Slot {
        tag: 0,
        raised: Raised::default(),
        next: NONE,
        previous: NONE,
        state: State::Free,
    })
}

/// What has to be done before an event can be bound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing: a slot is free.
    Fits,
    /// More room, for so many chunks in all.
    Grow(usize),
    /// There are as many as may be.
    Full,
}

/// Whether somebody is to be told that the row is no longer empty.
#[must_use = "who waits does not look by itself"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rings {
    Yes,
    No,
}

/// The slots of a word.
pub(crate) struct Ready<P> {
    chunks: Chunks<Slot, P>,
    free: u32,
    first: u32,
    last: u32,
}

impl<P> Ready<P> {
    pub(crate) fn new() -> Self {
        Ready {
            chunks: Chunks::new(),
            free: NONE,
            first: NONE,
            last: NONE,
        }
    }

    fn slot(&mut self, number: u32) -> &mut Slot {
        self.chunks.item(number)
    }

    pub(crate) fn plan(&self) -> Plan {
        match self.chunks.count() {
            _ if self.free != NONE => Plan::Fits,
            chunks if chunks * CHUNK >= MOST_BOUND => Plan::Full,
            chunks => Plan::Grow(chunks + 1),
        }
    }

    /// Takes what it needs of `room`. The rest is to be dropped without the lock.
    pub(crate) fn extend(&mut self, room: &mut Room<P>) {
        if !matches!(self.plan(), Plan::Grow(_)) {
            return;
        }
        let Some(first) = self.chunks.extend(room) else {
            return;
        };
        for number in first..first + CHUNK as u32 - 1 {
            self.slot(number).next = number + 1;
        }
        self.free = first;
    }

    /// A slot for an event with this tag that has `raised` to tell. `None`: none is free.
    pub(crate) fn bind(&mut self, tag: u64, raised: Raised) -> Option<(u32, Rings)> {
        let number = self.free;
        if number == NONE {
            return None;
        }
        let slot = self.slot(number);
        let next = slot.next;
        (slot.tag, slot.raised, slot.state) = (tag, raised, State::Quiet);
        self.free = next;
        let rings = match raised.is_nothing() {
            true => Rings::No,
            false => self.queue(number),
        };
        Some((number, rings))
    }

    /// Counts so many raises.
    pub(crate) fn raise(&mut self, number: u32, times: NonZeroU64) -> Rings {
        let raised = &mut self.slot(number).raised;
        raised.count = raised.count.saturating_add(times.get());
        self.queue(number)
    }

    /// Notes that nobody is left who could raise it.
    pub(crate) fn end(&mut self, number: u32) -> Rings {
        self.slot(number).raised.ended = true;
        self.queue(number)
    }

    /// Puts a slot at the end of the row, if it is not in it.
    fn queue(&mut self, number: u32) -> Rings {
        let last = self.last;
        let slot = self.slot(number);
        if slot.state == State::Queued {
            return Rings::No;
        }
        (slot.state, slot.next, slot.previous) = (State::Queued, NONE, last);
        self.last = number;
        if last == NONE {
            self.first = number;
            return Rings::Yes;
        }
        self.slot(last).next = number;
        Rings::No
    }

    /// Takes what the slot's event has to tell, and the slot out of the row.
    pub(crate) fn take(&mut self, number: u32) -> Raised {
        let slot = self.slot(number);
        let (next, previous) = (slot.next, slot.previous);
        let raised = take(&mut slot.raised);
        if replace(&mut slot.state, State::Quiet) == State::Queued {
            match previous {
                NONE => self.first = next,
                previous => self.slot(previous).next = next,
            }
            match next {
                NONE => self.last = previous,
                next => self.slot(next).previous = previous,
            }
        }
        raised
    }

    /// Ends a binding; what its event has to tell.
    pub(crate) fn unbind(&mut self, number: u32) -> Raised {
        let raised = self.take(number);
        let free = self.free;
        let slot = self.slot(number);
        (slot.state, slot.next) = (State::Free, free);
        self.free = number;
        raised
    }

    /// The first event of the row, by its tag, and what it has to tell.
    pub(crate) fn next(&mut self) -> Option<(u64, Raised)> {
        let first = self.first;
        if first == NONE {
            return None;
        }
        let tag = self.slot(first).tag;
        Some((tag, self.take(first)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}
