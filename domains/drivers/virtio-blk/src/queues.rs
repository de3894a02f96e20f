//! Requests of the block queue that is open: from its book to the device and back.
//!
//! The book ([`requests`]) has all that were submitted, keeps barriers, and has the answers. What
//! can be given goes to a place (`places`) as long as one is free: the pages are held for the
//! device, and their addresses stand in the place's table, so no byte is copied. All of it is
//! guarded by the lock of [`Disk::state`]. Nothing that is called under it waits.
//!
//! A queue that is no longer the open one has no book any more. What it has with the device ends
//! there, and [`Disk::open`] waits for that before the next one is opened. Who takes longer than
//! [`PATIENCE`] has the device reset.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use domain_rt::sync::{MutexGuard, Wait};
use domain_rt::{log, time};
use interfaces::{
    BlockError, BlockOperation, BlockOutcome, BlockRequest, DmaDirection, DmaWindow, Handle,
    MemoryError, RVec, Raiser, RpcError,
};
use requests::Book;
use virtio::block::{self, Command, Status};
use virtio::queue::Buffer;

use crate::disk::{Disk, PATIENCE, State};
use crate::places::MOST_SEGMENTS;

/// Requests without an answer, and answers that were not taken.
pub const REQUESTS: usize = 512;
/// Slots for memory objects.
pub const SLOTS: usize = 64;
/// Bytes of a page, and sectors.
const PAGE: u64 = 4096;
const SECTORS_OF_PAGE: u64 = PAGE / block::SECTOR as u64;
/// How often it is looked for requests that take too long, in nanoseconds.
const LOOK: u64 = 1_000_000_000;

/// A memory object that is registered, and how many requests without an answer name it.
pub(crate) struct Slot {
    pub(crate) window: Arc<Handle<dyn DmaWindow>>,
    pub(crate) uses: u32,
}

/// The block queue that is open.
pub(crate) struct Lane {
    pub(crate) id: u64,
    pub(crate) book: Book<BlockRequest, BlockOutcome>,
    pub(crate) slots: [Option<Slot>; SLOTS],
    raiser: Option<Arc<Handle<dyn Raiser>>>,
    /// It was raised, and the answers were not all taken since.
    is_raised: bool,
}

impl Lane {
    /// Nobody is told of answers: they are looked for.
    pub(crate) fn is_polled(&self) -> bool {
        self.raiser.is_none()
    }

    fn answer(&mut self, number: u64, outcome: BlockOutcome) {
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
    pub(crate) fn take(&mut self) -> Option<(u64, BlockOutcome)> {
        let answer = self.book.take();
        self.is_raised &= answer.is_some();
        answer
    }
}

/// Whether the bytes of such a request are in a memory object.
pub(crate) fn has_data(operation: BlockOperation) -> bool {
    matches!(operation, BlockOperation::Read | BlockOperation::Write)
}

/// A request that is with the device.
pub(crate) struct Given {
    lane: u64,
    number: u64,
    command: Command,
    bytes: usize,
    hold: Option<(Arc<Handle<dyn DmaWindow>>, u64)>,
    /// It is a write that has to be flushed.
    is_durable: bool,
    since: u64,
}

impl Given {
    /// The device does not use its memory any more.
    fn release(&mut self) {
        if let Some((window, hold)) = self.hold.take()
            && let Err(error) = window.release(hold)
        {
            log!("pages were not released: {error:?}");
        }
    }
}

impl State {
    /// The device was reset: it uses no memory any more.
    pub(crate) fn release_all(&mut self) {
        for (place, given) in self.given.iter_mut().enumerate() {
            if let Some(mut given) = given.take() {
                given.release();
                self.free.push(place);
            }
        }
    }

    /// Who is to be told that there are answers.
    fn whom_to_raise(&mut self) -> Option<Arc<Handle<dyn Raiser>>> {
        let gone = self.gone;
        let lane = self.lane.as_mut()?;
        let due = gone || lane.book.answers() > 0;
        if !due || lane.is_raised {
            return None;
        }
        lane.is_raised = true;
        lane.raiser.clone()
    }
}

impl Disk {
    /// Gives the lock back, and tells who waits for answers that there are some.
    pub(crate) fn raise(mut state: MutexGuard<'_, State>) {
        let raiser = state.whom_to_raise();
        drop(state);
        if let Some(raiser) = raiser {
            // Who is told may be dead by now.
            let _ = raiser.raise();
        }
    }

    /// Opens a queue, when nothing of the one before is with the device any more; its number.
    pub(crate) fn open_lane(&self, raiser: Option<Handle<dyn Raiser>>) -> Result<u64, BlockError> {
        let book = Book::keeping_barriers(REQUESTS).map_err(|_| RpcError::NoMemory)?;
        let mut state = self.fence()?;
        state.lanes += 1;
        let id = state.lanes;
        state.lane = Some(Box::new(Lane {
            id,
            book,
            slots: [const { None }; SLOTS],
            raiser: raiser.map(Arc::new),
            is_raised: false,
        }));
        self.settle(&mut state);
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
            if former.is_none() && state.given.iter().all(Option::is_none) {
                return Ok(state);
            }
            if former.is_some() {
                // What it held is dropped without the lock.
                drop(state);
                drop(former);
                state = self.state.lock();
                continue;
            }
            let wait;
            (state, wait) = self.ended.wait_until(state, deadline);
            match wait {
                Wait::Woken => {}
                Wait::Interrupted => return Err(BlockError::Rpc(RpcError::Interrupted)),
                Wait::TimedOut => {
                    log!("the device does not end what it was asked by a former submitter");
                    self.give_up(&mut state);
                }
            }
        }
    }

    /// Gives the device what can be given now.
    pub(crate) fn pump(&self, state: &mut State) {
        let mut lane = state.lane.take();
        while let Some(lane) = &mut lane {
            if state.gone || state.free.is_empty() || state.queue.free() == 0 {
                break;
            }
            let Some((number, request)) = lane.book.peek() else {
                break;
            };
            let request = *request;
            lane.book.give();
            if let Err(outcome) = self.give(state, lane, number, &request) {
                lane.answer(number, outcome);
            }
        }
        state.lane = lane;
        if !state.gone {
            self.notify(state);
        }
    }

    /// Gives a request to the device. An error is its answer: also `Done`, if there is nothing to
    /// do.
    fn give(
        &self,
        state: &mut State,
        lane: &Lane,
        number: u64,
        request: &BlockRequest,
    ) -> Result<(), BlockOutcome> {
        let command = match request.operation {
            BlockOperation::Read => Command::Read,
            BlockOperation::Write => Command::Write,
            BlockOperation::Flush if !self.has_flush() => return Err(BlockOutcome::Done),
            BlockOperation::Flush => Command::Flush,
            BlockOperation::Discard => Command::Discard,
            BlockOperation::WriteZeroes => Command::WriteZeroes,
        };
        let mut given = Given {
            lane: lane.id,
            number,
            command,
            bytes: 0,
            hold: None,
            is_durable: request.durable
                && self.has_flush()
                && matches!(command, Command::Write | Command::WriteZeroes),
            since: time::now(),
        };
        let place = *state.free.last().ok_or(BlockOutcome::NoMemory)?;
        let mut chain = mem::take(&mut state.chain);
        chain.clear();
        chain.push(
            self.places
                .header(place, &block::header(command, request.sector)),
        );
        if has_data(request.operation) {
            given.bytes = request.sectors as usize * block::SECTOR;
            match hold(state, lane, request, &mut chain) {
                Ok(held) => given.hold = Some(held),
                Err(outcome) => {
                    state.chain = chain;
                    return Err(outcome);
                }
            }
        } else if command != Command::Flush {
            let range = block::range(request.sector, request.sectors);
            chain.push(self.places.range(place, &range));
        }
        let started = self.start(state, place, given, &mut chain);
        state.chain = chain;
        started?;
        state.free.pop();
        Ok(())
    }

    /// Puts a request, of which `chain` has all but the status, into the virtqueue. The place is
    /// the caller's.
    fn start(
        &self,
        state: &mut State,
        place: usize,
        mut given: Given,
        chain: &mut Vec<Buffer>,
    ) -> Result<(), BlockOutcome> {
        chain.push(self.places.status_buffer(place));
        let table = self.places.table(place);
        let added = state.queue.add_indirect(&self.rings, &table, chain);
        let Ok(chain) = added else {
            given.release();
            return Err(BlockOutcome::OutOfRange);
        };
        state.holders[usize::from(chain.0)] = Some(place);
        state.given[place] = Some(given);
        if mem::take(&mut state.unwatched) {
            self.watched.notify_one();
        }
        Ok(())
    }

    /// The device is done with the request in a place.
    pub(crate) fn place_completed(&self, state: &mut State, place: usize, written: u32) {
        let Some(mut given) = state.given[place].take() else {
            return;
        };
        given.release();
        let status = self.places.status(place);
        let outcome = match status {
            _ if block::is_complete(given.command, status, written, given.bytes) => {
                BlockOutcome::Done
            }
            Status::Unsupported => BlockOutcome::Unsupported,
            _ => BlockOutcome::Device,
        };
        let (lane, number) = (given.lane, given.number);
        let outcome = match mem::take(&mut given.is_durable) && outcome == BlockOutcome::Done {
            false => outcome,
            // The write is on the device; what it answers to the flush is the answer.
            true => {
                given.command = Command::Flush;
                given.bytes = 0;
                let header = self.places.header(place, &block::header(Command::Flush, 0));
                match self.start(state, place, given, &mut Vec::from([header])) {
                    Ok(()) => return,
                    Err(_) => BlockOutcome::Device,
                }
            }
        };
        state.free.push(place);
        match &mut state.lane {
            Some(open) if open.id == lane => open.answer(number, outcome),
            _ => self.ended.notify_all(),
        }
    }

    /// The body of the thread that looks for requests that take too long. It sleeps while there are
    /// none.
    pub fn watch(&self) {
        let mut state = self.state.lock();
        while !state.gone {
            let wait;
            if state.given.iter().all(Option::is_none) {
                state.unwatched = true;
                (state, wait) = self.watched.wait(state);
            } else {
                (state, wait) = self.watched.wait_until(state, time::now() + LOOK);
            }
            if wait == Wait::Interrupted {
                return;
            }
            let now = time::now();
            let late = |given: &Given| now.saturating_sub(given.since) > PATIENCE;
            if !state.gone && state.given.iter().flatten().any(late) {
                // It may have been done, and nobody looked.
                self.settle(&mut state);
                if !state.gone && state.given.iter().flatten().any(late) {
                    log!("the device does not answer");
                    self.give_up(&mut state);
                }
                Self::raise(state);
                state = self.state.lock();
            }
        }
    }
}

/// Holds the pages of a request for the device, and adds the pieces that it is to use.
fn hold(
    state: &mut State,
    lane: &Lane,
    request: &BlockRequest,
    chain: &mut Vec<Buffer>,
) -> Result<(Arc<Handle<dyn DmaWindow>>, u64), BlockOutcome> {
    let slot = lane.slots.get(request.slot as usize);
    let slot = slot.and_then(Option::as_ref);
    let window = slot.ok_or(BlockOutcome::BadSlot)?.window.clone();
    let device_writes = request.operation == BlockOperation::Read;
    let direction = match device_writes {
        true => DmaDirection::FromDevice,
        false => DmaDirection::ToDevice,
    };
    let first = request.at / SECTORS_OF_PAGE;
    let mut inside = request.at % SECTORS_OF_PAGE;
    let pages = (inside + u64::from(request.sectors)).div_ceil(SECTORS_OF_PAGE);
    let room = match state.addresses.take() {
        Some(room) => room,
        None => RVec::filled(0, MOST_SEGMENTS).map_err(|_| BlockOutcome::NoMemory)?,
    };
    let (addresses, hold) =
        window
            .hold(first, pages, direction, room)
            .map_err(|error| match error {
                MemoryError::Rpc(RpcError::NoMemory | RpcError::Busy) => BlockOutcome::NoMemory,
                _ => BlockOutcome::Memory,
            })?;
    let mut left = u64::from(request.sectors);
    let header = chain.len();
    for address in addresses.iter().take(pages as usize) {
        let sectors = left.min(SECTORS_OF_PAGE - inside);
        let address = address + inside * block::SECTOR as u64;
        let length = (sectors * block::SECTOR as u64) as u32;
        // A device looks at each piece apart, so pages in a row are one.
        match chain[header..].last_mut() {
            Some(last) if end_of(last) == address => last.length += length,
            _ => chain.push(Buffer {
                address,
                length,
                device_writes,
            }),
        }
        left -= sectors;
        inside = 0;
    }
    state.addresses = Some(addresses);
    Ok((window, hold))
}

/// The address behind a piece.
fn end_of(piece: &Buffer) -> u64 {
    piece.address + u64::from(piece.length)
}
