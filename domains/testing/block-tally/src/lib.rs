//! A block device that counts what passes through it: the example of
//! `docs/guide/write-a-domain.md`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use domain_rt::sync::Mutex;
use interfaces::{
    Block, BlockCompletion, BlockError, BlockOperation, BlockQueue, BlockRequest, Counts, Geometry,
    Handle, QueueError, QueueLimits, RVec, Raiser, RpcResult, Tally, VmoView,
};

/// Makes the two objects that this domain offers. They share the counts.
///
/// # Errors
/// There is no memory for them.
pub fn start(device: Handle<dyn Block>) -> RpcResult<(Handle<dyn Block>, Handle<dyn Tally>)> {
    let counts = Arc::new(Mutex::new(Counts {
        read: 0,
        written: 0,
    }));
    let disk = Disk {
        device,
        counts: counts.clone(),
    };
    Ok((Handle::new(disk)?, Handle::new(Counter(counts))?))
}

/// The device that is passed on.
struct Disk {
    device: Handle<dyn Block>,
    counts: Arc<Mutex<Counts>>,
}

impl Block for Disk {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        self.device.geometry()
    }

    fn open(
        &self,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        let queue = self.device.open(raiser)?;
        let counts = self.counts.clone();
        Ok(Handle::new(Queue { queue, counts })?)
    }
}

/// The queue that is passed on.
struct Queue {
    queue: Handle<dyn BlockQueue>,
    counts: Arc<Mutex<Counts>>,
}

impl Queue {
    fn count(&self, requests: &[BlockRequest]) {
        let mut counts = self.counts.lock();
        for request in requests {
            match request.operation {
                BlockOperation::Read => counts.read += u64::from(request.sectors),
                BlockOperation::Write => counts.written += u64::from(request.sectors),
                _ => {}
            }
        }
    }
}

impl BlockQueue for Queue {
    fn limits(&self) -> Result<QueueLimits, QueueError> {
        self.queue.limits()
    }

    fn register(&self, slot: u32, view: Handle<dyn VmoView>) -> Result<(), QueueError> {
        self.queue.register(slot, view)
    }

    fn unregister(&self, slot: u32) -> Result<(), QueueError> {
        self.queue.unregister(slot)
    }

    // What was taken will be done, so it counts.
    fn submit(&self, requests: &RVec<BlockRequest>, count: u32) -> Result<u32, QueueError> {
        let taken = self.queue.submit(requests, count)?;
        self.count(requests.get(..taken as usize).unwrap_or_default());
        Ok(taken)
    }

    fn submit_group(
        &self,
        tag: u64,
        requests: &RVec<BlockRequest>,
        count: u32,
    ) -> Result<(), QueueError> {
        self.queue.submit_group(tag, requests, count)?;
        self.count(requests.get(..count as usize).unwrap_or_default());
        Ok(())
    }

    fn completions(
        &self,
        room: RVec<BlockCompletion>,
    ) -> Result<(RVec<BlockCompletion>, u32), QueueError> {
        self.queue.completions(room)
    }
}

/// Tells the counts.
struct Counter(Arc<Mutex<Counts>>);

impl Tally for Counter {
    fn counts(&self) -> RpcResult<Counts> {
        Ok(*self.0.lock())
    }
}
