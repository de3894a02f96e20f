//! A virtqueue, and the requests that are with the device by it, each in a place of its own.
//!
//! What the book has ([`lanes`]) goes to a place (`places`) as long as one is free: the pages are
//! held for the device, and their addresses stand in the place's table, so no byte is copied.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use domain_rt::sync::Mutex;
use domain_rt::{log, time};
use interfaces::{BlockOperation, BlockOutcome};
use lanes::{Job, PATIENCE, Room};
use virtio::block::{self, Command, Status};
use virtio::device::Registers;
use virtio::queue::{Buffer, Queue};

use crate::disk::Disk;
use crate::places::{MOST_SEGMENTS, Places};
use crate::window::{Rings, Window};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// A request that is with the device.
struct Given {
    job: Job,
    command: Command,
    bytes: usize,
    /// It is a write that has to be flushed.
    is_durable: bool,
}

/// What the lock of a line guards.
struct State {
    queue: Queue,
    /// For each descriptor, the place of the request whose chain begins there.
    holders: Vec<Option<usize>>,
    /// What the requests in their places are.
    given: Vec<Option<Given>>,
    /// Places that are free.
    free: Vec<usize>,
    /// Room for the pieces of one request's memory, and for the addresses of its pages.
    chain: Vec<Buffer>,
    room: Room,
    /// Jobs that were just taken, and those that were just ended: no more than there are places.
    jobs: Vec<Job>,
    ended: Vec<(Job, BlockOutcome)>,
    /// The device was stopped.
    gone: bool,
}

/// See the module.
pub struct Line {
    /// The number of the virtqueue.
    number: u16,
    state: Mutex<State>,
    rings: Rings,
    places: Places,
    /// Its notification register.
    notify: Window,
}

/// The device breaks the rules.
pub struct Broken;

impl Line {
    /// A virtqueue that was just set up.
    pub fn new(number: u16, queue: Queue, rings: Rings, places: Places, notify: Window) -> Self {
        let count = places.count();
        Line {
            number,
            state: Mutex::new(State {
                holders: vec![None; usize::from(queue.free())],
                queue,
                given: (0..count).map(|_| None).collect(),
                free: (0..count).collect(),
                chain: Vec::new(),
                room: Room::new(MOST_SEGMENTS),
                jobs: Vec::with_capacity(count),
                ended: Vec::with_capacity(count),
                gone: false,
            }),
            rings,
            places,
            notify,
        }
    }

    /// How many requests can be with the device by it.
    pub fn places(&self) -> usize {
        self.places.count()
    }

    /// Gives the device what can be given now, as far as there is room. Whether there is room left.
    pub fn give(&self, disk: &Disk) -> bool {
        let mut state = self.state.lock();
        self.pump(disk, &mut state);
        state.room() > 0
    }

    /// Takes everything that the device has completed, gives it what can be given now, and says
    /// whether an interrupt is wanted for the next completion. Whether there was any.
    ///
    /// # Errors
    /// The device is to be given up.
    pub fn settle(&self, disk: &Disk) -> Result<bool, Broken> {
        let mut state = self.state.lock();
        let mut any = false;
        loop {
            any |= self.drain(disk, &mut state)?;
            self.pump(disk, &mut state);
            if state.gone {
                return Ok(any);
            }
            if disk.lanes.is_polled() {
                state.queue.want_no_interrupt(&self.rings);
                return Ok(any);
            }
            if !state.queue.want_interrupt(&self.rings) {
                return Ok(any);
            }
        }
    }

    /// Whether a request takes too long.
    pub fn is_late(&self) -> bool {
        let now = time::now();
        let late = |given: &Given| now.saturating_sub(given.job.since) > PATIENCE;
        self.state.lock().given.iter().flatten().any(late)
    }

    /// The device was stopped, and if it was `reset` it uses no memory any more.
    pub fn stop(&self, reset: bool) {
        let mut state = self.state.lock();
        state.gone = true;
        if reset {
            let given = state.given.iter_mut().flatten();
            given.for_each(|given| given.job.release());
        }
    }

    fn pump(&self, disk: &Disk, state: &mut State) {
        let mut jobs = mem::take(&mut state.jobs);
        while !state.gone {
            disk.lanes.take(state.room(), &mut jobs);
            jobs.drain(..).for_each(|job| self.begin(disk, state, job));
            if state.ended.is_empty() {
                break;
            }
            // A barrier may have waited for them.
            disk.lanes.end(&mut state.ended);
        }
        state.jobs = jobs;
        if !state.gone && state.queue.wants_notification(&self.rings) {
            // Section 4.1.5.2: the notification is the queue's number.
            self.notify.write16(0, self.number);
        }
    }

    /// Gives the device a request, or ends it: also as done, if there is nothing to do.
    fn begin(&self, disk: &Disk, state: &mut State, mut job: Job) {
        let mut chain = mem::take(&mut state.chain);
        chain.clear();
        let begun = self.describe(disk, state, &mut job, &mut chain);
        let begun = begun.and_then(|(place, command)| {
            self.start(state, place, &mut chain)?;
            Ok((place, command))
        });
        state.chain = chain;
        match begun {
            Ok((place, command)) => {
                state.free.pop();
                let writes = matches!(command, Command::Write | Command::WriteZeroes);
                state.given[place] = Some(Given {
                    command,
                    bytes: match job.has_data() {
                        true => job.request.sectors as usize * block::SECTOR,
                        false => 0,
                    },
                    is_durable: job.request.durable && writes && disk.has_flush(),
                    job,
                });
            }
            Err(outcome) => state.ended.push((job, outcome)),
        }
    }

    /// Puts all of a request but the status into `chain`; its place, and what it is.
    fn describe(
        &self,
        disk: &Disk,
        state: &mut State,
        job: &mut Job,
        chain: &mut Vec<Buffer>,
    ) -> Result<(usize, Command), BlockOutcome> {
        let command = match job.request.operation {
            BlockOperation::Read => Command::Read,
            BlockOperation::Write => Command::Write,
            BlockOperation::Flush if !disk.has_flush() => return Err(BlockOutcome::Done),
            BlockOperation::Flush => Command::Flush,
            BlockOperation::Discard => Command::Discard,
            BlockOperation::WriteZeroes => Command::WriteZeroes,
        };
        let place = *state.free.last().ok_or(BlockOutcome::NoMemory)?;
        let header = block::header(command, job.request.sector);
        chain.push(self.places.header(place, &header));
        if job.has_data() {
            hold(&mut state.room, job, chain)?;
        } else if command != Command::Flush {
            let range = block::range(job.request.sector, job.request.sectors);
            chain.push(self.places.range(place, &range));
        }
        Ok((place, command))
    }

    /// Puts a request, of which `chain` has all but the status, into the virtqueue.
    fn start(
        &self,
        state: &mut State,
        place: usize,
        chain: &mut Vec<Buffer>,
    ) -> Result<(), BlockOutcome> {
        chain.push(self.places.status_buffer(place));
        let table = self.places.table(place);
        let added = state.queue.add_indirect(&self.rings, &table, chain);
        let chain = added.map_err(|_| BlockOutcome::OutOfRange)?;
        state.holders[usize::from(chain.0)] = Some(place);
        Ok(())
    }

    /// Takes everything that the device completed; whether there was any.
    fn drain(&self, disk: &Disk, state: &mut State) -> Result<bool, Broken> {
        let mut any = false;
        let mut whole = Ok(());
        while !state.gone && whole.is_ok() {
            match state.queue.take(&self.rings) {
                Ok(Some(completion)) => {
                    any = true;
                    let holder = &mut state.holders[usize::from(completion.chain.0)];
                    if let Some(place) = holder.take() {
                        self.completed(state, place, completion.written);
                    }
                }
                Ok(None) => break,
                Err(fault) => {
                    log!("the device breaks the rules: {fault}");
                    whole = Err(Broken);
                }
            }
        }
        disk.lanes.end(&mut state.ended);
        whole.map(|()| any)
    }

    /// The device is done with the request in a place.
    fn completed(&self, state: &mut State, place: usize, written: u32) {
        let Some(mut given) = state.given[place].take() else {
            return;
        };
        given.job.release();
        let status = self.places.status(place);
        let mut outcome = match status {
            _ if block::is_complete(given.command, status, written, given.bytes) => {
                BlockOutcome::Done
            }
            Status::Unsupported => BlockOutcome::Unsupported,
            _ => BlockOutcome::Device,
        };
        if mem::take(&mut given.is_durable) && outcome == BlockOutcome::Done {
            // The write is on the device; what it answers to the flush is the answer.
            given.command = Command::Flush;
            given.bytes = 0;
            match self.flush(state, place) {
                Ok(()) => {
                    state.given[place] = Some(given);
                    return;
                }
                Err(_) => outcome = BlockOutcome::Device,
            }
        }
        state.free.push(place);
        state.ended.push((given.job, outcome));
    }

    /// Has the device flush for the request in a place.
    fn flush(&self, state: &mut State, place: usize) -> Result<(), BlockOutcome> {
        let mut chain = mem::take(&mut state.chain);
        chain.clear();
        chain.push(self.places.header(place, &block::header(Command::Flush, 0)));
        let started = self.start(state, place, &mut chain);
        state.chain = chain;
        started
    }
}

impl State {
    /// How many more requests can be given.
    fn room(&self) -> usize {
        self.free.len().min(self.queue.free().into())
    }
}

/// Holds the pages of a request for the device, and adds the pieces that it is to use.
fn hold(room: &mut Room, job: &mut Job, chain: &mut Vec<Buffer>) -> Result<(), BlockOutcome> {
    let device_writes = job.request.operation == BlockOperation::Read;
    let mut left = u64::from(job.request.sectors) * block::SECTOR as u64;
    let header = chain.len();
    job.hold(room, |pages, inside| {
        let mut inside = inside;
        for address in pages {
            let (address, length) = (address + inside, left.min(PAGE - inside));
            // A device looks at each piece apart, so pages in a row are one.
            match chain[header..].last_mut() {
                Some(last) if end_of(last) == address => last.length += length as u32,
                _ => chain.push(Buffer {
                    address,
                    length: length as u32,
                    device_writes,
                }),
            }
            left -= length;
            inside = 0;
        }
        Ok(())
    })
}

/// The address behind a piece.
fn end_of(piece: &Buffer) -> u64 {
    piece.address + u64::from(piece.length)
}
