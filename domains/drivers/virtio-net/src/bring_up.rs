//! From a PCI function to a running device with one queue each way.

use crate::lane::Lane;
use interfaces::{DmaAllocator, Handle, Interrupt, PciDevice};
use lanes::start::patiently;
use virtio::device;
use virtio::net::{self, ADDRESS, CONFIG_ADDRESS, RECEIVE, TRANSMIT};
use virtio_pci::{Ready, Regions, Trouble, Window};

/// What is made use of, where the device has it.
const WANTED: u64 = ADDRESS;
/// Packets that can be with the device, each way.
const WANTED_QUEUE: u16 = 256;

/// What a running device consists of.
pub struct Parts {
    /// The function; it stays claimed for as long as this is kept.
    pub function: Handle<dyn PciDevice>,
    /// The common configuration.
    pub common: Window,
    /// The hardware address.
    pub address: [u8; 6],
    /// Packets that arrive.
    pub receive: Lane,
    /// Packets that are to be sent.
    pub transmit: Lane,
}

/// Brings the device up: see the module `device` of `lib/hardware/virtio` for the order.
///
/// # Errors
/// See [`Trouble`]. The device is left reset, or was not touched.
pub fn bring_up(
    function: Handle<dyn PciDevice>,
) -> Result<(Parts, Handle<dyn Interrupt>), Trouble> {
    let mut regions = Regions::new(&function)?;
    let ready = regions.reset(WANTED)?;
    if ready.features & ADDRESS == 0 {
        return Err(Trouble::Unfit("it has no hardware address"));
    }
    let config = regions.configuration(CONFIG_ADDRESS + 6)?;
    let nobody = Trouble::Unfit("its hardware address is not that of one device");
    let address = net::address(&config).ok_or(nobody)?;
    let allocator = function.dma()?;
    // The other queue raises no interrupt: its vector stays masked.
    let interrupt = patiently(|| function.interrupt(RECEIVE, 0))?;
    let mut receive = lane(&mut regions, &ready, &allocator, RECEIVE)?;
    let mut transmit = lane(&mut regions, &ready, &allocator, TRANSMIT)?;
    receive.fill();
    transmit.want_no_interrupt();
    // Since the reset above, the device was told of no memory but this driver's own.
    allocator.reset_done()?;
    device::start(&ready.common);
    receive.notify();
    let common = ready.common;
    let parts = Parts {
        function,
        common,
        address,
        receive,
        transmit,
    };
    Ok((parts, interrupt))
}

/// Sets up virtqueue `number`.
fn lane(
    regions: &mut Regions<'_>,
    ready: &Ready,
    allocator: &Handle<dyn DmaAllocator>,
    number: u16,
) -> Result<Lane, Trouble> {
    let ring = regions.ring(ready, allocator, number, WANTED_QUEUE)?;
    Lane::new(number, ring, allocator)
}
