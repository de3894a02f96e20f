//! From a PCI function to a running device with one virtqueue for each processor, as far as it has
//! so many.

use crate::line::Line;
use crate::places::{self, Places};
use crate::window::{Rings, Window};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use domain_rt::io::{DmaBuffer, IoMem};
use domain_rt::time;
use interfaces::{DmaAllocator, Handle, HardwareError, Interrupt, PciDevice, PciError, RpcError};
use lanes::start::{interrupts, patiently};
use virtio::block::{
    BLOCK_SIZE, CONFIG_BLOCK_SIZE, CONFIG_CAPACITY, CONFIG_DISCARD_SECTORS, CONFIG_QUEUES,
    CONFIG_SEG_MAX, CONFIG_ZEROES_SECTORS, DISCARD, FLUSH, MULTI_QUEUE, READ_ONLY, SECTOR, SEG_MAX,
    WRITE_ZEROES,
};
use virtio::capability::{CapabilityError, Place, Structures};
use virtio::device::{self, QueueAddresses, Registers, SetupError};
use virtio::queue::{EVENT_INDEX, INDIRECT, Layout, Queue};

/// What is made use of, where the device has it.
const WANTED: u64 = READ_ONLY
    | FLUSH
    | SEG_MAX
    | BLOCK_SIZE
    | DISCARD
    | WRITE_ZEROES
    | MULTI_QUEUE
    | INDIRECT
    | EVENT_INDEX;
const PAGE: usize = 4096;
/// Descriptors that are asked for: one for each request, which has a table of its own.
const WANTED_QUEUE: u16 = places::MOST as u16;
/// Registers of the common configuration that are used, in bytes.
const COMMON_BYTES: usize = 0x38;

/// Why the device cannot be used.
#[derive(Debug)]
pub enum Trouble {
    /// A call failed.
    Rpc(RpcError),
    /// The kernel did not give a resource.
    Hardware(HardwareError),
    /// The PCI domain did not do what it was asked.
    Pci(PciError),
    /// It is no virtio 1.x device.
    Capability(CapabilityError),
    /// A structure lies outside of its region.
    BadPlace,
    /// It takes no tables of descriptors.
    NoTables,
    /// Its blocks have so many bytes, and a sector is not one.
    Blocks(u32),
    /// It did not come up.
    Setup(SetupError),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Rpc(error) => write!(f, "{error}"),
            Trouble::Hardware(error) => write!(f, "a resource is not to be had: {error:?}"),
            Trouble::Pci(error) => write!(f, "the PCI bus says: {error:?}"),
            Trouble::Capability(error) => write!(f, "it is no virtio 1.x device: {error:?}"),
            Trouble::BadPlace => f.write_str("a structure lies outside of its memory region"),
            Trouble::NoTables => f.write_str("it takes no tables of descriptors"),
            Trouble::Blocks(bytes) => write!(
                f,
                "its blocks have {bytes} bytes; only such of {SECTOR} are served"
            ),
            Trouble::Setup(error) => write!(f, "{error}"),
        }
    }
}

macro_rules! wrap {
    ($($variant:ident($type:ty)),*) => { $(
        impl From<$type> for Trouble {
            fn from(error: $type) -> Self {
                Trouble::$variant(error)
            }
        }
    )* };
}

wrap!(
    Rpc(RpcError),
    Hardware(HardwareError),
    Pci(PciError),
    Capability(CapabilityError),
    Setup(SetupError)
);

/// What a running device consists of.
pub struct Parts {
    /// The function; it stays claimed for as long as this is kept.
    pub function: Handle<dyn PciDevice>,
    /// The common configuration.
    pub common: Window,
    /// The virtqueues.
    pub lines: Vec<Line>,
    /// What registers memory objects for the device.
    pub allocator: Handle<dyn DmaAllocator>,
    /// What its configuration says.
    pub config: Config,
    /// The features in force.
    pub features: u64,
}

/// The device's configuration.
#[derive(Clone, Copy)]
pub struct Config {
    /// Its size in sectors of 512 bytes.
    pub sectors: u64,
    /// Bytes of its own blocks.
    pub block: u32,
    /// Segments of data that a request may have.
    pub segments: u32,
    /// Sectors that can be discarded at once.
    pub discard: u32,
    /// Sectors that can be filled with zeros at once.
    pub zeroes: u32,
    /// Virtqueues that it has.
    pub queues: u16,
}

/// Brings the device up: see the module `device` of `lib/hardware/virtio` for the order.
///
/// # Errors
/// See [`Trouble`]. The device is left reset, or was not touched.
pub fn bring_up(
    function: Handle<dyn PciDevice>,
) -> Result<(Parts, Vec<Handle<dyn Interrupt>>), Trouble> {
    let structures =
        Structures::find(|offset| function.configuration(offset).map_err(Trouble::from))?;
    let mut regions = Regions {
        function: &function,
        mapped: Vec::new(),
    };
    let common = regions.window(structures.common, COMMON_BYTES)?;
    // A reset, before the device can reach any memory: it may still be at work for a driver that
    // crashed.
    device::reset(&common, 1000, || time::sleep(1_000_000))?;
    let features = device::negotiate(&common, WANTED)?;
    let place = structures.device.ok_or(Trouble::BadPlace)?;
    let config = configuration(&regions.window(place, needed(features))?, features);
    let allocator = function.dma()?;
    if features & INDIRECT == 0 {
        return Err(Trouble::NoTables);
    }
    if config.block != SECTOR as u32 {
        return Err(Trouble::Blocks(config.block));
    }
    let ask = |number: u16| function.interrupt(number, number.into());
    let interrupts = interrupts(config.queues.into(), ask)?;
    let mut maker = Maker {
        regions,
        structures: &structures,
        common: &common,
        allocator: &allocator,
        features,
        places: places::MOST / interrupts.len(),
    };
    let lines = (0..)
        .take(interrupts.len())
        .map(|number| maker.line(number));
    let lines = lines.collect::<Result<_, _>>()?;
    // Since the reset above, the device was told of no memory but this driver's own.
    allocator.reset_done()?;
    device::start(&common);
    let parts = Parts {
        function,
        common,
        lines,
        allocator,
        config,
        features,
    };
    Ok((parts, interrupts))
}

/// The memory regions that were mapped so far: several structures may share one.
struct Regions<'a> {
    function: &'a Handle<dyn PciDevice>,
    mapped: Vec<(u8, Arc<IoMem>)>,
}

impl Regions<'_> {
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

/// Bytes of the configuration that these features have.
fn needed(features: u64) -> usize {
    let fields = [
        (0, CONFIG_CAPACITY + 8),
        (SEG_MAX, CONFIG_SEG_MAX + 4),
        (BLOCK_SIZE, CONFIG_BLOCK_SIZE + 4),
        (MULTI_QUEUE, CONFIG_QUEUES + 2),
        (DISCARD, CONFIG_DISCARD_SECTORS + 4),
        (WRITE_ZEROES, CONFIG_ZEROES_SECTORS + 4),
    ];
    let there = fields.iter().filter(|(bit, _)| features & bit == *bit);
    there.map(|(_, end)| *end).max().unwrap_or(0)
}

fn configuration(config: &Window, features: u64) -> Config {
    let field = |bit, offset, without| match features & bit != 0 {
        true => config.read32(offset),
        false => without,
    };
    Config {
        sectors: capacity(config),
        block: field(BLOCK_SIZE, CONFIG_BLOCK_SIZE, SECTOR as u32),
        segments: field(SEG_MAX, CONFIG_SEG_MAX, u32::MAX).max(1),
        discard: field(DISCARD, CONFIG_DISCARD_SECTORS, 0),
        zeroes: field(WRITE_ZEROES, CONFIG_ZEROES_SECTORS, 0),
        queues: match features & MULTI_QUEUE != 0 {
            true => config.read16(CONFIG_QUEUES),
            false => 1,
        },
    }
}

/// Reads the capacity, twice if it changes between its halves.
fn capacity(config: &Window) -> u64 {
    let half = |offset| u64::from(config.read32(CONFIG_CAPACITY + offset));
    loop {
        let high = half(4);
        let low = half(0);
        if half(4) == high {
            return high << 32 | low;
        }
    }
}

/// What the virtqueues of a device are made of that was not started yet.
struct Maker<'a> {
    regions: Regions<'a>,
    structures: &'a Structures,
    common: &'a Window,
    allocator: &'a Handle<dyn DmaAllocator>,
    features: u64,
    /// Requests that can be with the device by one of them.
    places: usize,
}

impl Maker<'_> {
    /// Sets up virtqueue `number`, with the vector of that number.
    fn line(&mut self, number: u16) -> Result<Line, Trouble> {
        let size = device::queue_size(self.common, number, WANTED_QUEUE);
        let layout = Layout::new(size).ok_or(SetupError::NoQueue)?;
        let pages = layout.bytes.div_ceil(PAGE) as u32;
        let rings = Rings(DmaBuffer::new(self.allocator.allocate(pages)?)?);
        let queue = Queue::new(layout, &rings, self.features);
        let places = Places::new(self.allocator, usize::from(layout.size).min(self.places))?;
        let at = addresses(layout, &rings);
        let offset = device::set_up_queue(self.common, number, layout.size, number, at)?;
        let notify = self
            .regions
            .window(notify_place(self.structures, offset)?, 2)?;
        Ok(Line::new(number, queue, rings, places, notify)?)
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
