//! The block queue that is open: its book of requests, and its memory objects.

use alloc::sync::Arc;

use domain_rt::log;
use interfaces::{BlockOperation, BlockOutcome, BlockRequest, DmaWindow, Handle, Raiser};
use requests::Book;

/// Requests without an answer, and answers that were not taken.
pub const REQUESTS: usize = 512;
/// Slots for memory objects.
pub const SLOTS: usize = 64;

/// A memory object that is registered, and how many requests without an answer name it.
pub struct Slot {
    pub window: Arc<Handle<dyn DmaWindow>>,
    pub uses: u32,
}

/// See the module.
pub struct Lane {
    pub id: u64,
    pub book: Book<BlockRequest, BlockOutcome>,
    pub slots: [Option<Slot>; SLOTS],
    raiser: Option<Arc<Handle<dyn Raiser>>>,
    /// It was raised, and the answers were not all taken since.
    is_raised: bool,
}

impl Lane {
    /// An empty one.
    pub fn new(
        id: u64,
        book: Book<BlockRequest, BlockOutcome>,
        raiser: Option<Arc<Handle<dyn Raiser>>>,
    ) -> Self {
        Lane {
            id,
            book,
            slots: [const { None }; SLOTS],
            raiser,
            is_raised: false,
        }
    }

    /// Nobody is told of answers: they are looked for.
    pub fn is_polled(&self) -> bool {
        self.raiser.is_none()
    }

    /// Answers a request that was given.
    pub fn answer(&mut self, number: u64, outcome: BlockOutcome) {
        let request = self.book.with_carrier(number).copied();
        let slot = request.and_then(|request| self.slots.get_mut(request.slot as usize));
        if let (Some(request), Some(Some(slot))) = (request, slot)
            && has_data(request.operation)
        {
            slot.uses -= 1;
        }
        if self.book.complete(number, outcome).is_err() {
            log!("an answer to request {number}, which nobody waits for");
        }
    }

    /// The next answer for the submitter.
    pub fn take(&mut self) -> Option<(u64, BlockOutcome)> {
        let answer = self.book.take();
        self.is_raised &= answer.is_some();
        answer
    }

    /// Who is to be told now that there are answers, or that the device is `gone`.
    pub fn whom_to_raise(&mut self, gone: bool) -> Option<Arc<Handle<dyn Raiser>>> {
        let due = gone || self.book.answers() > 0;
        if !due || self.is_raised {
            return None;
        }
        self.is_raised = true;
        self.raiser.clone()
    }
}

/// Whether the bytes of such a request are in a memory object.
pub fn has_data(operation: BlockOperation) -> bool {
    matches!(operation, BlockOperation::Read | BlockOperation::Write)
}
