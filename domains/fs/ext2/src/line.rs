//! The block queue: requests of many threads under way, each with its own answer.
//!
//! A thread holds a [`Held`] ticket, and with it a cell of the [staging](crate::staging), for each
//! thing that it has under way; what tickets are is said in [`requests::tickets`]. Whoever has to
//! wait, and finds nobody who *collects*, waits for the queue's event, takes all answers that there
//! are, and tells the others; they wait for him. So no answer costs a switch to a thread that is
//! there only to take it, and an interrupted thread leaves the collecting to the next one.
//!
//! Nobody waits for a ticket who has requests under way: he waits for his own answers first. So
//! those who hold tickets never wait for those who want some.
//!
//! # When the queue is lost
//! A crash of the driver is not seen here: its shadow submits again. When there is no driver any
//! more ([`QueueError::Gone`]) all that is under way fails, and the next request opens a new queue,
//! which says that nothing of the old one happens any more. Who was *fenced* has a successor that
//! has the disk now, and never opens another queue.
//!
//! Whose queue it is may die itself. So each queue has an event of its own, and nobody but the
//! queue can raise it: with its death the event ends, and whoever waits looks for answers and
//! learns of it.

mod guests;

use alloc::sync::Arc;

use domain_rt::sync::{Condvar, Mutex, MutexGuard, Wait};
use domain_rt::{log, time};
use ext2::DeviceError;
use interfaces::{
    Block, BlockCompletion, BlockOutcome, BlockQueue, BlockRequest, Event, Events, Fired, Handle,
    NewEvent, QueueError, QueueLimits, RVec, RpcError, WaitWord,
};
use requests::tickets::Tickets;

use crate::errors::{block_error, failure, outcome_error, rpc_error};
use crate::staging::Staging;
use guests::Guests;

/// The slot of the staging memory.
pub const SLOT: u32 = 0;
/// Answers that are taken in one call.
const ANSWERS: usize = 64;
/// How long it takes until what failed for want of memory is tried again, in nanoseconds.
const PAUSE: u64 = 10_000_000;

/// What answers are taken in.
struct Rooms {
    answers: Option<RVec<BlockCompletion>>,
    fired: Option<RVec<Fired>>,
}

struct State {
    queue: Option<Arc<Handle<dyn BlockQueue>>>,
    /// Raised when there are answers; it lives as long as it is bound to the word.
    event: Option<Handle<dyn Event>>,
    limits: QueueLimits,
    tickets: Tickets<DeviceError>,
    guests: Guests,
    is_opening: bool,
    is_collecting: bool,
    rooms: Rooms,
    /// There may be answers of which the event does not tell any more.
    must_look: bool,
    /// Why there will never be a queue again.
    lost: Option<DeviceError>,
}

/// A new queue.
struct Opened {
    queue: Handle<dyn BlockQueue>,
    event: Handle<dyn Event>,
    limits: QueueLimits,
}

/// The queue, and who waits for its answers.
pub struct Line {
    device: Handle<dyn Block>,
    events: Handle<dyn Events>,
    word: Handle<dyn WaitWord>,
    pub staging: Staging,
    state: Mutex<State>,
    /// Answers came, or tickets are free, or the queue was opened or lost.
    changed: Condvar,
}

type Guard<'a> = MutexGuard<'a, State>;

/// A ticket of this thread, with its cell or a chain of them. When it is dropped it is free, or
/// when its last answer has come.
pub struct Held<'a> {
    line: &'a Line,
    pub ticket: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.line.state.lock().tickets.give_back(self.ticket);
        self.line.changed.notify_all();
    }
}

impl Line {
    /// Opens the queue, which ends what an instance before has under way.
    ///
    /// # Errors
    /// Those of the device; there is not enough memory.
    pub fn new(
        device: Handle<dyn Block>,
        events: &Handle<dyn Events>,
        staging: Staging,
    ) -> Result<Self, DeviceError> {
        let word = events.word().map_err(rpc_error)?;
        let tickets = Tickets::new(staging.cells()).map_err(|_| DeviceError::NoMemory)?;
        let rooms = Rooms {
            answers: Some(RVec::filled(NO_ANSWER, ANSWERS).map_err(rpc_error)?),
            fired: Some(RVec::filled(NOT_FIRED, 1).map_err(rpc_error)?),
        };
        let line = Line {
            device,
            events: events.duplicate().map_err(rpc_error)?,
            word,
            staging,
            state: Mutex::new(State {
                queue: None,
                event: None,
                limits: NO_LIMITS,
                tickets,
                guests: Guests::default(),
                is_opening: false,
                is_collecting: false,
                rooms,
                must_look: true,
                lost: None,
            }),
            changed: Condvar::new(),
        };
        drop(line.ready()?);
        Ok(line)
    }

    /// What the device is, and what its queue takes.
    pub fn limits(&self) -> QueueLimits {
        self.state.lock().limits
    }

    /// A ticket. If there is none: waits for one if `patient`, else `None`.
    ///
    /// # Errors
    /// There is no queue to be had; this thread is ended.
    pub fn take(&self, patient: bool) -> Result<Option<Held<'_>>, DeviceError> {
        let mut state = self.ready()?;
        loop {
            if let Some(ticket) = state.tickets.take() {
                return Ok(Some(Held { line: self, ticket }));
            }
            if !patient {
                return Ok(None);
            }
            state = self.progress(state)?;
            if !state.tickets.is_open() || state.tickets.is_haunted() {
                drop(state);
                state = self.ready()?;
            }
        }
    }

    /// A chain of `count` tickets. Nobody else may want one at the same time.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_chain(&self, count: usize) -> Result<Held<'_>, DeviceError> {
        let taken = self.wait_for_chain(count);
        if taken.is_err() {
            self.state.lock().tickets.want_no_more();
            self.changed.notify_all();
        }
        taken
    }

    fn wait_for_chain(&self, count: usize) -> Result<Held<'_>, DeviceError> {
        loop {
            let mut state = self.ready()?;
            if let Some(ticket) = state.tickets.take_chain(count) {
                return Ok(Held { line: self, ticket });
            }
            drop(self.progress(state)?);
        }
    }

    /// The cells of a chain.
    pub fn cell_after(&self, cell: usize) -> Option<usize> {
        self.state.lock().tickets.next_of(cell)
    }

    /// The lock, when there is a queue and nothing under way that nobody waits for.
    fn ready(&self) -> Result<Guard<'_>, DeviceError> {
        loop {
            if let Some(ready) = self.ready_until(None)? {
                return Ok(ready);
            }
        }
    }

    /// As [`ready`](Self::ready); `None`: not until `deadline`.
    fn ready_until(&self, deadline: Option<u64>) -> Result<Option<Guard<'_>>, DeviceError> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = state.lost {
                return Err(error);
            }
            if !state.tickets.is_open() && !state.is_opening {
                state = self.open(state)?;
            } else if !state.is_opening && !state.tickets.is_haunted() {
                return Ok(Some(state));
            } else if deadline.is_some_and(|deadline| time::now() >= deadline) {
                return Ok(None);
            } else {
                state = self.progress_until(state, deadline)?;
            }
        }
    }

    /// Waits until nothing is under way that nobody waits for, until `deadline` at most; whether
    /// that is so. Where there is no device any more nothing is.
    ///
    /// # Errors
    /// The queue cannot be opened; this thread is ended.
    pub fn await_abandoned(&self, deadline: u64) -> Result<bool, DeviceError> {
        match self.ready_until(Some(deadline)) {
            Ok(ready) => Ok(ready.is_some()),
            Err(DeviceError::Unavailable) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn open<'a>(&'a self, mut state: Guard<'a>) -> Result<Guard<'a>, DeviceError> {
        state.is_opening = true;
        drop(state);
        let opened = self.open_queue();
        let mut state = self.state.lock();
        state.is_opening = false;
        self.changed.notify_all();
        match opened {
            Ok(Opened {
                queue,
                event,
                limits,
            }) => {
                state.queue = Some(Arc::new(queue));
                state.event = Some(event);
                state.limits = limits;
                state.tickets.begin_life();
                state.guests.begin_life();
                state.must_look = true;
                Ok(state)
            }
            Err(DeviceError::Lost) => {
                state.lost = Some(DeviceError::Lost);
                Err(DeviceError::Lost)
            }
            Err(error) => Err(error),
        }
    }

    fn open_queue(&self) -> Result<Opened, DeviceError> {
        let NewEvent { raiser, event } = self.events.event().map_err(rpc_error)?;
        let bound = event.bind(self.word.duplicate().map_err(rpc_error)?, 0);
        bound.map_err(|_| DeviceError::NoMemory)?;
        let queue = self.device.open(Some(raiser)).map_err(block_error)?;
        let view = self.staging.view().map_err(rpc_error)?;
        queue
            .register(SLOT, view)
            .map_err(|error| failure(&error))?;
        let limits = queue.limits().map_err(|error| failure(&error))?;
        match limits.request_sectors {
            0 => Err(DeviceError::Io),
            _ => Ok(Opened {
                queue,
                event,
                limits,
            }),
        }
    }

    /// Waits until something has changed that somebody could be waiting for.
    fn progress<'a>(&'a self, state: Guard<'a>) -> Result<Guard<'a>, DeviceError> {
        self.progress_until(state, None)
    }

    /// As [`progress`](Self::progress), until `deadline` at most.
    fn progress_until<'a>(
        &'a self,
        mut state: Guard<'a>,
        deadline: Option<u64>,
    ) -> Result<Guard<'a>, DeviceError> {
        let queue = state.queue.clone();
        let queue = queue.filter(|_| !state.is_collecting && state.tickets.under_way() > 0);
        let Some(queue) = queue else {
            let wait;
            (state, wait) = match deadline {
                None => self.changed.wait(state),
                Some(deadline) => self.changed.wait_until(state, deadline),
            };
            return match wait {
                Wait::Interrupted => Err(DeviceError::Interrupted),
                _ => Ok(state),
            };
        };
        state.is_collecting = true;
        let must_look = core::mem::replace(&mut state.must_look, true);
        let mut rooms = Rooms {
            answers: state.rooms.answers.take(),
            fired: state.rooms.fired.take(),
        };
        drop(state);
        let collected = self.gather(&queue, &mut rooms, must_look, deadline);
        let mut state = self.state.lock();
        state.is_collecting = false;
        state.rooms = rooms;
        self.changed.notify_all();
        match collected {
            Ok(()) => state.must_look = false,
            Err(QueueError::Rpc(RpcError::Interrupted)) => return Err(DeviceError::Interrupted),
            Err(QueueError::Rpc(RpcError::NoMemory | RpcError::Busy)) => {
                drop(state);
                time::sleep(PAUSE);
                state = self.state.lock();
            }
            Err(error) => self.lose(&mut state, &queue, &error),
        }
        Ok(state)
    }

    /// Waits for the event, unless there may be answers already, and takes all answers.
    fn gather(
        &self,
        queue: &Handle<dyn BlockQueue>,
        rooms: &mut Rooms,
        must_look: bool,
        deadline: Option<u64>,
    ) -> Result<(), QueueError> {
        if !must_look {
            let fired = rooms.fired.take().filter(|room| room.len() == 1);
            let fired = match fired {
                Some(room) => room,
                None => RVec::filled(NOT_FIRED, 1)?,
            };
            rooms.fired = Some(self.word.wait(deadline, fired)?);
        }
        loop {
            let room = match rooms.answers.take() {
                Some(room) => room,
                None => RVec::filled(NO_ANSWER, ANSWERS)?,
            };
            let (room, count) = queue.completions(room)?;
            let answers = room.get(..count as usize).unwrap_or(&room);
            self.note(answers);
            let is_last = answers.len() < ANSWERS;
            rooms.answers = Some(room).filter(|room| room.len() == ANSWERS);
            if is_last {
                return Ok(());
            }
        }
    }

    fn note(&self, answers: &[BlockCompletion]) {
        let mut state = self.state.lock();
        for BlockCompletion { tag, outcome } in answers {
            let failure = outcome_error(*outcome);
            if state.tickets.answered(*tag, failure).is_err() {
                log!("the device answers request {tag:x}, which it was not asked");
            }
        }
    }

    /// The queue is of no use any more.
    fn lose(&self, state: &mut State, queue: &Arc<Handle<dyn BlockQueue>>, error: &QueueError) {
        let is_this = |present: &Arc<_>| Arc::ptr_eq(present, queue);
        if !state.queue.as_ref().is_some_and(is_this) {
            return;
        }
        let failure = failure(error);
        log!("the queue of the device is lost: {error:?}");
        if failure == DeviceError::Lost {
            state.lost = Some(failure);
        }
        state.tickets.end(failure);
        // What the device has of it is fenced when the next one is opened.
        state.queue = None;
        self.changed.notify_all();
    }

    /// Has `requests` more of a ticket begun: their tag, and the queue for them.
    fn begin(
        &self,
        held: &Held<'_>,
        requests: u32,
    ) -> Result<(u64, Arc<Handle<dyn BlockQueue>>), DeviceError> {
        let mut state = self.state.lock();
        let queue = state.queue.clone().ok_or(DeviceError::Unavailable)?;
        let tag = state.tickets.begin(held.ticket, requests)?;
        Ok((tag, queue))
    }

    /// A call that submits has failed. What it would have submitted is under way no more; whether
    /// it was is not known, unless it failed for want of memory.
    fn not_submitted(
        &self,
        held: &Held<'_>,
        requests: u32,
        queue: &Arc<Handle<dyn BlockQueue>>,
        error: &QueueError,
    ) -> DeviceError {
        let mut state = self.state.lock();
        match error {
            QueueError::Rpc(RpcError::NoMemory | RpcError::Busy) => {
                state.tickets.unbegin(held.ticket, requests);
                DeviceError::NoMemory
            }
            QueueError::Unsupported => {
                state.tickets.unbegin(held.ticket, requests);
                DeviceError::Io
            }
            error => {
                self.lose(&mut state, queue, error);
                failure(error)
            }
        }
    }

    /// Submits the first `count` of `batch` for a ticket; waits while there is no room for them.
    ///
    /// # Errors
    /// The queue is lost; there is not enough memory; this thread is ended.
    pub fn submit(
        &self,
        held: &Held<'_>,
        batch: &mut RVec<BlockRequest>,
        count: usize,
    ) -> Result<(), DeviceError> {
        let mut left = count as u32;
        while left > 0 {
            let (tag, queue) = self.begin(held, left)?;
            for request in batch.iter_mut().take(left as usize) {
                request.tag = tag;
            }
            let taken = match queue.submit(batch, left) {
                Ok(taken) => taken.min(left),
                Err(error) => return Err(self.not_submitted(held, left, &queue, &error)),
            };
            left -= taken;
            if left > 0 {
                batch.copy_within(taken as usize..(taken + left) as usize, 0);
                self.wait_for_room(held, left)?;
            }
        }
        Ok(())
    }

    /// So many requests of a ticket found no room: waits until some request has its answer.
    fn wait_for_room(&self, held: &Held<'_>, requests: u32) -> Result<(), DeviceError> {
        let mut state = self.state.lock();
        state.tickets.unbegin(held.ticket, requests);
        let seen = state.tickets.answers();
        if state.tickets.under_way() == 0 {
            drop(state);
            time::sleep(PAUSE);
            return Ok(());
        }
        while state.tickets.answers() == seen && state.tickets.under_way() > 0 {
            state = self.progress(state)?;
        }
        Ok(())
    }

    /// Submits a group. False: the device does not offer it.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_group(
        &self,
        held: &Held<'_>,
        group: &RVec<BlockRequest>,
        count: usize,
    ) -> Result<bool, DeviceError> {
        let (tag, queue) = self.begin(held, 1)?;
        let submitted = queue.submit_group(tag, group, count as u32);
        match submitted {
            Ok(()) => Ok(true),
            Err(error) => {
                let failure = self.not_submitted(held, 1, &queue, &error);
                match error {
                    QueueError::Unsupported => Ok(false),
                    _ => Err(failure),
                }
            }
        }
    }

    /// Waits for all answers of a ticket.
    ///
    /// # Errors
    /// The first failure among them; this thread is ended.
    pub fn wait(&self, held: &Held<'_>) -> Result<(), DeviceError> {
        let mut state = self.state.lock();
        while !state.tickets.is_done(held.ticket) {
            state = self.progress(state)?;
        }
        state.tickets.failure(held.ticket).map_or(Ok(()), Err)
    }
}

const NO_LIMITS: QueueLimits = QueueLimits {
    sectors: 0,
    read_only: true,
    requests: 0,
    request_sectors: 0,
    slots: 0,
    discard_sectors: 0,
    zeroes_sectors: 0,
};

const NO_ANSWER: BlockCompletion = BlockCompletion {
    tag: 0,
    outcome: BlockOutcome::Done,
};

const NOT_FIRED: Fired = Fired {
    tag: 0,
    count: 0,
    ended: false,
};
