//! What the lock of the lanes guards: the lane that is open, and what all lines have.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::mem;

use interfaces::{BlockRequest, Handle, QueueError, Raiser};

use crate::desk::Desk;
use crate::lane::{Lane, Taker};

/// Requests on their way into queue `id`. The first exchange takes them in.
pub struct Batch<'r> {
    pub(crate) id: u64,
    pub(crate) requests: &'r [BlockRequest],
    /// How many were taken in.
    pub(crate) entered: Result<u32, QueueError>,
}

impl<'r> Batch<'r> {
    /// Requests for a queue.
    pub(crate) fn new(id: u64, requests: &'r [BlockRequest]) -> Self {
        let entered = Ok(0);
        Batch {
            id,
            requests,
            entered,
        }
    }

    /// Without requests.
    pub fn empty() -> Self {
        Self::new(0, &[])
    }
}

/// See the module.
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
    pub(crate) fn open(&mut self, mut lane: Box<Lane>) -> u64 {
        self.opened += 1;
        lane.id = self.opened;
        self.lane = Some(lane);
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

    /// Notes how jobs of a line have ended, takes requests in, and gives the line as many as can be
    /// given now, `most` at most.
    pub(crate) fn exchange(&mut self, desk: &mut Desk, most: usize, batch: &mut Batch) -> Told {
        self.end(desk);
        let is_last = self.taken == 0 && self.lane.is_none();
        let is_new = self.take(desk, most, batch);
        let lane = self.lane.as_ref();
        Told {
            is_last,
            is_watched: is_new && mem::take(&mut self.unwatched),
            is_due: lane.is_some_and(|lane| lane.is_due(self.is_gone)),
        }
    }

    /// Answers those jobs that have ended, as far as their lane is still open.
    fn end(&mut self, desk: &mut Desk) {
        self.taken -= match &mut self.lane {
            Some(lane) if lane.id == desk.lane => lane.answer(desk),
            _ => desk.free_ended(),
        };
    }

    /// Whether jobs were taken.
    fn take(&mut self, desk: &mut Desk, most: usize, batch: &mut Batch) -> bool {
        desk.forget_seen();
        let before = desk.new.len();
        let mut taker = Taker::new(desk, most, self.looks);
        if let requests @ [_, ..] = mem::take(&mut batch.requests) {
            let lane = self.lane(batch.id);
            batch.entered = lane.map(|lane| lane.enter(requests, &mut taker));
        }
        if !self.is_gone
            && let Some(lane) = &mut self.lane
        {
            lane.give(&mut taker);
        }
        let new = desk.new.len() - before;
        self.taken += new;
        new > 0
    }

    /// Who is to be told now.
    pub(crate) fn whom_to_raise(&mut self) -> Option<Arc<Handle<dyn Raiser>>> {
        let is_gone = self.is_gone;
        let lane = self.lane.as_mut().filter(|lane| lane.is_due(is_gone))?;
        lane.raise()
    }

    /// That was of no use.
    pub(crate) fn not_raised(&mut self) {
        if let Some(lane) = &mut self.lane {
            lane.not_raised();
        }
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
