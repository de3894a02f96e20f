//! What a submitter has opened, and the driver's queue behind it.
//!
//! Nothing here waits, and nothing takes a lock: all is called with that of the
//! [`Volume`](crate::volume::Volume), whose module says what fronts and backs are.

use alloc::sync::Arc;

use domain_rt::log;
use interfaces::{
    BlockCompletion, BlockOperation, BlockOutcome, BlockQueue, BlockRequest, Failure, Handle,
    QueueError, QueueLimits, RVec, Raiser, RpcError, RpcResult, VmoView,
};
use requests::Book;

/// Requests without an answer.
pub const REQUESTS: usize = 512;
/// Slots for memory objects.
pub const SLOTS: usize = 64;
/// Requests in one call.
pub const BATCH: usize = 256;

const NO_LIMITS: QueueLimits = QueueLimits {
    sectors: 0,
    read_only: true,
    requests: 0,
    request_sectors: 0,
    slots: 0,
    discard_sectors: 0,
    zeroes_sectors: 0,
};

const NO_REQUEST: BlockRequest = BlockRequest {
    tag: 0,
    operation: BlockOperation::Flush,
    sector: 0,
    sectors: 0,
    slot: 0,
    at: 0,
    durable: false,
    barrier: false,
};

/// A view in its slot, and how many requests without an answer name it.
pub struct Slot {
    pub view: Handle<dyn VmoView>,
    pub uses: u32,
}

/// A queue of one instance of the driver.
pub struct Back {
    /// The instance.
    pub instance: u32,
    /// Which of all backs it is.
    pub number: u64,
    pub queue: Handle<dyn BlockQueue>,
}

/// A request of the submitter.
#[derive(Clone, Copy)]
struct Asked {
    request: BlockRequest,
    /// Its slot counts it.
    is_counted: bool,
}

/// What a submitter has opened.
pub struct Front {
    pub id: u64,
    book: Book<Asked, BlockOutcome>,
    pub slots: [Option<Slot>; SLOTS],
    pub raiser: Option<Arc<Handle<dyn Raiser>>>,
    pub back: Option<Back>,
    /// The instance of the driver that was lost last.
    pub failed: u32,
    /// Its submitter has it. Until then it is the affair of who opens it.
    pub is_open: bool,
    /// There is no driver to be had.
    pub is_dead: bool,
    pub limits: QueueLimits,
    /// What requests are handed on in.
    batch: RVec<BlockRequest>,
}

/// Whether an error says that this queue is of no use any more. Until all threads have left a dead
/// driver one of them may come back with an error of its own.
fn is_lost(queue: &Handle<dyn BlockQueue>, error: &QueueError) -> bool {
    error.is_gone() || matches!(error, QueueError::Fenced) || is_dead(queue)
}

fn is_dead(queue: &Handle<dyn BlockQueue>) -> bool {
    queue.limits().is_err_and(|error| error.is_gone())
}

impl Front {
    /// Without a driver.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn new(raiser: Option<Arc<Handle<dyn Raiser>>>) -> RpcResult<Self> {
        let book = Book::passing_barriers_on(REQUESTS).map_err(|_| RpcError::NoMemory)?;
        Ok(Front {
            id: 0,
            book,
            slots: [const { None }; SLOTS],
            raiser,
            back: None,
            failed: 0,
            is_open: false,
            is_dead: false,
            limits: NO_LIMITS,
            batch: RVec::filled(NO_REQUEST, BATCH)?,
        })
    }

    /// The driver's queue is of no use any more; the keeper has to be told.
    pub fn lose(&mut self) -> Option<Back> {
        let back = self.back.take()?;
        self.failed = back.instance;
        self.book.again();
        Some(back)
    }

    /// Hands on what waits. Whether the back lives.
    pub fn pump(&mut self) -> bool {
        let Some(back) = &self.back else { return true };
        loop {
            let mut count = 0;
            for (place, (number, asked)) in self.batch.iter_mut().zip(self.book.waiting()) {
                *place = BlockRequest {
                    tag: number,
                    ..asked.request
                };
                count += 1;
            }
            if count == 0 {
                return true;
            }
            match back.queue.submit(&self.batch, count) {
                Ok(taken) if taken > count => return false,
                Ok(taken) => {
                    (0..taken).for_each(|_| self.book.give());
                    if taken < count || count < BATCH as u32 {
                        return true;
                    }
                }
                Err(error) if is_lost(&back.queue, &error) => return false,
                // For want of memory, perhaps: it is tried again with the next call.
                Err(_) => return true,
            }
        }
    }

    /// Puts a view into a slot of the driver's queue, if there is one. Whether that is lost.
    pub fn register_back(&self, slot: u32, view: &Handle<dyn VmoView>) -> Result<bool, QueueError> {
        let Some(back) = &self.back else {
            return Ok(false);
        };
        match back.queue.register(slot, view.duplicate()?) {
            Ok(()) => Ok(false),
            Err(error) if is_lost(&back.queue, &error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Empties a slot of the driver's queue, if there is one. Whether that is lost: it is also if
    /// it does not do so, for then the slot would be another's there.
    pub fn unregister_back(&self, slot: u32) -> bool {
        let back = self.back.as_ref();
        back.is_some_and(|back| back.queue.unregister(slot).is_err())
    }

    /// Takes the driver's answers into `room`, which comes back with the submitter's tags.
    pub fn take_answers(&mut self, room: RVec<BlockCompletion>) -> Result<Collected, QueueError> {
        let Some(back) = &self.back else {
            return Ok(Collected::nothing(Some(room), false));
        };
        let length = room.len();
        let (room, count) = match back.queue.completions(room) {
            Ok(answer) => answer,
            Err(error) if is_lost(&back.queue, &error) => {
                return Ok(Collected::nothing(None, true));
            }
            Err(error) => return Err(error),
        };
        if room.len() != length || count as usize > length {
            log!("the driver gives {count} answers in room for {length}");
            return Ok(Collected::nothing(None, true));
        }
        let answers = &room[..count as usize];
        let failed = |answer: &BlockCompletion| answer.outcome != BlockOutcome::Done;
        let is_lost = answers.iter().any(failed) && is_dead(&back.queue);
        Ok(self.translate(room, count as usize, is_lost))
    }

    /// Puts the submitter's tags into the first `count` answers. Of a driver that is lost only
    /// those count that say that something was done.
    fn translate(
        &mut self,
        mut room: RVec<BlockCompletion>,
        count: usize,
        mut is_lost: bool,
    ) -> Collected {
        let mut told = 0;
        for index in 0..count {
            let BlockCompletion { tag, outcome } = room[index];
            if is_lost && outcome != BlockOutcome::Done {
                continue;
            }
            match self.answer(tag, outcome) {
                Some(tag) => {
                    room[told] = BlockCompletion { tag, outcome };
                    told += 1;
                }
                None => {
                    log!("the driver answers request {tag}, which it does not have");
                    is_lost = true;
                }
            }
        }
        Collected {
            room: Some(room),
            count: told as u32,
            is_lost,
        }
    }

    /// The submitter's tag of a request that has its answer now.
    fn answer(&mut self, number: u64, outcome: BlockOutcome) -> Option<u64> {
        let asked = *self.book.with_carrier(number)?;
        self.book.complete(number, outcome).ok()?;
        if let Some(Some(slot)) = self.slots.get_mut(asked.request.slot as usize)
            && asked.is_counted
        {
            slot.uses -= 1;
        }
        self.book.take().map(|(tag, _)| tag)
    }

    /// Enters a request. Its slot, if it names one that has something, stays as it is.
    pub fn enter(&mut self, request: &BlockRequest) -> bool {
        let asks = matches!(
            request.operation,
            BlockOperation::Read | BlockOperation::Write
        );
        let is_full = self.book.room() == 0;
        let slot = self.slots.get_mut(request.slot as usize);
        let slot = slot.and_then(Option::as_mut).filter(|_| asks && !is_full);
        let is_counted = slot.map(|slot| slot.uses += 1).is_some();
        let asked = Asked {
            request: *request,
            is_counted,
        };
        self.book.enter(request.tag, request.barrier, asked).is_ok()
    }
}

/// What came of looking for answers.
pub struct Collected {
    /// None if it was lost with the driver.
    pub room: Option<RVec<BlockCompletion>>,
    pub count: u32,
    pub is_lost: bool,
}

impl Collected {
    fn nothing(room: Option<RVec<BlockCompletion>>, is_lost: bool) -> Self {
        Collected {
            room,
            count: 0,
            is_lost,
        }
    }
}
