//! The queue that is open: its book, and its memory objects. Without locks and without a clock.

use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::sync::Arc;
use core::mem;

use domain_rt::log;
use interfaces::{BlockOutcome, BlockRequest, DmaWindow, Handle, QueueError, QueueLimits, Raiser};
use requests::Book;

use crate::check::{check, has_data};
use crate::desk::Desk;
use crate::job::Job;

/// Requests without an answer, and answers that were not taken.
pub const REQUESTS: usize = 512;
/// Slots for memory objects.
pub const SLOTS: usize = 64;

/// A memory object that is registered, and how many requests without an answer name it.
pub(crate) struct Slot {
    window: Arc<Handle<dyn DmaWindow>>,
    uses: u32,
}

/// What a submitter has opened.
pub(crate) struct Lane {
    id: u64,
    pub(crate) book: Book<BlockRequest, BlockOutcome>,
    slots: [Option<Slot>; SLOTS],
    raiser: Option<Arc<Handle<dyn Raiser>>>,
    /// It was raised, and the answers were not all taken since.
    is_raised: bool,
}

impl Lane {
    /// Enters a request, or answers it at once.
    pub(crate) fn enter(
        &mut self,
        limits: &QueueLimits,
        request: &BlockRequest,
    ) -> Result<(), QueueError> {
        let slot = self.slots.get_mut(request.slot as usize);
        let checked = match (check(limits, request), slot) {
            (Ok(()), Some(Some(slot))) if has_data(request.operation) => {
                slot.uses += 1;
                Ok(())
            }
            (Ok(()), _) if has_data(request.operation) => Err(BlockOutcome::BadSlot),
            (checked, _) => checked,
        };
        let entered = match checked {
            Ok(()) => self.book.enter(request.tag, request.barrier, *request),
            Err(outcome) => self.book.refuse(request.tag, outcome),
        };
        entered.map_err(|_| QueueError::BadCount)
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

    /// Gives the request that can be given now; whether there was one. It is put into `place`, and
    /// not moved on its way there.
    #[inline]
    fn give(&mut self, since: u64, place: &mut Option<Job>) -> bool {
        let Some((number, request)) = self.book.give() else {
            return false;
        };
        let slot = self.slots.get(request.slot as usize);
        let slot = slot.and_then(Option::as_ref);
        let slot = slot.filter(|_| has_data(request.operation));
        *place = Some(Job {
            request: *request,
            since,
            mark: false,
            lane: self.id,
            number,
            window: slot.map(|slot| slot.window.clone()),
            hold: None,
            outcome: None,
        });
        true
    }

    #[inline]
    fn answer(&mut self, job: &Job, outcome: BlockOutcome) {
        if let Some(Some(slot)) = self.slots.get_mut(job.request.slot as usize)
            && job.has_data()
        {
            slot.uses -= 1;
        }
        if self.book.complete(job.number, outcome).is_err() {
            log!(
                "an answer to request {}, which nobody waits for",
                job.number
            );
        }
    }

    /// The next answer for the submitter.
    pub(crate) fn take(&mut self) -> Option<(u64, BlockOutcome)> {
        let answer = self.book.take();
        self.is_raised &= answer.is_some();
        answer
    }

    /// Whether somebody is to be told that there are answers, or that the device is `gone`.
    pub(crate) fn is_due(&self, gone: bool) -> bool {
        let any = gone || self.book.answers() > 0;
        any && !self.is_raised && self.raiser.is_some()
    }
}

/// What the lock of the lanes guards.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) lane: Option<Box<Lane>>,
    /// How many were opened.
    opened: u64,
    /// Jobs that were taken and have not come back, whosever they are.
    pub(crate) taken: usize,
    /// The thread that looks for requests that take too long has nothing to look for.
    pub(crate) unwatched: bool,
    /// How often it has looked.
    pub(crate) looks: u64,
    /// The device is of no use any more.
    pub(crate) is_gone: bool,
}

impl State {
    /// Opens an empty lane; its number. There is none.
    pub(crate) fn open(
        &mut self,
        book: Book<BlockRequest, BlockOutcome>,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> u64 {
        self.opened += 1;
        self.lane = Some(Box::new(Lane {
            id: self.opened,
            book,
            slots: [const { None }; SLOTS],
            raiser: raiser.map(Arc::new),
            is_raised: false,
        }));
        self.opened
    }

    /// Closes the lane, if that is meant.
    pub(crate) fn close_if(&mut self, is_meant: impl FnOnce(u64) -> bool) -> Option<Box<Lane>> {
        self.lane.take_if(|lane| is_meant(lane.id))
    }

    /// The lane with this number, if it is the one that is open.
    pub(crate) fn lane(&mut self, id: u64) -> Result<&mut Lane, QueueError> {
        match &mut self.lane {
            _ if self.is_gone => Err(QueueError::Gone),
            Some(lane) if lane.id == id => Ok(lane),
            _ => Err(QueueError::Fenced),
        }
    }

    /// Notes how jobs of a line have ended, and takes as many others as can be given now and there
    /// is `room` for.
    pub(crate) fn exchange(&mut self, desk: &mut Desk, room: usize) -> Told {
        self.end(desk);
        let is_last = self.taken == 0 && self.lane.is_none();
        let before = self.taken;
        self.take(desk, room);
        let lane = self.lane.as_ref();
        Told {
            is_last,
            is_watched: self.taken > before && mem::take(&mut self.unwatched),
            is_due: lane.is_some_and(|lane| lane.is_due(self.is_gone)),
        }
    }

    fn end(&mut self, desk: &mut Desk) {
        for &place in &desk.ended {
            let slot = &mut desk.jobs[usize::from(place)];
            if let Some((job, outcome)) = slot.as_ref().and_then(|job| Some((job, job.outcome?))) {
                self.taken -= 1;
                match &mut self.lane {
                    Some(open) if open.id == job.lane => open.answer(job, outcome),
                    _ => {}
                }
            }
            *slot = None;
            if desk.barred != Some(place) {
                desk.free.push(place);
            }
        }
        desk.ended.clear();
    }

    fn take(&mut self, desk: &mut Desk, room: usize) {
        if desk.seen == desk.new.len() {
            desk.new.clear();
            desk.seen = 0;
        }
        let lane = self.lane.as_mut().filter(|_| !self.is_gone);
        let Some(lane) = lane else { return };
        for _ in 0..room {
            let Some(&place) = desk.free.last() else {
                return;
            };
            if !lane.give(self.looks, &mut desk.jobs[usize::from(place)]) {
                return;
            }
            desk.free.pop();
            desk.new.push(place);
            self.taken += 1;
        }
    }

    /// Who is to be told now.
    pub(crate) fn whom_to_raise(&mut self) -> Option<Arc<Handle<dyn Raiser>>> {
        let is_gone = self.is_gone;
        let lane = self.lane.as_mut().filter(|lane| lane.is_due(is_gone))?;
        lane.is_raised = true;
        lane.raiser.clone()
    }
}

/// Who has to be told after an exchange.
pub(crate) struct Told {
    /// The fence: nothing is with the device any more.
    pub(crate) is_last: bool,
    /// The thread that watches: there is something to look for again.
    pub(crate) is_watched: bool,
    /// The submitter.
    pub(crate) is_due: bool,
}

/// A book for a lane.
///
/// # Errors
/// No memory.
pub(crate) fn new_book() -> Result<Book<BlockRequest, BlockOutcome>, TryReserveError> {
    Book::keeping_barriers(REQUESTS)
}
