//! A pair of queues of the controller, and the commands that it has by it, each in a place of its
//! own, whose number is that of the command: its pages are held for the controller, and their
//! addresses stand in the place's list.

use alloc::vec::Vec;
use core::mem;

use domain_rt::sync::Mutex;
use domain_rt::{log, time};
use interfaces::{BlockOperation, BlockOutcome, BlockRequest, RpcError};
use lanes::{Job, Room};
use nvme_queues::command::{self, Command};
use nvme_queues::prp::{self, Pointers};
use nvme_queues::queue::{Answer, Pair};
use nvme_queues::registers::Registers;
use nvme_queues::status::Meaning;

use crate::disk::Disk;
use crate::memory::{MOST_PAGES, Places, Rings};

/// A command that is with the controller.
struct Given {
    job: Job,
    /// The controller was asked to end it early.
    is_aborted: bool,
}

/// What the lock of a line guards.
struct State {
    pair: Pair,
    /// What the commands in their places are.
    given: Vec<Option<Given>>,
    /// Places that are free.
    free: Vec<u16>,
    /// The place whose command is being aborted: it is not given another one meanwhile, which would
    /// be aborted in its place.
    aborting: Option<u16>,
    /// Room for the addresses of a command's pages.
    room: Room,
    /// Jobs that were just taken, and those that were just ended: no more than there are places.
    jobs: Vec<Job>,
    ended: Vec<(Job, BlockOutcome)>,
    /// The controller was told to reset itself.
    gone: bool,
}

/// See the module.
pub struct Line {
    state: Mutex<State>,
    rings: Rings,
    places: Places,
    serves: Serves,
}

/// For which block queues a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// It interrupts, and there are others for those that are polled.
    Told,
    /// It does not interrupt.
    Polled,
    /// There is no other one.
    All,
}

/// The controller breaks the rules.
pub struct Broken;

impl Line {
    /// A pair that was just made, with its memory.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn new(pair: Pair, rings: Rings, places: Places, serves: Serves) -> Result<Self, RpcError> {
        let count = places.count();
        let mut given = room(count)?;
        given.resize_with(count, || None);
        let mut free = room(count)?;
        free.extend((0..count as u16).rev());
        Ok(Line {
            state: Mutex::new(State {
                pair,
                given,
                free,
                aborting: None,
                room: Room::new(MOST_PAGES),
                jobs: room(count)?,
                ended: room(count)?,
                gone: false,
            }),
            rings,
            places,
            serves,
        })
    }

    /// Gives the controller what can be given now, as far as there is room. Whether there is room
    /// left for what is given by this line.
    pub fn give(&self, disk: &Disk) -> bool {
        let mut state = self.state.lock();
        self.pump(disk, &mut state) && state.room() > 0
    }

    /// Takes all answers, and gives the controller what can be given then.
    ///
    /// # Errors
    /// The controller is to be given up.
    pub fn settle(&self, disk: &Disk) -> Result<(), Broken> {
        let mut state = self.state.lock();
        if state.pair.under_way() > 0 && !state.gone {
            self.drain(disk, &mut state)?;
        }
        self.pump(disk, &mut state);
        Ok(())
    }

    /// The controller resets itself. If that is `over` it uses no memory any more.
    pub fn stop(&self, over: bool) {
        let mut state = self.state.lock();
        state.gone = true;
        if over {
            let given = state.given.iter_mut().flatten();
            given.for_each(|given| given.job.release());
        }
    }

    /// The number of the pair, and the place of a command that is there for longer than `limit`
    /// nanoseconds; if `asked` is not set, of those that were not aborted.
    pub fn late(&self, limit: u64, asked: bool) -> Option<(u16, u16)> {
        let state = self.state.lock();
        let now = time::now();
        let is_late = |given: &Given| {
            now.saturating_sub(given.job.since) > limit && (asked || !given.is_aborted)
        };
        let mut places = state.given.iter().zip(0..);
        let found = places.find(|(given, _)| given.as_ref().is_some_and(is_late));
        found.map(|(_, place)| (state.pair.number(), place))
    }

    /// The controller is about to be asked to abort the command in a place; false if there is none.
    pub fn begin_abort(&self, place: u16) -> bool {
        let mut state = self.state.lock();
        let Some(given) = &mut state.given[usize::from(place)] else {
            return false;
        };
        given.is_aborted = true;
        state.aborting = Some(place);
        true
    }

    /// It has answered that.
    pub fn end_abort(&self) {
        let mut state = self.state.lock();
        if let Some(place) = state.aborting.take()
            && state.given[usize::from(place)].is_none()
        {
            state.free.push(place);
        }
    }

    /// Gives the controller what can be given now. Whether this line is for the queue that is open.
    fn pump(&self, disk: &Disk, state: &mut State) -> bool {
        let wanted = match disk.lanes.is_polled() {
            true => Serves::Polled,
            false => Serves::Told,
        };
        if state.gone || self.serves != Serves::All && self.serves != wanted {
            return false;
        }
        let mut jobs = mem::take(&mut state.jobs);
        loop {
            disk.lanes.take(state.room(), &mut jobs);
            jobs.drain(..).for_each(|job| self.begin(disk, state, job));
            if state.ended.is_empty() {
                break;
            }
            // A barrier may have waited for them.
            disk.lanes.end(&mut state.ended);
        }
        state.jobs = jobs;
        if let Some(tail) = state.pair.tail(&self.rings) {
            let doorbell = disk.capabilities.tail_doorbell(state.pair.number());
            disk.registers.write32(doorbell, tail);
        }
        true
    }

    /// Gives the controller a request, or ends it: also as done, if there is nothing to do.
    fn begin(&self, disk: &Disk, state: &mut State, mut job: Job) {
        let begun = self.submit(disk, state, &mut job);
        match begun {
            Ok(place) => {
                state.free.pop();
                let is_aborted = false;
                state.given[usize::from(place)] = Some(Given { job, is_aborted });
            }
            Err(outcome) => state.ended.push((job, outcome)),
        }
    }

    fn submit(&self, disk: &Disk, state: &mut State, job: &mut Job) -> Result<u16, BlockOutcome> {
        let place = *state.free.last().ok_or(BlockOutcome::NoMemory)?;
        let command = self.command(disk, &mut state.room, place, job)?;
        let submitted = state.pair.submit(&self.rings, place, &command);
        submitted.map_err(|error| {
            log!("no room for a command: {error:?}");
            BlockOutcome::NoMemory
        })?;
        Ok(place)
    }

    fn command(
        &self,
        disk: &Disk,
        room: &mut Room,
        place: u16,
        job: &mut Job,
    ) -> Result<Command, BlockOutcome> {
        let BlockRequest {
            sector, sectors, ..
        } = job.request;
        let (namespace, has_cache) = (disk.number, disk.controller.has_cache);
        let durable = job.request.durable && has_cache;
        Ok(match job.request.operation {
            BlockOperation::Read => {
                command::read(namespace, sector, sectors, self.hold(room, place, job)?)
            }
            BlockOperation::Write => {
                let from = self.hold(room, place, job)?;
                command::write(namespace, sector, sectors, from, durable)
            }
            BlockOperation::Flush if !has_cache => return Err(BlockOutcome::Done),
            BlockOperation::Flush => command::flush(namespace),
            BlockOperation::Discard => {
                let range = command::range(sector, sectors);
                let at = self.places.range(place, &range);
                command::discard(namespace, Pointers::page(at))
            }
            BlockOperation::WriteZeroes => {
                command::write_zeroes(namespace, sector, sectors, durable)
            }
        })
    }

    /// Holds the pages of a request for the controller; where they are.
    fn hold(&self, room: &mut Room, place: u16, job: &mut Job) -> Result<Pointers, BlockOutcome> {
        let mut described = Err(BlockOutcome::Memory);
        job.hold(room, |pages, inside| {
            let put = |number, page| self.places.put(place, number, page);
            let pointers = prp::describe(pages, inside, self.places.list(place), put);
            described = pointers.map_err(|_| BlockOutcome::Memory);
            described.map(|_| ())
        })?;
        described
    }

    fn drain(&self, disk: &Disk, state: &mut State) -> Result<(), Broken> {
        let whole = loop {
            match state.pair.take(&self.rings) {
                Ok(Some(answer)) => state.answered(&answer),
                Ok(None) => break Ok(()),
                Err(fault) => {
                    log!("the controller breaks the rules: {fault}");
                    break Err(Broken);
                }
            }
        };
        if let Some(head) = state.pair.head()
            && whole.is_ok()
        {
            let doorbell = disk.capabilities.head_doorbell(state.pair.number());
            disk.registers.write32(doorbell, head);
        }
        disk.lanes.end(&mut state.ended);
        whole
    }
}

impl State {
    /// How many more commands can be given.
    fn room(&self) -> usize {
        self.free.len().min(self.pair.room())
    }

    fn answered(&mut self, answer: &Answer) {
        let Some(given) = self.given[usize::from(answer.command)].take() else {
            return;
        };
        if self.aborting != Some(answer.command) {
            self.free.push(answer.command);
        }
        let outcome = match answer.status.meaning() {
            Meaning::Done => BlockOutcome::Done,
            Meaning::OutOfRange => BlockOutcome::OutOfRange,
            Meaning::ReadOnly => BlockOutcome::ReadOnly,
            Meaning::Unsupported => BlockOutcome::Unsupported,
            Meaning::Aborted | Meaning::Failed => BlockOutcome::Device,
        };
        self.ended.push((given.job, outcome));
    }
}

/// An empty list with room for so many.
fn room<T>(count: usize) -> Result<Vec<T>, RpcError> {
    let mut list = Vec::new();
    let reserved = list.try_reserve_exact(count);
    reserved.map_err(|_| RpcError::NoMemory)?;
    Ok(list)
}
