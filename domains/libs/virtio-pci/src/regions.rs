//! The memory regions of a function, and its virtqueues.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::io::{DmaBuffer, IoMem};
use domain_rt::time;
use interfaces::{DmaAllocator, Handle, PciDevice};
use lanes::start::patiently;
use virtio::capability::{Place, Structures};
use virtio::device::{self, QueueAddresses, SetupError};
use virtio::queue::{Layout, Queue};

use crate::{PAGE, Rings, Trouble, Window};

/// Registers of the common configuration that are used, in bytes.
const COMMON_BYTES: usize = 0x38;

/// The memory regions that were mapped so far: several structures may share one.
pub struct Regions<'a> {
    function: &'a Handle<dyn PciDevice>,
    mapped: Vec<(u8, Arc<IoMem>)>,
    structures: Structures,
}

/// A device that was reset, before it can reach any memory.
pub struct Ready {
    /// The common configuration.
    pub common: Window,
    /// The features in force.
    pub features: u64,
}

/// A virtqueue.
pub struct Ring {
    /// How it is laid out.
    pub layout: Layout,
    /// The driver's side.
    pub queue: Queue,
    /// Its memory.
    pub rings: Rings,
    /// Its notification register.
    pub notify: Window,
}

impl<'a> Regions<'a> {
    /// Those of `function`.
    ///
    /// # Errors
    /// It is no virtio 1.x device.
    pub fn new(function: &'a Handle<dyn PciDevice>) -> Result<Self, Trouble> {
        let configuration = |offset| function.configuration(offset).map_err(Trouble::from);
        let structures = Structures::find(configuration)?;
        Ok(Regions {
            function,
            mapped: Vec::new(),
            structures,
        })
    }

    /// Resets the device, which may still be at work for a driver that crashed, and accepts those
    /// of its features that are in `wanted`.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub fn reset(&mut self, wanted: u64) -> Result<Ready, Trouble> {
        let common = self.window(self.structures.common, COMMON_BYTES)?;
        device::reset(&common, 1000, || time::sleep(1_000_000))?;
        let features = device::negotiate(&common, wanted)?;
        Ok(Ready { common, features })
    }

    /// The configuration of the kind of device, of which `needed` bytes are used.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub fn configuration(&mut self, needed: usize) -> Result<Window, Trouble> {
        let place = self.structures.device.ok_or(Trouble::BadPlace)?;
        self.window(place, needed)
    }

    /// Sets up virtqueue `number` with `wanted` descriptors at most, and the vector of that number.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub fn ring(
        &mut self,
        ready: &Ready,
        allocator: &Handle<dyn DmaAllocator>,
        number: u16,
        wanted: u16,
    ) -> Result<Ring, Trouble> {
        let size = device::queue_size(&ready.common, number, wanted);
        let layout = Layout::new(size).ok_or(SetupError::NoQueue)?;
        let pages = layout.bytes.div_ceil(PAGE) as u32;
        let rings = Rings(DmaBuffer::new(allocator.allocate(pages)?)?);
        let queue = Queue::new(layout, &rings, ready.features);
        let at = addresses(layout, &rings);
        let offset = device::set_up_queue(&ready.common, number, layout.size, number, at)?;
        let notify = self.window(notify_place(&self.structures, offset)?, 2)?;
        Ok(Ring {
            layout,
            queue,
            rings,
            notify,
        })
    }

    fn window(&mut self, place: Place, needed: usize) -> Result<Window, Trouble> {
        if let Some((_, memory)) = self.mapped.iter().find(|(bar, _)| *bar == place.bar) {
            return Window::new(memory.clone(), place, needed);
        }
        let region = patiently(|| self.function.region(place.bar))?;
        let memory = Arc::new(IoMem::new(region)?);
        self.mapped.push((place.bar, memory.clone()));
        Window::new(memory, place, needed)
    }
}

fn addresses(layout: Layout, rings: &Rings) -> QueueAddresses {
    let base = rings.0.device_address();
    QueueAddresses {
        descriptors: base + layout.descriptors as u64,
        available: base + layout.available as u64,
        used: base + layout.used as u64,
    }
}

/// Where the queue with this notification offset is notified (4.1.4.4).
fn notify_place(structures: &Structures, offset: u16) -> Result<Place, Trouble> {
    let inside = u32::from(offset)
        .checked_mul(structures.notify_multiplier)
        .ok_or(Trouble::BadPlace)?;
    let length = structures
        .notify
        .length
        .checked_sub(inside)
        .ok_or(Trouble::BadPlace)?;
    let offset = structures
        .notify
        .offset
        .checked_add(inside)
        .ok_or(Trouble::BadPlace)?;
    Ok(Place {
        offset,
        length,
        ..structures.notify
    })
}
