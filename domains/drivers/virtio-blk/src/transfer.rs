//! Transfers: what a caller wants read or written, cut into requests, as many of them with the
//! device at once as there are slots.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use interfaces::{Block, BlockError, BlockQueue, Geometry, Handle, RVec, Raiser};
use virtio::block::{self, Command, SECTOR};
use virtio::queue::Chain;

use crate::bring_up::SLOT_BYTES;
use crate::disk::Disk;
use crate::submitter::Submitter;

/// A request that is with the device.
struct Request {
    slot: usize,
    chain: Chain,
    bytes: usize,
    /// It came back, and whether it did all that it was asked.
    complete: Option<bool>,
}

/// The requests of one caller, oldest first. Dropping it lets go of them.
struct Flight<'a> {
    disk: &'a Disk,
    command: Command,
    requests: VecDeque<Request>,
    /// The device was not told of the last ones.
    untold: bool,
}

impl<'a> Flight<'a> {
    fn new(disk: &'a Disk, command: Command) -> Self {
        Flight {
            disk,
            command,
            requests: VecDeque::new(),
            untold: false,
        }
    }

    /// A free slot for so many bytes. While there is none, waits for the oldest request, and gives
    /// it to `done`.
    fn slot(
        &mut self,
        bytes: usize,
        done: &mut impl FnMut(&Disk, usize),
    ) -> Result<usize, BlockError> {
        loop {
            let patient = self.requests.is_empty();
            if let Some(slot) = self.disk.take_slot(bytes, patient)? {
                return Ok(slot);
            }
            // Half of them, so that the device is told of many new ones at once, and has the other
            // half meanwhile.
            let half = self.requests.len().div_ceil(2);
            self.wait_for_first(half)?;
            (0..half).try_for_each(|_| self.finish_one(done))?;
        }
    }

    /// Waits until the first `count` requests are likely to be back: for the last of them, which
    /// wakes this thread once and not for each.
    fn wait_for_first(&mut self, count: usize) -> Result<(), BlockError> {
        if core::mem::take(&mut self.untold) {
            self.disk.notify();
        }
        let Some(index) = count.checked_sub(1) else {
            return Ok(());
        };
        let Some(Request {
            slot, chain, bytes, ..
        }) = self.requests.get(index)
        else {
            return Ok(());
        };
        match self.disk.wait(*slot, *chain, self.command, *bytes) {
            Ok(complete) => {
                self.requests[index].complete = Some(complete);
                Ok(())
            }
            Err(error) => {
                // Its slot is not ours any more.
                self.requests.remove(index);
                Err(error)
            }
        }
    }

    fn submit(&mut self, slot: usize, sector: u64, bytes: usize) -> Result<(), BlockError> {
        let chain = self.disk.submit(slot, self.command, sector, bytes)?;
        self.requests.push_back(Request {
            slot,
            chain,
            bytes,
            complete: None,
        });
        self.untold = true;
        Ok(())
    }

    /// Waits for the oldest request; `done` may look at its slot.
    fn finish_one(&mut self, done: &mut impl FnMut(&Disk, usize)) -> Result<(), BlockError> {
        if core::mem::take(&mut self.untold) {
            self.disk.notify();
        }
        let Some(request) = self.requests.pop_front() else {
            return Ok(());
        };
        let Request {
            slot, chain, bytes, ..
        } = request;
        let complete = match request.complete {
            Some(complete) => complete,
            None => self.disk.wait(slot, chain, self.command, bytes)?,
        };
        if complete {
            done(self.disk, slot);
        }
        self.disk.free_slot(slot);
        match complete {
            true => Ok(()),
            false => Err(BlockError::Device),
        }
    }

    fn finish(&mut self, mut done: impl FnMut(&Disk, usize)) -> Result<(), BlockError> {
        self.wait_for_first(self.requests.len())?;
        while !self.requests.is_empty() {
            self.finish_one(&mut done)?;
        }
        Ok(())
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.untold {
            self.disk.notify();
        }
        for request in &self.requests {
            match request.complete {
                Some(_) => self.disk.free_slot(request.slot),
                None => self.disk.abandon(request.slot, request.chain),
            }
        }
    }
}

/// The device as an object that others call.
pub struct Shared(pub Arc<Disk>);

impl Shared {
    fn check(&self, sector: u64, bytes: usize) -> Result<(), BlockError> {
        block::sectors_of(sector, bytes, self.0.geometry().sectors)
            .map(|_| ())
            .ok_or(BlockError::OutOfRange)
    }
}

impl Block for Shared {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        Ok(self.0.geometry())
    }

    fn read(&self, sector: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, BlockError> {
        self.check(sector, buffer.len())?;
        let length = buffer.len();
        let mut pieces = buffer.chunks_mut(SLOT_BYTES);
        // Requests are finished in the order in which they were made.
        let mut done = |disk: &Disk, slot: usize| {
            if let Some(piece) = pieces.next() {
                disk.data(slot).read(piece);
            }
        };
        let mut flight = Flight::new(&self.0, Command::Read);
        let sectors = (sector..).step_by(SLOT_BYTES / SECTOR);
        for (at, sector) in (0..length).step_by(SLOT_BYTES).zip(sectors) {
            let bytes = SLOT_BYTES.min(length - at);
            let slot = flight.slot(bytes, &mut done)?;
            flight.submit(slot, sector, bytes)?;
        }
        flight.finish(done)?;
        Ok(buffer)
    }

    fn write(&self, sector: u64, data: &RVec<u8>) -> Result<(), BlockError> {
        if self.0.geometry().read_only {
            return Err(BlockError::ReadOnly);
        }
        self.check(sector, data.len())?;
        let mut flight = Flight::new(&self.0, Command::Write);
        let sectors = (sector..).step_by(SLOT_BYTES / SECTOR);
        for (piece, sector) in data.chunks(SLOT_BYTES).zip(sectors) {
            let slot = flight.slot(piece.len(), &mut |_, _| ())?;
            self.0.data(slot).write(piece);
            flight.submit(slot, sector, piece.len())?;
        }
        flight.finish(|_, _| ())
    }

    fn flush(&self) -> Result<(), BlockError> {
        if !self.0.has_flush() {
            return Ok(());
        }
        let mut flight = Flight::new(&self.0, Command::Flush);
        let slot = flight.slot(0, &mut |_, _| ())?;
        flight.submit(slot, 0, 0)?;
        flight.finish(|_, _| ())
    }

    fn open(
        &self,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        let id = self.0.open_lane(raiser)?;
        let disk = self.0.clone();
        Ok(Handle::new(Submitter { disk, id })?)
    }
}
