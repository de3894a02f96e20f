//! Driver of a virtio network device (virtio 1.2, sections 4.1, 2.7 and 5.1) on the PCI bus.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`bring_up`] | from a PCI function to a running device |
//! | [`lane`] | a virtqueue, and the cells for the packets that are with the device |
//! | [`card`] | the device |
//!
//! The device gets at no memory but the DMA pages of this driver: a packet is copied once, between
//! these and a batch. Nothing is left to the device, neither checksums nor segments. A device that
//! breaks the rules, or sends nothing for ten seconds, is reset, and from then on it is `Gone`; a
//! new instance of the driver may have more luck.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bring_up;
mod card;
mod lane;

use alloc::sync::Arc;
use domain_rt::{log, memory, thread};
use interfaces::{Batch, Handle, Net, NetError, PciDevice, RRef, Raiser, RpcResult, Traffic};
use lanes::start;
use virtio_pci::refuse;

use card::Card;

/// Brings the device up and starts the thread that answers its interrupts.
///
/// # Errors
/// [`RpcError::Refused`](interfaces::RpcError::Refused) if the device cannot be used; the log says
/// why. Other errors are those of calls.
pub fn start(device: Handle<dyn PciDevice>) -> RpcResult<Handle<dyn Net>> {
    memory::reserve(memory::DRIVER)?;
    let (parts, interrupt) = bring_up::bring_up(device).map_err(refuse)?;
    let [a, b, c, d, e, f] = parts.address;
    log!("address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    let card = Arc::new(Card::new(parts));
    let of_thread = card.clone();
    thread::spawn_small("arrivals", move || {
        start::at_interrupts(&interrupt, || of_thread.interrupted());
    })?;
    Handle::new(Shared(card))
}

/// The device as an object that others call.
struct Shared(Arc<Card>);

impl Net for Shared {
    fn address(&self) -> Result<[u8; 6], NetError> {
        Ok(self.0.address())
    }

    fn send(&self, batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        self.0.send(batch)
    }

    fn receive(&self, batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        self.0.receive(batch)
    }

    fn tell(&self, raiser: Handle<dyn Raiser>) -> Result<(), NetError> {
        self.0.tell(raiser)
    }

    fn traffic(&self) -> Result<Traffic, NetError> {
        Ok(self.0.traffic())
    }
}
