//! The queue that is open: its book, and its memory objects. Without locks and without a clock.

use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use domain_rt::log;
use interfaces::{BlockOutcome, BlockRequest, DmaWindow, Handle, QueueError, QueueLimits, Raiser};
use requests::Book;

use crate::check::{check, has_data};
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

    /// The request that can be given now, which is given.
    fn next(&mut self, since: u64) -> Option<Job> {
        let (number, request) = self.book.peek()?;
        let request = *request;
        self.book.give();
        let slot = self.slots.get(request.slot as usize);
        let slot = slot.and_then(Option::as_ref);
        let slot = slot.filter(|_| has_data(request.operation));
        Some(Job {
            request,
            since,
            lane: self.id,
            number,
            window: slot.map(|slot| slot.window.clone()),
            hold: None,
        })
    }

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

    /// Who is to be told now that there are answers, or that the device is `gone`.
    fn whom_to_raise(&mut self, gone: bool) -> Option<Arc<Handle<dyn Raiser>>> {
        let due = gone || self.book.answers() > 0;
        if !due || self.is_raised {
            return None;
        }
        self.is_raised = true;
        self.raiser.clone()
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

    /// Takes jobs that can be given now until there are `room` in `jobs`. `now` is asked once, if
    /// there is one. Whether the thread that watches has to be told.
    pub(crate) fn take(
        &mut self,
        room: usize,
        jobs: &mut Vec<Job>,
        now: impl FnOnce() -> u64,
    ) -> bool {
        let lane = self.lane.as_mut().filter(|_| !self.is_gone);
        let Some(lane) = lane else { return false };
        if jobs.len() >= room || lane.book.peek().is_none() {
            return false;
        }
        let (now, before) = (now(), jobs.len());
        while jobs.len() < room
            && let Some(job) = lane.next(now)
        {
            jobs.push(job);
        }
        self.taken += jobs.len() - before;
        mem::take(&mut self.unwatched)
    }

    /// Notes how jobs have ended. Whether that was the last, and no lane is open.
    pub(crate) fn end(&mut self, ended: &mut Vec<(Job, BlockOutcome)>) -> bool {
        for (job, outcome) in ended.drain(..) {
            self.taken -= 1;
            match &mut self.lane {
                Some(open) if open.id == job.lane => open.answer(&job, outcome),
                _ => {}
            }
        }
        self.taken == 0 && self.lane.is_none()
    }

    /// Who is to be told now.
    pub(crate) fn whom_to_raise(&mut self) -> Option<Arc<Handle<dyn Raiser>>> {
        let is_gone = self.is_gone;
        self.lane.as_mut()?.whom_to_raise(is_gone)
    }
}

/// A book for a lane.
///
/// # Errors
/// No memory.
pub(crate) fn new_book() -> Result<Book<BlockRequest, BlockOutcome>, TryReserveError> {
    Book::keeping_barriers(REQUESTS)
}
