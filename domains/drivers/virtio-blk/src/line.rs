//! A virtqueue, and the requests that are with the device by it, each in a place of its own.
//!
//! What is submitted ([`lanes`]) goes to a place (`places`) as long as one is free: the pages are
//! held for the device, and their addresses stand in the place's table, so no byte is copied. The
//! mark of a job says that it is a write which was done, and is being flushed for.

use alloc::vec;
use alloc::vec::Vec;

use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{BlockOperation, BlockOutcome, RpcError};
use lanes::{Batch, Desk, Job, PATIENCE, Room};
use virtio::block::{self, Command, Status};
use virtio::device::Registers;
use virtio::queue::{Buffer, Queue};
use virtio_pci::{Ring, Rings, Window};

use crate::disk::Disk;
use crate::places::{MOST_SEGMENTS, Places};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// What the lock of a line guards.
struct State {
    queue: Queue,
    /// For each descriptor, the place of the request whose chain begins there.
    holders: Vec<Option<u16>>,
    /// The requests in their places.
    desk: Desk,
    /// Room for the pieces of one request's memory, and for the addresses of its pages.
    chain: Vec<Buffer>,
    room: Room,
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
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn new(number: u16, ring: Ring, places: Places) -> Result<Self, RpcError> {
        let Ring {
            queue,
            rings,
            notify,
            ..
        } = ring;
        let desk = Desk::new(places.count() as u16)?;
        Ok(Line {
            number,
            state: Mutex::new(State {
                holders: vec![None; usize::from(queue.free())],
                queue,
                desk,
                chain: Vec::new(),
                room: Room::new(MOST_SEGMENTS)?,
                gone: false,
            }),
            rings,
            places,
            notify,
        })
    }

    /// How many requests can be with the device by it.
    pub fn places(&self) -> usize {
        self.places.count()
    }

    /// Gives the device what can be given now, of a batch too, as far as there is room. Whether
    /// there is room left.
    pub fn give(&self, disk: &Disk, batch: &mut Batch) -> bool {
        let mut state = self.state.lock();
        self.pump(disk, &mut state, batch);
        state.desk.has_room() && state.queue.free() > 0
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
            if self.drain(disk, &mut state)? {
                any = true;
                self.pump(disk, &mut state, &mut Batch::empty());
            }
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

    /// Whether a request takes too long, at the `look` with this number.
    pub fn is_late(&self, look: u64) -> bool {
        let mut state = self.state.lock();
        let mut jobs = state.desk.jobs();
        jobs.any(|(_, job)| look.saturating_sub(job.since) > PATIENCE)
    }

    /// The device was stopped, and if it was `reset` it uses no memory any more.
    pub fn stop(&self, reset: bool) {
        let mut state = self.state.lock();
        state.gone = true;
        if reset {
            let State { desk, room, .. } = &mut *state;
            desk.release_all(room);
        }
    }

    fn pump(&self, disk: &Disk, state: &mut State, batch: &mut Batch) {
        while !state.gone {
            let room = state.queue.free().into();
            disk.lanes
                .exchange(&mut state.desk, &mut state.room, room, batch);
            self.begin(disk, state);
            if !state.desk.has_ended() {
                break;
            }
            // A barrier may have waited for them.
        }
        if !state.gone && state.queue.wants_notification(&self.rings) {
            // Section 4.1.5.2: the notification is the queue's number.
            self.notify.write16(0, self.number);
        }
    }

    /// Gives the device what was just taken, or ends it: also as done, if there is nothing to do.
    fn begin(&self, disk: &Disk, state: &mut State) {
        let State {
            queue,
            holders,
            desk,
            chain,
            room,
            ..
        } = state;
        desk.begin_new(room, |place, job, pages, inside| {
            let command = command(job);
            if command == Command::Flush && !disk.has_flush() {
                return Err(BlockOutcome::Done);
            }
            chain.clear();
            let header = block::header(command, job.request.sector);
            chain.push(self.places.header(place, &header));
            if job.has_data() {
                describe(job, pages, inside, chain);
            } else if command != Command::Flush {
                let range = block::range(job.request.sector, job.request.sectors);
                chain.push(self.places.range(place, &range));
            }
            self.start(queue, holders, place, chain)
        });
    }

    /// Puts a request, of which `chain` has all but the status, into the virtqueue.
    fn start(
        &self,
        queue: &mut Queue,
        holders: &mut [Option<u16>],
        place: u16,
        chain: &mut Vec<Buffer>,
    ) -> Result<(), BlockOutcome> {
        chain.push(self.places.status_buffer(place));
        let table = self.places.table(place);
        let added = queue.add_indirect(&self.rings, &table, chain);
        let chain = added.map_err(|_| BlockOutcome::OutOfRange)?;
        holders[usize::from(chain.0)] = Some(place);
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
                        self.completed(disk, state, place, completion.written);
                    }
                }
                Ok(None) => break,
                Err(fault) => {
                    log!("the device breaks the rules: {fault}");
                    whole = Err(Broken);
                }
            }
        }
        if whole.is_err() {
            let nothing = &mut Batch::empty();
            disk.lanes
                .exchange(&mut state.desk, &mut state.room, 0, nothing);
        }
        whole.map(|()| any)
    }

    /// The device is done with the request in a place.
    fn completed(&self, disk: &Disk, state: &mut State, place: u16, written: u32) {
        let Some(job) = state.desk.job(place) else {
            return;
        };
        let (command, bytes) = match job.mark {
            true => (Command::Flush, 0),
            false if job.has_data() => (command(job), job.request.sectors as usize * block::SECTOR),
            false => (command(job), 0),
        };
        let status = self.places.status(place);
        let mut outcome = match status {
            _ if block::is_complete(command, status, written, bytes) => BlockOutcome::Done,
            Status::Unsupported => BlockOutcome::Unsupported,
            _ => BlockOutcome::Device,
        };
        let writes = matches!(command, Command::Write | Command::WriteZeroes);
        if writes && job.request.durable && disk.has_flush() && outcome == BlockOutcome::Done {
            // The write is on the device; what it answers to the flush is the answer.
            job.mark = true;
            match self.flush(state, place) {
                Ok(()) => return,
                Err(_) => outcome = BlockOutcome::Device,
            }
        }
        state.desk.end(place, outcome);
    }

    /// Has the device flush for the request in a place.
    fn flush(&self, state: &mut State, place: u16) -> Result<(), BlockOutcome> {
        state.chain.clear();
        let header = block::header(Command::Flush, 0);
        state.chain.push(self.places.header(place, &header));
        let (queue, holders) = (&mut state.queue, &mut state.holders);
        self.start(queue, holders, place, &mut state.chain)
    }
}

/// What a request is for the device.
fn command(job: &Job) -> Command {
    match job.request.operation {
        BlockOperation::Read => Command::Read,
        BlockOperation::Write => Command::Write,
        BlockOperation::Flush => Command::Flush,
        BlockOperation::Discard => Command::Discard,
        BlockOperation::WriteZeroes => Command::WriteZeroes,
    }
}

/// Adds the pieces of memory that the device is to use for a request, whose bytes begin `inside`
/// bytes into the first of `pages`.
fn describe(job: &Job, pages: &[u64], mut inside: u64, chain: &mut Vec<Buffer>) {
    let device_writes = job.request.operation == BlockOperation::Read;
    let mut left = u64::from(job.request.sectors) * block::SECTOR as u64;
    let header = chain.len();
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
}

/// The address behind a piece.
fn end_of(piece: &Buffer) -> u64 {
    piece.address + u64::from(piece.length)
}
