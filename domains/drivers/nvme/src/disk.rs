//! Requests of the block queue that is open: from its book to the controller and back.
//!
//! The book ([`requests`]) has all that were submitted, keeps barriers, and has the answers. What
//! can be given goes to a *place*, whose number is that of the command: the pages are held for the
//! controller, and their addresses stand in the place's list. All of it is guarded by the lock of
//! [`Disk::state`]. Nothing that is called under it waits.
//!
//! A queue that is no longer the open one has no book any more. What it has with the controller
//! ends there, and [`Disk::open_lane`] waits for that before the next one is opened. Each queue has
//! one pair for all its commands: the first, which interrupts, or the second, if it has no raiser.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use domain_rt::sync::{Condvar, Mutex, MutexGuard, Wait};
use domain_rt::{log, time};
use interfaces::{
    BlockError, BlockOutcome, DmaAllocator, DmaWindow, Handle, PciDevice, RVec, Raiser, RpcError,
};
use nvme_queues::PAGE;
use nvme_queues::command;
use nvme_queues::identify::{Controller, Namespace};
use nvme_queues::queue::Answer;
use nvme_queues::registers::{self, Capabilities, Registers};
use nvme_queues::status::Meaning;
use requests::Book;

use crate::bring_up::{AdminQueue, Line, Parts};
use crate::lane::{Lane, REQUESTS};
use crate::memory::{MOST_PAGES, PLACES, Places, Window};

/// The longest that a command may take, in nanoseconds.
pub const PATIENCE: u64 = 10_000_000_000;
/// How often the fence looks for answers, which need not interrupt, in nanoseconds.
const FENCE_LOOK: u64 = 1_000_000;
/// Bytes of a sector, and sectors of a page.
pub const SECTOR: u64 = 512;
pub const SECTORS_OF_PAGE: u64 = PAGE as u64 / SECTOR;
/// Sectors that are discarded at once: a gigabyte.
const MOST_DISCARDED: u32 = 1 << 21;

/// A command that is with the controller.
pub struct Given {
    pub lane: u64,
    pub number: u64,
    pub line: usize,
    pub hold: Option<(Arc<Handle<dyn DmaWindow>>, u64)>,
    pub since: u64,
    /// The controller was asked to end it early.
    pub is_aborted: bool,
}

impl Given {
    /// The controller does not use its memory any more.
    pub fn release(&mut self) {
        if let Some((window, hold)) = self.hold.take()
            && let Err(error) = window.release(hold)
        {
            log!("pages were not released: {error:?}");
        }
    }
}

/// What the lock guards.
pub struct State {
    pub lines: Vec<Line>,
    /// The block queue that is open.
    pub lane: Option<Box<Lane>>,
    /// How many were opened.
    lanes: u64,
    /// What the commands in their places are.
    pub given: Vec<Option<Given>>,
    /// Places that are free.
    pub free: Vec<u16>,
    /// The place whose command is being aborted: it is not given another one meanwhile, which would
    /// be aborted in its place.
    pub aborting: Option<u16>,
    /// Room for the addresses of a command's pages.
    pub addresses: Option<RVec<u64>>,
    /// The thread that looks for commands that take too long has nothing to look for.
    pub unwatched: bool,
    /// The controller broke the rules or does not answer. It was told to reset itself.
    pub gone: bool,
}

impl State {
    /// Whether any command is with the controller.
    pub fn is_idle(&self) -> bool {
        self.lines.iter().all(|line| line.pair.under_way() == 0)
    }

    /// The pair of a command.
    pub fn pair_of(&self, given: &Given) -> u16 {
        self.lines[given.line].pair.number()
    }

    /// The controller was reset: it uses no memory any more.
    pub fn release_all(&mut self) {
        for given in &mut self.given {
            if let Some(mut given) = given.take() {
                given.release();
            }
        }
    }

    /// Whether a command can be given by a pair.
    fn has_room(&self, line: usize) -> bool {
        !self.free.is_empty() && !self.lines[line].pair.is_full()
    }

    /// The pair for the queue that is open.
    fn line_of(&self, lane: &Lane) -> usize {
        match lane.is_polled() {
            true => self.lines.len() - 1,
            false => 0,
        }
    }
}

/// The disk.
pub struct Disk {
    pub state: Mutex<State>,
    /// No command of an older block queue is with the controller any more.
    ended: Condvar,
    /// There are commands to be watched, or a reset.
    pub watched: Condvar,
    /// Only the thread that watches uses it.
    pub admin: Mutex<AdminQueue>,
    pub places: Places,
    pub allocator: Handle<dyn DmaAllocator>,
    pub registers: Window,
    pub capabilities: Capabilities,
    pub controller: Controller,
    pub namespace: Namespace,
    /// The namespace's number.
    pub number: u32,
    _function: Handle<dyn PciDevice>,
}

impl Disk {
    /// A controller that was just brought up.
    ///
    /// # Errors
    /// No memory.
    pub fn new(parts: Parts) -> Result<Self, RpcError> {
        let (mut given, mut free) = (Vec::new(), Vec::new());
        let reserved = given.try_reserve_exact(PLACES);
        let reserved = reserved.and_then(|()| free.try_reserve_exact(PLACES));
        reserved.map_err(|_| RpcError::NoMemory)?;
        given.resize_with(PLACES, || None);
        free.extend((0..PLACES as u16).rev());
        Ok(Disk {
            state: Mutex::new(State {
                lines: parts.lines,
                lane: None,
                lanes: 0,
                given,
                free,
                aborting: None,
                addresses: None,
                unwatched: false,
                gone: false,
            }),
            ended: Condvar::new(),
            watched: Condvar::new(),
            admin: Mutex::new(parts.admin),
            places: parts.places,
            allocator: parts.allocator,
            registers: parts.registers,
            capabilities: parts.capabilities,
            controller: parts.controller,
            namespace: parts.namespace,
            number: parts.number,
            _function: parts.function,
        })
    }

    /// Sectors of a request with data: within the controller's limit and that of a place, and one
    /// page less, since a request need not begin with one.
    pub fn request_sectors(&self) -> u32 {
        let limit = self.controller.most_bytes.unwrap_or(usize::MAX);
        (limit.min((MOST_PAGES - 1) * PAGE) as u64 / SECTOR) as u32
    }

    /// Sectors of a request that discards; 0: the controller cannot.
    pub fn discard_sectors(&self) -> u32 {
        match self.controller.has_discard {
            true => MOST_DISCARDED,
            false => 0,
        }
    }

    /// Sectors that can be filled with zeros at once; 0: the controller cannot. Before version 2.0
    /// no other limit than that of data is told.
    pub fn zeroes_sectors(&self) -> u32 {
        let limit = self.controller.most_bytes.unwrap_or(usize::MAX) as u64 / SECTOR;
        match self.controller.has_zeroes {
            true => limit.min(command::MOST_BLOCKS.into()) as u32,
            false => 0,
        }
    }

    /// An interrupt came: takes all answers, and tells who waits for them.
    pub fn take_answers(&self) {
        let mut state = self.state.lock();
        self.settle(&mut state);
        Self::raise(state);
    }

    /// Takes all answers of the controller, and gives it what can be given now.
    pub fn settle(&self, state: &mut State) {
        for index in 0..state.lines.len() {
            if state.lines[index].pair.under_way() > 0 && !state.gone {
                self.drain(state, index);
            }
        }
        self.pump(state);
    }

    fn drain(&self, state: &mut State, index: usize) {
        loop {
            let line = &mut state.lines[index];
            match line.pair.take(&line.rings) {
                Ok(Some(answer)) => self.answered(state, answer),
                Ok(None) => break,
                Err(fault) => {
                    log!("the controller breaks the rules: {fault}");
                    return self.give_up(state);
                }
            }
        }
        let pair = &mut state.lines[index].pair;
        if let Some(head) = pair.head() {
            let doorbell = self.capabilities.head_doorbell(pair.number());
            self.registers.write32(doorbell, head);
        }
    }

    fn answered(&self, state: &mut State, answer: Answer) {
        let place = usize::from(answer.command);
        let Some(mut given) = state.given[place].take() else {
            return;
        };
        given.release();
        if state.aborting != Some(answer.command) {
            state.free.push(answer.command);
        }
        let outcome = match answer.status.meaning() {
            Meaning::Done => BlockOutcome::Done,
            Meaning::OutOfRange => BlockOutcome::OutOfRange,
            Meaning::ReadOnly => BlockOutcome::ReadOnly,
            Meaning::Unsupported => BlockOutcome::Unsupported,
            Meaning::Aborted | Meaning::Failed => BlockOutcome::Device,
        };
        match &mut state.lane {
            Some(open) if open.id == given.lane => open.answer(given.number, outcome),
            _ => self.ended.notify_all(),
        }
    }

    /// Has the controller reset itself. Every request, waiting or to come, fails; the thread that
    /// watches waits for the end of the reset.
    pub fn give_up(&self, state: &mut State) {
        state.gone = true;
        registers::begin_reset(&self.registers);
        self.ended.notify_all();
        self.watched.notify_all();
    }

    /// Gives the lock back, and tells who waits for answers that there are some.
    pub fn raise(mut state: MutexGuard<'_, State>) {
        let gone = state.gone;
        let lane = state.lane.as_mut();
        let raiser = lane.and_then(|lane| lane.whom_to_raise(gone));
        drop(state);
        if let Some(raiser) = raiser {
            // Who is told may be dead by now.
            let _ = raiser.raise();
        }
    }

    /// Opens a queue, when nothing of the one before is with the controller any more; its number.
    ///
    /// # Errors
    /// `Gone`, or that of a call.
    pub fn open_lane(&self, raiser: Option<Handle<dyn Raiser>>) -> Result<u64, BlockError> {
        let book = Book::keeping_barriers(REQUESTS).map_err(|_| RpcError::NoMemory)?;
        let mut state = self.fence()?;
        state.lanes += 1;
        let id = state.lanes;
        let lane = Lane::new(id, book, raiser.map(Arc::new));
        state.lane = Some(Box::new(lane));
        Ok(id)
    }

    fn fence(&self) -> Result<MutexGuard<'_, State>, BlockError> {
        let deadline = time::now() + PATIENCE;
        let mut state = self.state.lock();
        loop {
            let former = state.lane.take();
            if state.gone {
                return Err(BlockError::Gone);
            }
            // A queue without interrupts was looked after by its submitter.
            self.settle(&mut state);
            if former.is_none() && state.is_idle() {
                return Ok(state);
            }
            if former.is_some() {
                // What it held is dropped without the lock.
                drop(state);
                drop(former);
                state = self.state.lock();
                continue;
            }
            let look = deadline.min(time::now() + FENCE_LOOK);
            let wait;
            (state, wait) = self.ended.wait_until(state, look);
            match wait {
                Wait::Woken => {}
                Wait::Interrupted => return Err(BlockError::Rpc(RpcError::Interrupted)),
                Wait::TimedOut if time::now() < deadline => {}
                Wait::TimedOut => {
                    log!("the controller does not end what it was asked by a former submitter");
                    self.give_up(&mut state);
                }
            }
        }
    }

    /// Gives the controller what can be given now.
    pub fn pump(&self, state: &mut State) {
        let mut lane = state.lane.take();
        if let Some(lane) = &mut lane {
            let line = state.line_of(lane);
            while !state.gone && state.has_room(line) {
                let Some((number, request)) = lane.book.peek() else {
                    break;
                };
                let request = *request;
                lane.book.give();
                if let Err(outcome) = self.give(state, lane, line, number, &request) {
                    lane.answer(number, outcome);
                }
            }
            self.tell(state, line);
        }
        state.lane = lane;
    }

    /// Tells the controller of new commands.
    fn tell(&self, state: &mut State, index: usize) {
        let line = &mut state.lines[index];
        if let Some(tail) = line.pair.tail(&line.rings)
            && !state.gone
        {
            let doorbell = self.capabilities.tail_doorbell(line.pair.number());
            self.registers.write32(doorbell, tail);
        }
    }
}
