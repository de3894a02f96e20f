//! A block queue as an object that its submitter calls.

use alloc::sync::Arc;

use crate::disk::{Disk, State};
use crate::lane::{REQUESTS, SLOTS, Slot, has_data};
use domain_rt::sync::MutexGuard;
use interfaces::{
    BlockCompletion, BlockOperation, BlockOutcome, BlockQueue, BlockRequest, Handle, MemoryError,
    QueueError, QueueLimits, RVec, VmoView,
};

/// Most requests in one call.
const BATCH: u32 = 256;

/// The queue with a number. It is of no use when another one was opened.
pub struct Submitter {
    pub(crate) disk: Arc<Disk>,
    pub(crate) id: u64,
}

impl Submitter {
    /// The lock, if the queue is the one that is open.
    fn state(&self) -> Result<MutexGuard<'_, State>, QueueError> {
        let state = self.disk.state.lock();
        match &state.lane {
            _ if state.gone => Err(QueueError::Gone),
            Some(lane) if lane.id == self.id => Ok(state),
            _ => Err(QueueError::Fenced),
        }
    }

    /// What is wrong with a request, as far as that can be said at once.
    fn check(&self, request: &BlockRequest) -> Result<(), BlockOutcome> {
        let most = match request.operation {
            BlockOperation::Flush => return Ok(()),
            BlockOperation::Read | BlockOperation::Write => self.disk.request_sectors(),
            BlockOperation::Discard => self.disk.discard_sectors(),
            BlockOperation::WriteZeroes => self.disk.zeroes_sectors(),
        };
        if request.operation != BlockOperation::Read && self.disk.namespace.read_only {
            return Err(BlockOutcome::ReadOnly);
        }
        if most == 0 {
            return Err(BlockOutcome::Unsupported);
        }
        let end = request.sector.checked_add(request.sectors.into());
        let fits = end.is_some_and(|end| end <= self.disk.namespace.blocks);
        if !fits || request.sectors == 0 || request.sectors > most {
            return Err(BlockOutcome::OutOfRange);
        }
        match request.at.checked_add(request.sectors.into()) {
            None if has_data(request.operation) => Err(BlockOutcome::Memory),
            _ => Ok(()),
        }
    }
}

impl BlockQueue for Submitter {
    fn limits(&self) -> Result<QueueLimits, QueueError> {
        Ok(QueueLimits {
            sectors: self.disk.namespace.blocks,
            read_only: self.disk.namespace.read_only,
            requests: REQUESTS as u32,
            request_sectors: self.disk.request_sectors(),
            slots: SLOTS as u32,
            discard_sectors: self.disk.discard_sectors(),
            zeroes_sectors: self.disk.zeroes_sectors(),
        })
    }

    fn register(&self, slot: u32, view: Handle<dyn VmoView>) -> Result<(), QueueError> {
        let window = self.disk.allocator.register(view);
        let window = window.map_err(|error| match error {
            MemoryError::Rpc(error) => QueueError::Rpc(error),
            error => QueueError::Memory(error),
        })?;
        let mut state = self.state()?;
        let lane = state.lane.as_mut().ok_or(QueueError::Fenced)?;
        match lane.slots.get_mut(slot as usize) {
            Some(empty @ None) => {
                *empty = Some(Slot {
                    window: Arc::new(window),
                    uses: 0,
                });
                Ok(())
            }
            _ => Err(QueueError::BadSlot),
        }
    }

    fn unregister(&self, slot: u32) -> Result<(), QueueError> {
        let mut state = self.state()?;
        let lane = state.lane.as_mut().ok_or(QueueError::Fenced)?;
        let slot = lane.slots.get_mut(slot as usize);
        let slot = slot.ok_or(QueueError::BadSlot)?;
        match slot {
            None => Err(QueueError::BadSlot),
            Some(used) if used.uses > 0 => Err(QueueError::InUse),
            Some(_) => {
                let old = slot.take();
                drop(state);
                drop(old);
                Ok(())
            }
        }
    }

    fn submit(&self, requests: &RVec<BlockRequest>, count: u32) -> Result<u32, QueueError> {
        let batch = requests.get(..count as usize);
        let batch = batch.filter(|_| (1..=BATCH).contains(&count));
        let batch = batch.ok_or(QueueError::BadCount)?;
        let mut state = self.state()?;
        let lane = state.lane.as_mut().ok_or(QueueError::Fenced)?;
        let mut taken = 0;
        for request in batch.iter().take(lane.book.room()) {
            let slot = lane.slots.get_mut(request.slot as usize);
            let checked = match (self.check(request), slot) {
                (Ok(()), Some(Some(slot))) if has_data(request.operation) => {
                    slot.uses += 1;
                    Ok(())
                }
                (Ok(()), _) if has_data(request.operation) => Err(BlockOutcome::BadSlot),
                (checked, _) => checked,
            };
            let entered = match checked {
                Ok(()) => lane.book.enter(request.tag, request.barrier, *request),
                Err(outcome) => lane.book.refuse(request.tag, outcome),
            };
            entered.map_err(|_| QueueError::BadCount)?;
            taken += 1;
        }
        self.disk.pump(&mut state);
        Disk::raise(state);
        Ok(taken)
    }

    fn submit_group(&self, _: u64, _: &RVec<BlockRequest>, _: u32) -> Result<(), QueueError> {
        Err(QueueError::Unsupported)
    }

    fn completions(
        &self,
        mut room: RVec<BlockCompletion>,
    ) -> Result<(RVec<BlockCompletion>, u32), QueueError> {
        let mut state = self.state()?;
        self.disk.settle(&mut state);
        if state.gone {
            return Err(QueueError::Gone);
        }
        let lane = state.lane.as_mut().ok_or(QueueError::Fenced)?;
        let mut count = 0;
        for place in room.iter_mut() {
            let Some((tag, outcome)) = lane.take() else {
                break;
            };
            *place = BlockCompletion { tag, outcome };
            count += 1;
        }
        Ok((room, count))
    }
}

impl Drop for Submitter {
    /// Nobody submits any more. What the device has, it ends.
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        let is_open = state.lane.as_ref().is_some_and(|lane| lane.id == self.id);
        let lane = if is_open { state.lane.take() } else { None };
        drop(state);
        drop(lane);
    }
}
