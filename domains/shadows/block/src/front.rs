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
use requests::group::Group;

/// Requests without an answer.
pub const REQUESTS: usize = 512;
/// Slots for memory objects.
pub const SLOTS: usize = 64;
/// Requests in one call.
pub const BATCH: usize = 256;
/// Requests in a group.
const GROUP: usize = 2048;

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

const NO_ANSWER: BlockCompletion = BlockCompletion {
    tag: 0,
    outcome: BlockOutcome::Done,
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
    /// It is of the group, which has the one answer.
    is_member: bool,
}

const BLANK: Asked = Asked {
    request: NO_REQUEST,
    is_counted: false,
    is_member: false,
};

/// What became of an attempt to take the driver's answers.
enum Gathered {
    /// It has no more.
    All,
    /// It may have more.
    Some,
    /// It is lost.
    Lost,
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
    /// Its submitter has it no more. It lives until its group is done.
    pub is_ending: bool,
    /// There is no driver to be had.
    pub is_dead: bool,
    pub limits: QueueLimits,
    /// Requests that are carried out to their end though their submitter dies.
    group: Group<BlockRequest, BlockOutcome>,
    /// What requests are handed on in, and what the driver puts its answers into.
    batch: RVec<BlockRequest>,
    room: Option<RVec<BlockCompletion>>,
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
        let book = Book::passing_barriers_on(REQUESTS, BLANK).map_err(|_| RpcError::NoMemory)?;
        let group = Group::new(GROUP).map_err(|_| RpcError::NoMemory)?;
        Ok(Front {
            id: 0,
            book,
            group,
            slots: [const { None }; SLOTS],
            raiser,
            back: None,
            failed: 0,
            is_open: false,
            is_ending: false,
            is_dead: false,
            limits: NO_LIMITS,
            batch: RVec::filled(NO_REQUEST, BATCH)?,
            room: None,
        })
    }

    /// The driver's queue is of no use any more; the keeper has to be told.
    pub fn lose(&mut self) -> Option<Back> {
        let back = self.back.take()?;
        self.failed = back.instance;
        self.book.again();
        Some(back)
    }

    /// Enters requests as far as there is room, and hands them on if the gate `is_open`; how many
    /// were entered, and whether the back lives.
    pub fn submit(&mut self, requests: &[BlockRequest], is_open: bool) -> (u32, bool) {
        // Where nothing else waits, the batch is what is handed on.
        let is_next = !self.book.has_waiting() && !self.has_group();
        let count = self.enter(requests);
        let lives = match (&self.back, is_next) {
            _ if !is_open => true,
            (Some(back), true) => match hand_on(back, &self.batch, count) {
                Some(taken) => {
                    self.book.give_waiting(taken as usize);
                    true
                }
                None => false,
            },
            _ => self.pump(),
        };
        (count, lives)
    }

    /// Hands on what waits. Whether the back lives.
    pub fn pump(&mut self) -> bool {
        self.begin_members();
        if !self.book.has_waiting() {
            return true;
        }
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
            let Some(taken) = hand_on(back, &self.batch, count) else {
                return false;
            };
            self.book.give_waiting(taken as usize);
            if taken < count || count < BATCH as u32 {
                return true;
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
    /// it says that there is nothing, for then its slots are others.
    ///
    /// # Errors
    /// That of a driver which lives, and has the slot as it was.
    pub fn unregister_back(&self, slot: u32) -> Result<bool, QueueError> {
        let Some(back) = &self.back else {
            return Ok(false);
        };
        match back.queue.unregister(slot) {
            Ok(()) => Ok(false),
            Err(error) if is_lost(&back.queue, &error) => Ok(true),
            // Who calls may have too little stack for it, or may have asked for what lies in a slot
            // before there was something: a driver must not be ended for that.
            Err(error @ (QueueError::InUse | QueueError::Rpc(_))) => Err(error),
            Err(_) => Ok(true),
        }
    }

    /// Takes all answers that the driver has. As many as there is `room` for go straight there, if
    /// none was kept before; the rest is kept. How many went there, and whether the driver lives.
    pub fn gather(&mut self, room: &mut [BlockCompletion]) -> Result<(u32, bool), QueueError> {
        let room = match self.has_answers() {
            true => &mut [],
            false => room,
        };
        let mut used = 0;
        loop {
            match self.gather_some(&mut room[used..]) {
                Ok((more, Gathered::Some)) => used += more,
                Ok((more, gathered)) => {
                    let lives = !matches!(gathered, Gathered::Lost);
                    return Ok(((used + more) as u32, lives));
                }
                Err(error) if used == 0 => return Err(error),
                // What went there must not be lost by it: the next call comes upon it.
                Err(_) => return Ok((used as u32, true)),
            }
        }
    }

    /// Takes as many answers as there may be in one call; how many went to `room`.
    fn gather_some(&mut self, to: &mut [BlockCompletion]) -> Result<(usize, Gathered), QueueError> {
        let Some(back) = &self.back else {
            return Ok((0, Gathered::All));
        };
        let room = match self.room.take() {
            Some(room) => room,
            None => RVec::filled(NO_ANSWER, BATCH)?,
        };
        let (room, count) = match back.queue.completions(room) {
            Ok((room, count)) => (room, count as usize),
            Err(error) if is_lost(&back.queue, &error) => return Ok((0, Gathered::Lost)),
            Err(error) => return Err(error),
        };
        if room.len() != BATCH || count > BATCH {
            log!("the driver gives {count} answers in room for {BATCH}");
            return Ok((0, Gathered::Lost));
        }
        let (used, lives) = self.note(&room[..count], to);
        self.room = Some(room);
        let gathered = match count {
            _ if !lives => Gathered::Lost,
            BATCH => Gathered::Some,
            _ => Gathered::All,
        };
        Ok((used, gathered))
    }

    /// Notes what the driver answers: how many answers went to `room`, and whether the driver is to
    /// be kept. Of one that is lost only those count that say that something was done.
    fn note(&mut self, answers: &[BlockCompletion], room: &mut [BlockCompletion]) -> (usize, bool) {
        let Front {
            book,
            slots,
            group,
            back,
            ..
        } = self;
        let length = room.len();
        let (mut places, mut lives, mut is_lost) = (room.iter_mut(), true, None);
        for &BlockCompletion {
            tag: number,
            outcome,
        } in answers
        {
            let mut ask = || back.as_ref().is_none_or(|back| is_dead(&back.queue));
            if outcome != BlockOutcome::Done && *is_lost.get_or_insert_with(&mut ask) {
                lives = false;
                continue;
            }
            let settled = book.settle(number, |tag, asked| {
                if asked.is_member {
                    member_ended(group, slots, outcome);
                    return None;
                }
                if asked.is_counted {
                    release(slots, asked.request.slot);
                }
                let Some(place) = places.next() else {
                    return Some(outcome);
                };
                *place = BlockCompletion { tag, outcome };
                None
            });
            if settled.is_err() {
                log!("the driver answers request {number}, which it does not have");
                lives = false;
            }
        }
        book.forget_settled();
        (length - places.len(), lives)
    }

    /// Fills `room` from its start with answers that were not taken; how many.
    pub fn take(&mut self, room: &mut [BlockCompletion]) -> u32 {
        let mut count = 0;
        for place in room {
            let of_group =
                |(tag, failure): (_, Option<_>)| (tag, failure.unwrap_or(BlockOutcome::Done));
            let answer = self.book.take();
            let Some((tag, outcome)) = answer.or_else(|| self.group.take().map(of_group)) else {
                break;
            };
            *place = BlockCompletion { tag, outcome };
            count += 1;
        }
        count
    }

    /// Whether there are answers that were not taken, but for a group's.
    fn has_answers(&self) -> bool {
        self.book.answers() > 0
    }

    /// Whom to tell of answers that were not taken, if there are some, that of a group too.
    pub fn whom_to_tell(&self) -> Option<Arc<Handle<dyn Raiser>>> {
        let is_done = !self.group.is_empty() && !self.group.is_open();
        let raiser = self.raiser.as_ref();
        raiser.filter(|_| is_done || self.has_answers()).cloned()
    }

    /// Whether the driver has requests.
    pub fn has_given(&self) -> bool {
        self.back.is_some() && self.book.given() > 0
    }

    /// Whether something waits, and no answer of the driver will have somebody look after it.
    pub fn is_stuck(&self) -> bool {
        let waits = self.book.has_waiting() || self.has_group();
        waits && self.back.is_some() && self.book.given() == 0
    }

    /// The number of the back, and that of the oldest request that it has.
    pub fn oldest(&self) -> Option<(u64, u64)> {
        Some((self.back.as_ref()?.number, self.book.oldest()?))
    }

    /// Whether a group is not done.
    pub fn has_group(&self) -> bool {
        self.group.is_open()
    }

    /// Takes a group on: all of it, or nothing.
    pub fn enter_group(&mut self, tag: u64, requests: &[BlockRequest]) -> Result<(), QueueError> {
        if !self.group.is_empty() {
            return Err(QueueError::InUse);
        }
        if requests.len() > GROUP {
            return Err(QueueError::BadCount);
        }
        requests
            .iter()
            .try_for_each(|request| self.check(request))?;
        let members = requests.iter().map(|request| (request.barrier, *request));
        let filled = self.group.fill(tag, members);
        filled.map_err(|_| QueueError::BadCount)?;
        for request in requests.iter().filter(|it| has_data(it)) {
            if let Some(Some(slot)) = self.slots.get_mut(request.slot as usize) {
                slot.uses += 1;
            }
        }
        Ok(())
    }

    /// Whether a group may have a request: one that cannot be done would end it in its middle.
    fn check(&self, request: &BlockRequest) -> Result<(), QueueError> {
        match request.operation {
            BlockOperation::Flush => return Ok(()),
            BlockOperation::Write if !self.limits.read_only => {}
            _ => return Err(QueueError::BadGroup),
        }
        let end = request.sector.checked_add(request.sectors.into());
        let fits = end.is_some_and(|end| end <= self.limits.sectors)
            && (1..=self.limits.request_sectors).contains(&request.sectors);
        match self.slots.get(request.slot as usize) {
            Some(Some(_)) if fits => Ok(()),
            Some(Some(_)) => Err(QueueError::BadGroup),
            _ => Err(QueueError::BadSlot),
        }
    }

    /// Enters those of the group that may be begun, as far as there is room.
    fn begin_members(&mut self) {
        while let Some(request) = self.group.next() {
            let asked = Asked {
                request,
                is_counted: false,
                is_member: true,
            };
            if self.book.enter(0, request.barrier, asked).is_err() {
                return;
            }
            self.group.begun();
        }
    }

    /// Enters requests as far as there is room, and puts them as they were entered into the batch;
    /// how many. The slot of each, if it names one that has something, stays as it is. One with a
    /// barrier waits for a group that is not done, all of which comes before it.
    fn enter(&mut self, requests: &[BlockRequest]) -> u32 {
        let requests = match self.has_group() {
            true => requests.split(|request| request.barrier).next(),
            false => Some(requests),
        };
        let requests = requests.unwrap_or_default();
        let Front {
            book, slots, batch, ..
        } = self;
        let mut places = batch.iter_mut();
        let count = book.enter_all(requests, |request, number| {
            let slot = slots.get_mut(request.slot as usize);
            let slot = slot.and_then(Option::as_mut).filter(|_| has_data(request));
            let is_counted = slot.map(|slot| slot.uses += 1).is_some();
            if let Some(place) = places.next() {
                *place = BlockRequest {
                    tag: number,
                    ..*request
                };
            }
            let asked = Asked {
                request: *request,
                is_counted,
                is_member: false,
            };
            (request.tag, request.barrier, asked)
        });
        count as u32
    }
}

/// Has the driver carry out the first `count` of a batch; how many it takes. `None`: it is lost.
fn hand_on(back: &Back, batch: &RVec<BlockRequest>, count: u32) -> Option<u32> {
    if count == 0 {
        return Some(0);
    }
    match back.queue.submit(batch, count) {
        Ok(taken) => (taken <= count).then_some(taken),
        Err(error) if is_lost(&back.queue, &error) => None,
        // For want of memory or stack, perhaps: it is tried again with the next call, or by the
        // keeper.
        Err(_) => Some(0),
    }
}

/// A request of the group has ended.
#[inline(never)]
fn member_ended(
    group: &mut Group<BlockRequest, BlockOutcome>,
    slots: &mut [Option<Slot>; SLOTS],
    outcome: BlockOutcome,
) {
    let failure = Some(outcome).filter(|outcome| *outcome != BlockOutcome::Done);
    group.ended(failure);
    if !group.is_open() {
        let members = group.members().filter(|it| has_data(it));
        members.for_each(|request| release(slots, request.slot));
    }
}

/// A request that names this slot has its answer.
fn release(slots: &mut [Option<Slot>; SLOTS], slot: u32) {
    if let Some(Some(slot)) = slots.get_mut(slot as usize) {
        slot.uses -= 1;
    }
}

/// Whether the bytes of a request are in a memory object.
fn has_data(request: &BlockRequest) -> bool {
    matches!(
        request.operation,
        BlockOperation::Read | BlockOperation::Write
    )
}
