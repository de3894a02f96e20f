//! Driver of an NVM Express disk (NVM Express Base 1.4) on the PCI bus.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`options`] | the text of options |
//! | [`memory`] | registers and shared memory as `lib/hardware/nvme` wants them |
//! | [`bring_up`] | from a PCI function to a controller with pairs of queues |
//! | [`disk`] | the disk; the block queue that is open is in [`lanes`] |
//! | [`line`] | a pair of queues, and the commands that the controller has by it |
//! | [`watch`] | commands that take too long: abort, reset |
//!
//! No byte is copied: pages of memory objects are held for a command (`DmaWindow`), and their
//! addresses are its PRP list. The controller gets at no other memory but the DMA pages of this
//! driver.
//!
//! A controller that breaks the rules, or does not end a command within ten seconds although it was
//! told to abort it, is reset, and from then on every call fails with `Gone`. Whoever stands in
//! front asks for the next instance and submits again what has no answer.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bring_up;
mod disk;
mod line;
mod memory;
mod options;
mod watch;

use alloc::sync::Arc;
use domain_rt::{log, thread};
use interfaces::{
    Block, BlockError, BlockQueue, Geometry, Handle, HardwareError, PciDevice, RVec, Raiser,
    RpcError, RpcResult,
};
use lanes::start;

use bring_up::Trouble;
use disk::Disk;

/// Brings the controller up, and starts the threads that take answers and look for those that do
/// not come.
///
/// # Errors
/// [`RpcError::Refused`] if the device cannot be used; the log says why. Other errors are those of
/// calls.
pub fn start(device: Handle<dyn PciDevice>, options: RVec<u8>) -> RpcResult<Handle<dyn Block>> {
    domain_rt::memory::reserve(domain_rt::memory::DRIVER)?;
    let Some(namespace) = options::namespace(&options) else {
        log!("options: expected namespace=N");
        return Err(RpcError::Refused);
    };
    let (parts, interrupts) = bring_up::bring_up(device, namespace).map_err(refuse)?;
    let disk = Arc::new(Disk::new(parts));
    for (line, interrupt) in interrupts.into_iter().enumerate() {
        let of_thread = disk.clone();
        thread::spawn_small("completions", move || {
            start::at_interrupts(&interrupt, || of_thread.take_answers(line));
        })?;
    }
    let of_thread = disk.clone();
    thread::spawn_small("watch", move || of_thread.watch())?;
    Handle::new(Shared(disk))
}

/// What the start answers.
fn refuse(trouble: Trouble) -> RpcError {
    log!("the device cannot be used: {trouble}");
    match trouble {
        Trouble::Rpc(error) | Trouble::Hardware(HardwareError::Rpc(error)) => error,
        Trouble::Pci(error) => start::refusal(&error),
        _ => RpcError::Refused,
    }
}

/// The disk as an object that others call.
struct Shared(Arc<Disk>);

impl Block for Shared {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        Ok(self.0.geometry())
    }

    fn open(
        &self,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        lanes::open(&self.0, raiser)
    }
}
