//! Driver of an NVM Express disk (NVM Express Base 1.4) on the PCI bus.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`options`] | the text of options |
//! | [`memory`] | registers and shared memory as `lib/hardware/nvme` wants them |
//! | [`bring_up`] | from a PCI function to a controller with two pairs of queues |
//! | [`disk`], [`give`] | commands: what the block queue that is open has with the controller |
//! | [`lane`], [`submitter`] | the block queue that is open, and its calls |
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
mod give;
mod lane;
mod memory;
mod options;
mod submitter;
mod watch;

use alloc::sync::Arc;
use domain_rt::{log, thread};
use interfaces::{
    Block, BlockError, BlockQueue, Geometry, Handle, HardwareError, Interrupt, PciDevice, PciError,
    RVec, Raiser, RpcError, RpcResult,
};

use bring_up::Trouble;
use disk::Disk;
use submitter::Submitter;

/// Brings the controller up, and starts the threads that take answers and look for those that do
/// not come.
///
/// # Errors
/// [`RpcError::Refused`] if the device cannot be used; the log says why. Other errors are those of
/// calls.
pub fn start(device: Handle<dyn PciDevice>, options: RVec<u8>) -> RpcResult<Handle<dyn Block>> {
    domain_rt::memory::reserve(domain_rt::memory::SERVICE)?;
    let Some(namespace) = options::namespace(&options) else {
        log!("options: expected namespace=N");
        return Err(RpcError::Refused);
    };
    let (parts, interrupt) = bring_up::bring_up(device, namespace).map_err(refuse)?;
    let disk = Arc::new(Disk::new(parts)?);
    let of_thread = disk.clone();
    thread::spawn("completions", move || completions(&of_thread, &interrupt))?;
    let of_thread = disk.clone();
    thread::spawn("watch", move || of_thread.watch())?;
    Handle::new(Shared(disk))
}

/// What the start answers. A call that failed is told as such, whoever made it: where memory was
/// wanting the start is worth another try.
fn refuse(trouble: Trouble) -> RpcError {
    log!("the device cannot be used: {trouble}");
    match trouble {
        Trouble::Rpc(error)
        | Trouble::Hardware(HardwareError::Rpc(error))
        | Trouble::Pci(PciError::Rpc(error) | PciError::Resource(HardwareError::Rpc(error))) => {
            error
        }
        _ => RpcError::Refused,
    }
}

/// Takes answers for as long as the domain lives. The count is read before the queue is looked at,
/// so an interrupt in between ends the next wait at once.
fn completions(disk: &Disk, interrupt: &Handle<dyn Interrupt>) {
    let Ok(mut seen) = interrupt.count() else {
        return;
    };
    loop {
        disk.take_answers();
        match interrupt.wait(seen, None) {
            Ok(count) => seen = count,
            Err(error) => {
                log!("no more interrupts: {error}");
                return;
            }
        }
    }
}

/// The disk as an object that others call.
struct Shared(Arc<Disk>);

impl Block for Shared {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        Ok(Geometry {
            sectors: self.0.namespace.blocks,
            read_only: self.0.namespace.read_only,
        })
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
