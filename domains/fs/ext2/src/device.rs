//! The block device as `lib/fs/ext2` wants it: over a block queue, with its bytes in the
//! [staging](crate::staging) memory.

mod arrivals;
mod pages;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ext2::{BlockDevice, DeviceError, Group, SECTOR_SIZE};
use interfaces::{
    Block, BlockOperation, BlockRequest, Events, Handle, MemoryObjects, QueueLimits, RVec,
};

use crate::line::{Held, Line, SLOT};
use crate::staging::{CELL, Forms, GROUP, NO_REQUEST, STEP, Staging};

use arrivals::Arrivals;

pub use arrivals::Arriving;
pub use pages::Piece;

/// A disk. Clones share it.
#[derive(Clone)]
pub struct Disk {
    line: Arc<Line>,
    limits: QueueLimits,
    arrivals: Arc<Arrivals>,
}

/// Sectors in so many bytes.
fn sectors(bytes: usize) -> u64 {
    (bytes / SECTOR_SIZE) as u64
}

/// Extents, and how far they are cut into requests.
struct Cut<'a> {
    extents: &'a [(u64, usize)],
    done: usize,
    /// Bytes of a request.
    most: usize,
}

impl Cut<'_> {
    /// The next request, of at most `room` bytes, and how many it has. `None`: that was all.
    fn next(&mut self, room: usize) -> Option<(u64, usize)> {
        let (sector, length) = self.extents.first()?;
        let (sector, left) = (sector + sectors(self.done), length - self.done);
        let bytes = left.min(room).min(self.most);
        self.done += bytes;
        if bytes == left {
            (self.extents, self.done) = (&self.extents[1..], 0);
        }
        Some((sector, bytes))
    }

    /// Puts requests for a cell, from byte `at` of it on, into `room`; how many, and their bytes.
    fn fill(
        &mut self,
        operation: BlockOperation,
        (cell, at): (usize, usize),
        room: &mut [BlockRequest],
    ) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        while count < room.len() && at + bytes < CELL {
            let Some((sector, length)) = self.next(CELL - at - bytes) else {
                break;
            };
            room[count] = BlockRequest {
                operation,
                sector,
                sectors: sectors(length) as u32,
                slot: SLOT,
                at: sectors(cell * CELL + at + bytes),
                ..NO_REQUEST
            };
            count += 1;
            bytes += length;
        }
        (count, bytes)
    }
}

/// What a thread has under way, oldest first.
struct Flight<'a> {
    line: &'a Line,
    held: VecDeque<Held<'a>>,
}

impl<'a> Flight<'a> {
    fn new(line: &'a Line) -> Self {
        Flight {
            line,
            held: VecDeque::new(),
        }
    }

    /// A ticket. While there is none, waits for the oldest thing under way.
    fn ticket(&mut self) -> Result<Held<'a>, DeviceError> {
        loop {
            if let Some(held) = self.line.take(self.held.is_empty())? {
                return Ok(held);
            }
            self.finish_one()?;
        }
    }

    fn finish_one(&mut self) -> Result<(), DeviceError> {
        let oldest = self.held.pop_front();
        oldest.map_or(Ok(()), |held| self.line.wait(&held))
    }

    /// Waits for all; `so_far`, or the first failure among them.
    fn finish(mut self, so_far: Result<(), DeviceError>) -> Result<(), DeviceError> {
        let mut result = so_far;
        while !self.held.is_empty() {
            result = result.and(self.finish_one());
        }
        result
    }
}

impl Disk {
    /// Opens the queue of the device, with `cells` of memory for it if there is so much.
    ///
    /// # Errors
    /// Those of the device; there is not enough memory.
    pub fn new(
        block: Handle<dyn Block>,
        objects: &Handle<dyn MemoryObjects>,
        events: &Handle<dyn Events>,
        cells: usize,
    ) -> Result<Self, DeviceError> {
        let staging = Staging::new(objects, cells)?;
        let line = Arc::new(Line::new(block, events, staging)?);
        let limits = line.limits();
        let arrivals = Arc::default();
        Ok(Disk {
            line,
            limits,
            arrivals,
        })
    }

    /// Whether the device refuses writes.
    pub fn read_only(&self) -> bool {
        self.limits.read_only
    }

    /// Waits until nothing is under way that nobody waits for; see
    /// [`Line::await_abandoned`].
    ///
    /// # Errors
    /// As there.
    pub fn await_abandoned(&self, deadline: u64) -> Result<bool, DeviceError> {
        self.line.await_abandoned(deadline)
    }

    /// Content that was given a place is on its way there, until the answer is dropped.
    pub fn begin_content(&self) -> Arriving<'_> {
        self.arrivals.begin()
    }

    /// The places of content that failed to arrive have something again.
    pub fn content_cleared(&self) {
        self.arrivals.cleared();
    }

    /// Bytes of a request.
    fn most(&self) -> usize {
        self.limits.request_sectors as usize * SECTOR_SIZE
    }

    /// Has the first `bytes` bytes of a cell read, from `sector` on.
    fn load(&self, sector: u64, bytes: usize) -> Result<Held<'_>, DeviceError> {
        let held = Flight::new(&self.line).ticket()?;
        let mut cut = Cut {
            extents: &[(sector, bytes)],
            done: 0,
            most: self.most(),
        };
        let mut forms = self.line.staging.forms();
        let place = (held.ticket, 0);
        let (count, _) = cut.fill(BlockOperation::Read, place, &mut forms.batch);
        self.line.submit(&held, &mut forms.batch, count)?;
        drop(forms);
        self.line.wait(&held)?;
        Ok(held)
    }

    /// Fills `buffer` from `sector` on.
    ///
    /// # Errors
    /// Those of the device.
    pub fn fill(&self, sector: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, DeviceError> {
        if buffer.len() > CELL {
            self.read(sector, &mut buffer)?;
            return Ok(buffer);
        }
        let held = self.load(sector, buffer.len())?;
        self.line.staging.read(held.ticket, buffer)
    }

    /// Writes what `source` gives to `extents`.
    fn write_from(
        &self,
        extents: &[(u64, usize)],
        source: &mut dyn FnMut(&mut [u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let mut flight = Flight::new(&self.line);
        let mut cut = Cut {
            extents,
            done: 0,
            most: self.most(),
        };
        let mut result = Ok(());
        while result.is_ok() && !cut.extents.is_empty() {
            result = self.write_cell(&mut flight, &mut cut, source);
        }
        flight.finish(result)
    }

    /// Writes as much of it as a cell has room for.
    fn write_cell<'a>(
        &'a self,
        flight: &mut Flight<'a>,
        cut: &mut Cut<'_>,
        source: &mut dyn FnMut(&mut [u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let held = flight.ticket()?;
        let staging = &self.line.staging;
        let mut forms = staging.forms();
        let place = (held.ticket, 0);
        let (count, bytes) = cut.fill(BlockOperation::Write, place, &mut forms.batch);
        staging.fill(&mut forms, held.ticket, 0, bytes, source)?;
        let submitted = self.line.submit(&held, &mut forms.batch, count);
        flight.held.push_back(held);
        submitted
    }

    /// Bytes that groups take in cells.
    fn room_for(groups: &[Group]) -> usize {
        let bytes = groups.iter().map(|group| group.data.len());
        bytes.map(|bytes| bytes.next_multiple_of(STEP)).sum()
    }

    /// Requests that groups make at the most.
    fn requests_for(&self, groups: &[Group]) -> usize {
        let pieces = Self::room_for(groups) / self.most().min(CELL) + 1;
        let extents = groups.iter().map(|group| group.extents.len() + 1);
        extents.sum::<usize>() + 2 * pieces
    }

    /// How many of the first of `groups` can be done as one.
    fn as_one(&self, groups: &[Group]) -> usize {
        let fits = |count: &usize| {
            let first = &groups[..*count];
            Self::room_for(first) <= self.line.staging.cells() * CELL
                && self.requests_for(first) <= GROUP
        };
        (1..=groups.len()).rev().find(fits).unwrap_or(1)
    }

    /// Does `groups` as one. False: the device does not offer it.
    fn write_as_one(&self, groups: &[Group]) -> Result<bool, DeviceError> {
        let (line, staging) = (&*self.line, &self.line.staging);
        let cells = Self::room_for(groups).div_ceil(CELL).max(1);
        if cells > staging.cells() || self.requests_for(groups) > GROUP {
            return Ok(false);
        }
        let held = line.take_chain(cells)?;
        let mut forms = staging.forms();
        let (mut count, mut place) = (0, (held.ticket, 0));
        for group in groups {
            (count, place) = self.put_group(&mut forms, group, count, place)?;
        }
        if !line.submit_group(&held, &forms.group, count)? {
            return Ok(false);
        }
        drop(forms);
        line.wait(&held)?;
        Ok(true)
    }

    /// Puts the requests of `group` behind the first `count`, and their bytes at `place` of a chain
    /// of cells and on; where both go on.
    fn put_group(
        &self,
        forms: &mut Forms,
        group: &Group,
        first: usize,
        (mut cell, mut at): (usize, usize),
    ) -> Result<(usize, (usize, usize)), DeviceError> {
        let (mut count, mut rest) = (first, &group.data[..]);
        let mut cut = Cut {
            extents: &group.extents,
            done: 0,
            most: self.most(),
        };
        while !cut.extents.is_empty() {
            if at == CELL {
                cell = self.line.cell_after(cell).ok_or(DeviceError::Io)?;
                at = 0;
            }
            let room = &mut forms.group[count..];
            let (more, bytes) = cut.fill(BlockOperation::Write, (cell, at), room);
            if more == 0 || bytes > rest.len() {
                return Err(DeviceError::Io);
            }
            let mut source = |target: &mut [u8]| {
                let (now, later) = rest.split_at(target.len());
                target.copy_from_slice(now);
                rest = later;
                Ok(())
            };
            self.line
                .staging
                .fill(forms, cell, at, bytes, &mut source)?;
            count += more;
            at = (at + bytes).next_multiple_of(STEP);
        }
        if count > first {
            forms.group[first].barrier = true;
        }
        if group.flush {
            forms.group[count] = BlockRequest {
                barrier: true,
                ..NO_REQUEST
            };
            count += 1;
        }
        Ok((count, (cell, at)))
    }
}

impl BlockDevice for Disk {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        for (part, at) in buf.chunks_mut(CELL).zip(0..) {
            let held = self.load(sector + at * sectors(CELL), part.len())?;
            self.line.staging.copy_out(held.ticket, part)?;
        }
        Ok(())
    }

    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        self.write_extents(&[(sector, buf.len())], buf)
    }

    fn write_extents(&self, extents: &[(u64, usize)], data: &[u8]) -> Result<(), DeviceError> {
        self.write_pieces(extents, &mut core::iter::once(data))
    }

    fn write_pieces(
        &self,
        extents: &[(u64, usize)],
        pieces: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), DeviceError> {
        let mut rest: &[u8] = &[];
        self.write_from(extents, &mut |mut target| {
            while !target.is_empty() {
                if rest.is_empty() {
                    rest = pieces.next().ok_or(DeviceError::Io)?;
                }
                let count = rest.len().min(target.len());
                let (now, later) = rest.split_at(count);
                let (filled, more) = target.split_at_mut(count);
                filled.copy_from_slice(now);
                (rest, target) = (later, more);
            }
            Ok(())
        })
    }

    fn write_groups(&self, groups: Vec<Group>) -> Result<(), DeviceError> {
        let mut groups = &groups[..];
        while !groups.is_empty() {
            let (now, later) = groups.split_at(self.as_one(groups));
            if !self.write_as_one(now)? {
                // No shadow: then a crash of this domain may leave a part of them.
                now.iter().try_for_each(|group| group.write_to(self))?;
            }
            groups = later;
        }
        Ok(())
    }

    fn group_bytes(&self) -> usize {
        self.line.staging.cells() * CELL
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.arrivals.flush(|| {
            let held = Flight::new(&self.line).ticket()?;
            let mut forms = self.line.staging.forms();
            forms.batch[0] = NO_REQUEST;
            self.line.submit(&held, &mut forms.batch, 1)?;
            drop(forms);
            self.line.wait(&held)
        })
    }

    fn await_content(&self) -> Result<bool, DeviceError> {
        self.arrivals.wait()
    }

    fn sectors(&self) -> u64 {
        self.limits.sectors
    }
}
