//! The queue as an object that its submitter calls.

use alloc::sync::Arc;

use interfaces::{
    BlockCompletion, BlockError, BlockQueue, BlockRequest, Handle, MemoryError, QueueError,
    QueueLimits, RVec, Raiser, VmoView,
};

use crate::{Batch, Lanes};

/// Most requests in one call.
const BATCH: u32 = 256;

/// What a driver does for its block queue. No lock of its own is held when this is called.
pub trait Device: Send + Sync + 'static {
    /// What is common.
    fn lanes(&self) -> &Lanes;
    /// Gives the device what can be given now, of a batch too.
    fn give(&self, batch: &mut Batch);
    /// Takes everything that the device has done, gives it what can be given then, and has it
    /// interrupt or not, as the queue that is open wants it.
    fn settle(&self);
    /// Stops the device: [`Lanes::give_up`] and a reset.
    fn give_up(&self);
}

/// Opens the queue of a device in place of the one before.
///
/// # Errors
/// `Gone`, or that of a call.
pub fn open<D: Device>(
    device: &Arc<D>,
    raiser: Option<Handle<dyn Raiser>>,
) -> Result<Handle<dyn BlockQueue>, BlockError> {
    let lanes = device.lanes();
    let id = lanes.replace(raiser, || device.settle(), || device.give_up())?;
    device.settle();
    // What that has found may be for somebody who has opened one since.
    lanes.raise();
    let device = device.clone();
    Ok(Handle::new(Submitter { device, id })?)
}

/// The queue with a number. It is of no use when another one was opened.
struct Submitter<D: Device> {
    device: Arc<D>,
    id: u64,
}

impl<D: Device> BlockQueue for Submitter<D> {
    fn limits(&self) -> Result<QueueLimits, QueueError> {
        Ok(*self.device.lanes().limits())
    }

    fn register(&self, slot: u32, view: Handle<dyn VmoView>) -> Result<(), QueueError> {
        let lanes = self.device.lanes();
        let window = lanes.allocator.register(view);
        let mut window = Some(window.map_err(|error| match error {
            MemoryError::Rpc(error) => QueueError::Rpc(error),
            error => QueueError::Memory(error),
        })?);
        lanes.with(self.id, |lane| lane.register(slot, &mut window))
    }

    fn unregister(&self, slot: u32) -> Result<(), QueueError> {
        let lanes = self.device.lanes();
        let old = lanes.with(self.id, |lane| lane.unregister(slot));
        old.map(drop)
    }

    fn submit(&self, requests: &RVec<BlockRequest>, count: u32) -> Result<u32, QueueError> {
        let batch = requests.get(..count as usize);
        let batch = batch.filter(|_| (1..=BATCH).contains(&count));
        let batch = batch.ok_or(QueueError::BadCount)?;
        let mut batch = Batch::new(self.id, batch);
        self.device.give(&mut batch);
        let lanes = self.device.lanes();
        lanes.raise();
        lanes.entered(batch)
    }

    /// What is to outlive the submitter is the shadow's affair.
    fn submit_group(&self, _: u64, _: &RVec<BlockRequest>, _: u32) -> Result<(), QueueError> {
        Err(QueueError::Unsupported)
    }

    fn completions(
        &self,
        mut room: RVec<BlockCompletion>,
    ) -> Result<(RVec<BlockCompletion>, u32), QueueError> {
        // That does no harm where another queue is open by now.
        self.device.settle();
        let lanes = self.device.lanes();
        let count = lanes.with(self.id, |lane| Ok(lane.take(&mut room)));
        if count.is_err() {
            // But what was found is to be told to who opened that, or that the device is gone.
            lanes.raise();
        }
        Ok((room, count?))
    }
}

impl<D: Device> Drop for Submitter<D> {
    /// Nobody submits any more. What the device has, it ends.
    fn drop(&mut self) {
        self.device.lanes().close_if(|id| id == self.id);
    }
}
