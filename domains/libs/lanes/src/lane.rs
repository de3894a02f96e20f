//! The queue that is open: its requests, and its memory objects. Without locks and without a clock.

use alloc::boxed::Box;
use alloc::collections::{TryReserveError, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use interfaces::{
    BlockCompletion, BlockOutcome, BlockRequest, DmaWindow, Handle, QueueError, QueueLimits, Raiser,
};

use crate::check::{check, has_data, is_plain};
use crate::desk::Desk;
use crate::room::Window;

/// Requests without an answer, and answers that were not taken.
pub const REQUESTS: usize = 512;
/// Slots for memory objects.
pub const SLOTS: usize = 64;
/// No slot has this number.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// A memory object that is registered, and how many requests without an answer name it.
pub(crate) struct Slot {
    window: Window,
    uses: u32,
}

/// What a submitter has opened.
///
/// A request waits, is given to a line, and has its answer, which waits for the submitter. Requests
/// are given in their order. One with a barrier is given when no line has one, and nothing behind
/// it before it is answered. There are never more than [`REQUESTS`] in all, so no list grows.
pub(crate) struct Lane {
    pub(crate) id: u64,
    limits: QueueLimits,
    waiting: VecDeque<BlockRequest>,
    given: Given,
    answers: Vec<BlockCompletion>,
    slots: [Option<Slot>; SLOTS],
    raiser: Option<Arc<Handle<dyn Raiser>>>,
    /// It was raised, and the answers were not all taken since.
    is_raised: bool,
}

/// What the lines have.
#[derive(Default)]
struct Given {
    count: usize,
    /// It is a barrier, and so alone.
    is_barrier: bool,
}

impl Given {
    /// Gives a request, if no barrier is in the way; whether it is given.
    #[inline]
    fn add(&mut self, is_barrier: bool) -> bool {
        if self.is_barrier || is_barrier && self.count > 0 {
            return false;
        }
        self.count += 1;
        self.is_barrier = is_barrier;
        true
    }

    fn remove(&mut self, count: usize) {
        self.count -= count;
        // Where a barrier is given nothing else is.
        self.is_barrier &= count == 0;
    }
}

/// A line that takes requests.
pub(crate) struct Taker<'d> {
    desk: &'d mut Desk,
    /// How many more it can take.
    room: usize,
    since: u64,
    /// The slot whose window it has, or [`NO_SLOT`].
    slot: u32,
}

impl<'d> Taker<'d> {
    /// One that takes `most` at most.
    pub(crate) fn new(desk: &'d mut Desk, most: usize, since: u64) -> Self {
        let room = most.min(desk.free.len());
        Taker {
            desk,
            room,
            since,
            slot: NO_SLOT,
        }
    }

    /// Takes a request of a lane, for which there is room.
    fn take(&mut self, lane: u64, slots: &[Option<Slot>; SLOTS], request: &BlockRequest) {
        if has_data(request.operation)
            && let Some(Some(slot)) = slots.get(request.slot as usize)
        {
            self.see_slot(request, slot);
        }
        self.room -= 1;
        self.desk.put(lane, request, self.since);
    }

    /// The next request that is put names this slot: its jobs come with its window, if that is not
    /// the one before.
    #[inline]
    fn see_slot(&mut self, request: &BlockRequest, slot: &Slot) {
        if self.slot != request.slot {
            self.slot = request.slot;
            self.desk.next_window(slot.window.clone());
        }
    }
}

impl Lane {
    /// A queue of a device with these limits.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn new(
        limits: QueueLimits,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Box<Self>, TryReserveError> {
        let (mut waiting, mut answers) = (VecDeque::new(), Vec::new());
        waiting.try_reserve_exact(REQUESTS)?;
        answers.try_reserve_exact(REQUESTS)?;
        Ok(Box::new(Lane {
            id: 0,
            limits,
            waiting,
            given: Given::default(),
            answers,
            slots: [const { None }; SLOTS],
            raiser: raiser.map(Arc::new),
            is_raised: false,
        }))
    }

    /// How many more requests can be entered now.
    fn room(&self) -> usize {
        REQUESTS - self.waiting.len() - self.given.count - self.answers.len()
    }

    /// Enters requests as far as there is room; how many. Those for which nothing is in the way are
    /// given at once.
    pub(crate) fn enter(&mut self, requests: &[BlockRequest], taker: &mut Taker) -> u32 {
        let count = requests.len().min(self.room());
        let requests = &requests[..count];
        let plain = self.enter_plain(requests, taker);
        if plain < count {
            self.enter_others(&requests[plain..], taker);
        }
        count as u32
    }

    /// Enters requests, whatever is wrong with them or in the way.
    #[inline(never)]
    fn enter_others(&mut self, requests: &[BlockRequest], taker: &mut Taker) {
        for request in requests {
            if let Err(outcome) = self.admit(request) {
                let tag = request.tag;
                self.answers.push(BlockCompletion { tag, outcome });
            } else if self.waiting.is_empty() && taker.room > 0 && self.given.add(request.barrier) {
                taker.take(self.id, &self.slots, request);
            } else {
                self.waiting.push_back(*request);
            }
        }
    }

    /// Enters the first requests that are in order and can be given at once, as nearly all are; how
    /// many.
    // Not inlined, so that what the loop has at hand stays in registers.
    #[inline(never)]
    fn enter_plain(&mut self, requests: &[BlockRequest], taker: &mut Taker) -> usize {
        if !self.waiting.is_empty() || self.given.is_barrier {
            return 0;
        }
        let requests = &requests[..requests.len().min(taker.room)];
        let Lane { limits, slots, .. } = self;
        let slot_before = &mut taker.slot;
        let count = taker
            .desk
            .put_while(self.id, requests, taker.since, |request, put| {
                if request.barrier || !is_plain(limits, request) {
                    return false;
                }
                let Some(Some(slot)) = slots.get_mut(request.slot as usize) else {
                    return false;
                };
                slot.uses += 1;
                if *slot_before != request.slot {
                    *slot_before = request.slot;
                    put.next_window(slot.window.clone());
                }
                true
            });
        taker.room -= count;
        self.given.count += count;
        count
    }

    /// Checks a request, and notes in its slot that it is there.
    #[inline]
    fn admit(&mut self, request: &BlockRequest) -> Result<(), BlockOutcome> {
        check(&self.limits, request)?;
        if has_data(request.operation) {
            let slot = self.slots.get_mut(request.slot as usize);
            let slot = slot.and_then(Option::as_mut);
            slot.ok_or(BlockOutcome::BadSlot)?.uses += 1;
        }
        Ok(())
    }

    /// Gives what waits, as far as it can be given now.
    #[inline]
    pub(crate) fn give(&mut self, taker: &mut Taker) {
        if !self.waiting.is_empty() {
            self.give_some(taker);
        }
    }

    #[inline(never)]
    fn give_some(&mut self, taker: &mut Taker) {
        while taker.room > 0
            && let Some(request) = self.waiting.front()
            && self.given.add(request.barrier)
        {
            taker.take(self.id, &self.slots, request);
            self.waiting.pop_front();
        }
    }

    /// Takes a window into an empty slot.
    pub(crate) fn register(
        &mut self,
        slot: u32,
        window: &mut Option<Handle<dyn DmaWindow>>,
    ) -> Result<(), QueueError> {
        let empty = self.slots.get_mut(slot as usize);
        let empty = empty.filter(|slot| slot.is_none());
        let empty = empty.ok_or(QueueError::BadSlot)?;
        let window = window.take().map(Arc::new);
        *empty = window.map(|window| Slot { window, uses: 0 });
        Ok(())
    }

    /// Empties a slot that no request without an answer names; what was in it.
    pub(crate) fn unregister(&mut self, slot: u32) -> Result<Slot, QueueError> {
        let slot = self.slots.get_mut(slot as usize);
        let slot = slot.ok_or(QueueError::BadSlot)?;
        match slot {
            Some(used) if used.uses > 0 => Err(QueueError::InUse),
            _ => slot.take().ok_or(QueueError::BadSlot),
        }
    }

    /// A line has jobs no more: how they ended are answers. How many.
    #[inline]
    pub(crate) fn answer(&mut self, desk: &mut Desk) -> usize {
        let slots = &mut self.slots;
        self.answers.extend(desk.ended().map(|(job, outcome)| {
            let BlockRequest { tag, slot, .. } = job.request;
            if job.has_data()
                && let Some(Some(slot)) = slots.get_mut(slot as usize)
            {
                slot.uses -= 1;
            }
            BlockCompletion { tag, outcome }
        }));
        let count = desk.free_ended();
        self.given.remove(count);
        count
    }

    /// Fills `room` from its start with answers for the submitter; how many.
    pub(crate) fn take(&mut self, room: &mut [BlockCompletion]) -> u32 {
        let count = room.len().min(self.answers.len());
        room[..count].copy_from_slice(&self.answers[..count]);
        match count == self.answers.len() {
            true => self.answers.clear(),
            false => drop(self.answers.drain(..count)),
        }
        self.is_raised &= !self.answers.is_empty();
        count as u32
    }

    /// Whether somebody is to be told that there are answers, or that the device is `gone`.
    pub(crate) fn is_due(&self, gone: bool) -> bool {
        let any = gone || !self.answers.is_empty();
        any && !self.is_raised && self.raiser.is_some()
    }

    /// Whom to tell that, once.
    pub(crate) fn raise(&mut self) -> Option<Arc<Handle<dyn Raiser>>> {
        self.is_raised = true;
        self.raiser.clone()
    }

    /// Somebody is still to be told.
    pub(crate) fn not_raised(&mut self) {
        self.is_raised = false;
    }
}
