//! Driver of a virtio block device (virtio 1.2, sections 4.1, 2.7 and 5.2) on the PCI bus.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`bring_up`] | from a PCI function to a running device |
//! | [`disk`] | the device; the block queue that is open is in [`lanes`] |
//! | [`line`], [`places`] | a virtqueue, and the requests that are with the device: no copy |
//!
//! The device gets at no memory but the DMA pages of this driver, and at those pages of memory
//! objects that are held for a request of a block queue. A device that breaks the rules, or does
//! not answer within ten seconds, is reset, and from then on its queue is `Gone`; a new instance of
//! the driver may have more luck.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bring_up;
mod disk;
mod line;
mod places;

use alloc::sync::Arc;
use domain_rt::{memory, thread};
use interfaces::{Block, BlockError, BlockQueue, Geometry, Handle, PciDevice, Raiser, RpcResult};
use lanes::start;
use virtio_pci::refuse;

use disk::Disk;

/// Brings the device up and starts the threads that take completions.
///
/// # Errors
/// [`RpcError::Refused`] if the device cannot be used; the log says why. Other errors are those of
/// calls.
pub fn start(device: Handle<dyn PciDevice>) -> RpcResult<Handle<dyn Block>> {
    memory::reserve(memory::DRIVER)?;
    let (parts, interrupts) = bring_up::bring_up(device).map_err(refuse)?;
    let disk = Arc::new(Disk::new(parts));
    for (line, interrupt) in interrupts.into_iter().enumerate() {
        let of_thread = disk.clone();
        thread::spawn_small("completions", move || {
            start::at_interrupts(&interrupt, || of_thread.take_completions(line));
        })?;
    }
    let of_thread = disk.clone();
    thread::spawn_small("watch", move || of_thread.watch())?;
    disk.announce();
    Handle::new(Shared(disk))
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
