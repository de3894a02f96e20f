//! The block shadow: a block device that goes on when the driver behind it crashes.
//!
//! Every operation of a block device can be done again on another instance of its driver with the
//! same outcome, and nothing but the operations under way has to be remembered:
//! - a read changes nothing. Its buffer was given to the driver and died with it, so a new one is
//!   made;
//! - a write was only lent its data, so the data is still there, and writing it twice is as good as
//!   once;
//! - a flush that did not return is asked for again. What was acknowledged before the crash is in
//!   the device (a restart resets the device's queues, not its cache), so the new flush covers it;
//! - the geometry does not change.
//!
//! What goes through a [queue](interfaces::BlockQueue) is remembered by tag until it has its
//! answer, and submitted again in its order ([`volume`]).
//!
//! It helps against crashes of the other side, too: a [group](interfaces::BlockQueue::submit_group)
//! of writes that a file system has submitted is carried out to its end by this domain, also when
//! the file system dies in the middle of it.
//!
//! While the driver is replaced by another image, calls wait at the gate (see `domains/libs/gate`).
//! What was under way for too long is unwound with the old driver and repeated like after a crash.
//!
//! Whoever calls sees that it took longer, and nothing else. When the driver crashes again and
//! again, [`respawn::ATTEMPTS`] bounds the repeats of one operation, and `init`'s restart budget
//! bounds the restarts; then the answer is `BlockError::Gone`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod front;
mod queue;
mod volume;

use alloc::sync::Arc;
use domain_rt::{log, memory, thread};
use gate::Passage;
use interfaces::{
    Block, BlockBase, BlockError, BlockQueue, Handle, RVec, Raiser, Respawn, RpcError, RpcResult,
};
use respawn::{Buffer, Client};

use queue::Queue;
use volume::Volume;

/// Makes the shadow. The driver is asked for here, so that a missing device is noticed at the
/// start.
///
/// # Errors
/// [`RpcError::Refused`] if there is no working driver; the log says why.
pub fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn Block>> {
    memory::reserve(memory::SERVICE)?;
    let way = Arc::new(Way {
        driver: Client::new(driver, "driver"),
        passage: Arc::default(),
    });
    let volume = Arc::new(Volume::default());
    let (of_gate, behind) = (way.clone(), volume.clone());
    let gate = gate::gate(&way.passage, move || {
        of_gate.driver.forget();
        behind.forget();
    })?;
    way.driver.attach(gate)?;
    match way.run(|device| device.geometry()) {
        Ok(_) => {}
        Err(BlockError::Rpc(error)) => return Err(error),
        Err(error) => {
            log!("there is no working driver: {error:?}");
            return Err(RpcError::Refused);
        }
    }
    let (of_thread, to_driver) = (volume.clone(), way.clone());
    thread::spawn("keeper", move || of_thread.keep(&to_driver))?;
    Handle::new(Shadow { way, volume })
}

struct Shadow {
    way: Arc<Way>,
    volume: Arc<Volume>,
}

/// The way to a driver that works.
struct Way {
    driver: Client<dyn Block>,
    passage: Arc<Passage>,
}

impl Way {
    /// Does `operation` with the driver, and again with the next one while drivers crash under it.
    fn run<T>(
        &self,
        operation: impl FnMut(&Handle<dyn Block>) -> Result<T, BlockError>,
    ) -> Result<T, BlockError> {
        let _pass = self.passage.enter()?;
        self.driver.call_checked(operation, is_dead)
    }
}

/// Whether the driver behind `device` is dead by now. Until all threads have left a dead driver one
/// of them may come back with an error of its own, since its device was reset under it: that is no
/// answer.
fn is_dead(device: &Handle<dyn Block>) -> bool {
    let answer = device.geometry();
    matches!(answer, Err(BlockError::Rpc(RpcError::DomainCrashed)))
}

// What is not written here is passed on as it is: writes are only lent their data, and done twice
// they are as if done once.
impl BlockBase for Shadow {
    fn pass<T>(
        &self,
        mut call: impl FnMut(&dyn Block) -> Result<T, BlockError>,
    ) -> Result<T, BlockError> {
        self.way.run(|device| call(&**device))
    }

    fn read(&self, sector: u64, buffer: RVec<u8>) -> Result<RVec<u8>, BlockError> {
        let mut buffer = Buffer::new(buffer);
        self.way.run(|device| device.read(sector, buffer.take()?))
    }

    fn open(
        &self,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        let id = self.volume.open(&self.way, raiser)?;
        let (way, volume) = (self.way.clone(), self.volume.clone());
        Ok(Handle::new(Queue { way, volume, id })?)
    }
}
