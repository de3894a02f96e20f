//! The block queue of a disk in memory: a request is carried out when it is submitted, so nothing
//! is ever under way, and barriers, flushes and durable writes are kept without doing anything.

use alloc::sync::Arc;
use core::mem;

use domain_rt::is_kernel_object;
use domain_rt::sync::{Mutex, MutexGuard};
use interfaces::{
    BlockCompletion, BlockError, BlockOperation, BlockOutcome, BlockQueue, BlockRequest, Handle,
    MemoryError, QueueError, QueueLimits, RVec, Raiser, RpcError, VmoView,
};
use requests::Book;

use crate::{Disk, SECTOR, parts};

/// Answers that were not taken.
const REQUESTS: usize = 512;
/// Slots for memory objects.
const SLOTS: usize = 64;
/// Requests in one call, and in a group.
const BATCH: usize = 256;
const GROUP: usize = 2048;
/// Sectors of a request with data, and of one without.
const MOST: u32 = 512;
const MOST_ZEROES: u32 = 1 << 16;

/// The queue that is open.
#[derive(Default)]
pub struct Lanes {
    open: Mutex<(u64, Option<Lane>)>,
}

struct Lane {
    views: [Option<Handle<dyn VmoView>>; SLOTS],
    /// Requests are answered at once: it has nothing but answers.
    book: Book<(), BlockOutcome>,
    raiser: Option<Arc<Handle<dyn Raiser>>>,
    is_raised: bool,
}

impl Lanes {
    /// Opens a queue in place of the one before.
    ///
    /// # Errors
    /// No memory.
    pub fn open(
        disk: &Arc<Disk>,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        let book = Book::passing_barriers_on(REQUESTS, ()).map_err(|_| RpcError::NoMemory)?;
        let lane = Lane {
            views: [const { None }; SLOTS],
            book,
            raiser: raiser.map(Arc::new),
            is_raised: false,
        };
        let mut open = disk.lanes.open.lock();
        open.0 += 1;
        let (id, old) = (open.0, open.1.replace(lane));
        drop(open);
        drop(old);
        let disk = disk.clone();
        Ok(Handle::new(Queue { disk, id })?)
    }
}

struct Queue {
    disk: Arc<Disk>,
    id: u64,
}

impl Lane {
    fn answer(&mut self, tag: u64, outcome: Result<(), BlockOutcome>) -> Result<(), QueueError> {
        let outcome = outcome.err().unwrap_or(BlockOutcome::Done);
        let answered = self.book.refuse(tag, outcome);
        answered.map_err(|_| QueueError::BadCount)
    }
}

/// Gives the lock back, and tells who waits for answers if there are some.
fn raise(mut open: Open<'_>) {
    let raiser = open.1.as_mut().and_then(|lane| {
        let is_due = lane.book.answers() > 0 && !mem::replace(&mut lane.is_raised, true);
        lane.raiser.clone().filter(|_| is_due)
    });
    drop(open);
    if let Some(raiser) = raiser {
        // Who is told may be dead by now.
        let _ = raiser.raise();
    }
}

type Open<'a> = MutexGuard<'a, (u64, Option<Lane>)>;

impl Queue {
    fn lane<'a>(&self, open: &'a mut Open<'_>) -> Result<&'a mut Lane, QueueError> {
        let is_open = open.0 == self.id;
        let lane = open.1.as_mut().filter(|_| is_open);
        lane.ok_or(QueueError::Fenced)
    }
}

impl BlockQueue for Queue {
    fn limits(&self) -> Result<QueueLimits, QueueError> {
        Ok(QueueLimits {
            sectors: self.disk.sectors,
            read_only: false,
            requests: REQUESTS as u32,
            request_sectors: MOST,
            slots: SLOTS as u32,
            discard_sectors: MOST_ZEROES,
            zeroes_sectors: MOST_ZEROES,
        })
    }

    fn register(&self, slot: u32, view: Handle<dyn VmoView>) -> Result<(), QueueError> {
        // A view of a domain could keep whoever uses it.
        if !is_kernel_object(&view) {
            return Err(QueueError::Memory(MemoryError::Denied));
        }
        let mut open = self.disk.lanes.open.lock();
        match self.lane(&mut open)?.views.get_mut(slot as usize) {
            Some(empty @ None) => {
                *empty = Some(view);
                Ok(())
            }
            _ => Err(QueueError::BadSlot),
        }
    }

    fn unregister(&self, slot: u32) -> Result<(), QueueError> {
        let mut open = self.disk.lanes.open.lock();
        let view = self.lane(&mut open)?.views.get_mut(slot as usize);
        let old = view.and_then(Option::take).ok_or(QueueError::BadSlot)?;
        drop(open);
        drop(old);
        Ok(())
    }

    fn submit(&self, requests: &RVec<BlockRequest>, count: u32) -> Result<u32, QueueError> {
        let batch = requests.get(..count as usize);
        let batch = batch.filter(|batch| (1..=BATCH).contains(&batch.len()));
        let batch = batch.ok_or(QueueError::BadCount)?;
        let mut open = self.disk.lanes.open.lock();
        let lane = self.lane(&mut open)?;
        let mut taken = 0;
        for request in batch.iter().take(lane.book.room()) {
            let outcome = self.disk.carry_out(&lane.views, request);
            lane.answer(request.tag, outcome)?;
            taken += 1;
        }
        raise(open);
        Ok(taken)
    }

    /// Nothing of it can be under way, so nothing has to be remembered.
    fn submit_group(
        &self,
        tag: u64,
        requests: &RVec<BlockRequest>,
        count: u32,
    ) -> Result<(), QueueError> {
        let group = requests.get(..count as usize);
        let group = group.filter(|group| (1..=GROUP).contains(&group.len()));
        let group = group.ok_or(QueueError::BadCount)?;
        let mut open = self.disk.lanes.open.lock();
        let lane = self.lane(&mut open)?;
        if lane.book.room() == 0 {
            return Err(QueueError::InUse);
        }
        let kinds = [BlockOperation::Write, BlockOperation::Flush];
        if group
            .iter()
            .any(|request| !kinds.contains(&request.operation))
        {
            return Err(QueueError::BadGroup);
        }
        let mut requests = group.iter();
        let outcome = requests.try_for_each(|request| self.disk.carry_out(&lane.views, request));
        lane.answer(tag, outcome)?;
        raise(open);
        Ok(())
    }

    fn completions(
        &self,
        mut room: RVec<BlockCompletion>,
    ) -> Result<(RVec<BlockCompletion>, u32), QueueError> {
        let mut open = self.disk.lanes.open.lock();
        let lane = self.lane(&mut open)?;
        let mut count = 0;
        for place in room.iter_mut() {
            let Some((tag, outcome)) = lane.book.take() else {
                lane.is_raised = false;
                break;
            };
            *place = BlockCompletion { tag, outcome };
            count += 1;
        }
        Ok((room, count))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut open = self.disk.lanes.open.lock();
        let lane = if open.0 == self.id {
            open.1.take()
        } else {
            None
        };
        drop(open);
        drop(lane);
    }
}

impl Disk {
    fn carry_out(
        &self,
        views: &[Option<Handle<dyn VmoView>>],
        request: &BlockRequest,
    ) -> Result<(), BlockOutcome> {
        let most = match request.operation {
            BlockOperation::Flush => return Ok(()),
            BlockOperation::Read | BlockOperation::Write => MOST,
            BlockOperation::Discard | BlockOperation::WriteZeroes => MOST_ZEROES,
        };
        if request.sectors == 0 || request.sectors > most {
            return Err(BlockOutcome::OutOfRange);
        }
        let length = request.sectors as usize * SECTOR as usize;
        let start = self.start_of(request.sector, request.sectors);
        let start = start.ok_or(BlockOutcome::OutOfRange)?;
        let view = || {
            let view = views.get(request.slot as usize).and_then(Option::as_ref);
            let offset = request.at.checked_mul(SECTOR).ok_or(BlockOutcome::Memory)?;
            view.ok_or(BlockOutcome::BadSlot).map(|view| (view, offset))
        };
        match request.operation {
            BlockOperation::Read => self.read_into(view()?, start, length),
            BlockOperation::Write => self.write_from(view()?, start, length),
            _ => {
                self.clear(start, length);
                Ok(())
            }
        }
    }

    fn read_into(
        &self,
        (view, offset): (&Handle<dyn VmoView>, u64),
        start: u64,
        length: usize,
    ) -> Result<(), BlockOutcome> {
        let mut buffer = RVec::zeroed(length).map_err(|_| BlockOutcome::NoMemory)?;
        self.copy_out(start, &mut buffer);
        // Pages that wait for their content get it, others are written to.
        let filled = view.fill(offset, &buffer);
        let whole = |count: &u64| *count == length as u64;
        if filled.is_ok_and(|count| whole(&count)) {
            return Ok(());
        }
        let written = view.write(offset, &buffer).map_err(outcome)?;
        whole(&written).then_some(()).ok_or(BlockOutcome::Memory)
    }

    fn write_from(
        &self,
        (view, offset): (&Handle<dyn VmoView>, u64),
        start: u64,
        length: usize,
    ) -> Result<(), BlockOutcome> {
        let buffer = RVec::zeroed(length).map_err(|_| BlockOutcome::NoMemory)?;
        let (buffer, count) = view.read(offset, buffer).map_err(outcome)?;
        if count != length as u64 || buffer.len() != length {
            return Err(BlockOutcome::Memory);
        }
        self.copy_in(start, &buffer)
            .map_err(|_| BlockOutcome::NoMemory)
    }

    /// What was never written is zeros already.
    fn clear(&self, start: u64, length: usize) {
        for (number, offset, range) in parts(start, length) {
            if let Some(bytes) = self.pieces[number].lock().as_mut() {
                bytes[offset..offset + range.len()].fill(0);
            }
        }
    }
}

fn outcome(error: MemoryError) -> BlockOutcome {
    match error {
        MemoryError::Rpc(RpcError::NoMemory) => BlockOutcome::NoMemory,
        _ => BlockOutcome::Memory,
    }
}
