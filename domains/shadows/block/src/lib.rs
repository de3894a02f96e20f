//! The block shadow: a block device that goes on when the driver behind it crashes.
//!
//! What a submitter has asked for can be done again on another instance of the driver with the same
//! outcome: a read changes nothing, a write is as good done twice, its bytes lie in a memory object
//! that outlives the driver, and a flush that was not answered is asked for again (a restart resets
//! the device's queues, not its cache, so the new flush covers what was acknowledged before). The
//! geometry does not change.
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
    Block, BlockBase, BlockError, BlockQueue, Handle, Raiser, Respawn, RpcError, RpcResult,
};
use respawn::Client;

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

// The geometry is passed on as it is.
impl BlockBase for Shadow {
    fn pass<T>(
        &self,
        mut call: impl FnMut(&dyn Block) -> Result<T, BlockError>,
    ) -> Result<T, BlockError> {
        self.way.run(|device| call(&**device))
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
