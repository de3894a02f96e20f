//! A driver that lives and loses a request, or answers with nonsense: see `lossy-disk.idl`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use domain_rt::{log, time};
use interfaces::{
    Block, BlockBase, BlockCompletion, BlockError, BlockQueue, BlockRequest, Handle, QueueError,
    QueueLimits, RVec, Raiser, RpcError, RpcResult, VmoView,
};

/// No request is lost when the machine has run so long, in nanoseconds: it is to be one, not one in
/// each life. Who does not answer is replaced after half a minute.
const SOON: u64 = 28_000_000_000;

/// Makes the device.
///
/// # Errors
/// [`RpcError::Refused`] if the options are not what they should be.
pub fn start(device: Handle<dyn Block>, options: RVec<u8>) -> RpcResult<Handle<dyn Block>> {
    let (number, way) = parse(&options).ok_or(RpcError::Refused)?;
    let left = Arc::new(AtomicU64::new(number));
    Handle::new(Disk { device, left, way })
}

/// What is done with the request.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Lose,
    Wild,
    Many,
    Shy,
}

fn parse(options: &[u8]) -> Option<(u64, Way)> {
    let mut words = core::str::from_utf8(options).ok()?.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let way = match words.next() {
        None => Way::Lose,
        Some("wild") => Way::Wild,
        Some("many") => Way::Many,
        Some("shy") if number > 0 => Way::Shy,
        Some(_) => return None,
    };
    Some((number, way))
}

/// The device that is passed on.
struct Disk {
    device: Handle<dyn Block>,
    /// Requests until the one that is meant, itself included; 0 when it has come. If it is
    /// shy, one of so many calls is refused.
    left: Arc<AtomicU64>,
    way: Way,
}

impl BlockBase for Disk {
    fn pass<T>(
        &self,
        mut call: impl FnMut(&dyn Block) -> Result<T, BlockError>,
    ) -> Result<T, BlockError> {
        call(&*self.device)
    }

    fn open(
        &self,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        let queue = self.device.open(raiser)?;
        let left = self.left.clone();
        let way = self.way;
        Ok(Handle::new(Queue {
            queue,
            left,
            way,
            is_due: AtomicBool::new(false),
            calls: AtomicU64::new(0),
        })?)
    }
}

/// The queue that is passed on. Its submitter makes one call at a time.
struct Queue {
    queue: Handle<dyn BlockQueue>,
    left: Arc<AtomicU64>,
    way: Way,
    /// The next answer is nonsense.
    is_due: AtomicBool,
    calls: AtomicU64,
}

impl Queue {
    /// Refuses a call now and then, as if its caller had too little stack left.
    fn agree(&self) -> Result<(), QueueError> {
        let (calls, each) = (&self.calls, self.left.load(Ordering::Relaxed));
        match self.way == Way::Shy && calls.fetch_add(1, Ordering::Relaxed) % each == 0 {
            true => Err(QueueError::Rpc(RpcError::StackLow)),
            false => Ok(()),
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
        self.agree()?;
        self.queue.unregister(slot)
    }

    fn submit(&self, requests: &RVec<BlockRequest>, count: u32) -> Result<u32, QueueError> {
        self.agree()?;
        let left = self.left.load(Ordering::Relaxed);
        let before = match left {
            _ if self.way == Way::Shy => return self.queue.submit(requests, count),
            1 if time::now() < SOON && self.way == Way::Lose => {
                log!("a request is lost");
                self.left.store(0, Ordering::Relaxed);
                return Ok(1);
            }
            1 if time::now() < SOON => {
                self.is_due.store(true, Ordering::Relaxed);
                1
            }
            0 | 1 => count,
            left => count.min(u32::try_from(left - 1).unwrap_or(u32::MAX)),
        };
        let taken = self.queue.submit(requests, before)?;
        self.left
            .store(left.saturating_sub(taken.into()), Ordering::Relaxed);
        Ok(taken)
    }

    fn submit_group(
        &self,
        tag: u64,
        requests: &RVec<BlockRequest>,
        count: u32,
    ) -> Result<(), QueueError> {
        self.queue.submit_group(tag, requests, count)
    }

    fn completions(
        &self,
        room: RVec<BlockCompletion>,
    ) -> Result<(RVec<BlockCompletion>, u32), QueueError> {
        let (mut room, count) = self.queue.completions(room)?;
        if count == 0 || !self.is_due.swap(false, Ordering::Relaxed) {
            return Ok((room, count));
        }
        log!("nonsense is answered");
        if self.way == Way::Many {
            let count = room.len() as u32 + 1;
            return Ok((room, count));
        }
        // The shadow counts from 0, and does not come so far.
        room[0].tag = !room[0].tag;
        Ok((room, count))
    }
}
