//! From a PCI function to a running device with one virtqueue for each processor, as far as it has
//! so many.

use crate::line::Line;
use crate::places::{self, Places};
use alloc::vec::Vec;
use interfaces::{DmaAllocator, Handle, Interrupt, PciDevice};
use lanes::start::interrupts;
use virtio::block::{
    BLOCK_SIZE, CONFIG_BLOCK_SIZE, CONFIG_CAPACITY, CONFIG_DISCARD_SECTORS, CONFIG_QUEUES,
    CONFIG_SEG_MAX, CONFIG_ZEROES_SECTORS, DISCARD, FLUSH, MULTI_QUEUE, READ_ONLY, SECTOR, SEG_MAX,
    WRITE_ZEROES,
};
use virtio::device::{self, Registers};
use virtio::queue::{EVENT_INDEX, INDIRECT};
use virtio_pci::{Regions, Trouble, Window};

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
/// Descriptors that are asked for: one for each request, which has a table of its own.
const WANTED_QUEUE: u16 = places::MOST as u16;

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
    let mut regions = Regions::new(&function)?;
    let ready = regions.reset(WANTED)?;
    let features = ready.features;
    let config = configuration(&regions.configuration(needed(features))?, features);
    let allocator = function.dma()?;
    if features & INDIRECT == 0 {
        return Err(Trouble::Unfit("it takes no tables of descriptors"));
    }
    if config.block != SECTOR as u32 {
        return Err(Trouble::Blocks(config.block));
    }
    let ask = |number: u16| function.interrupt(number, number.into());
    let interrupts = interrupts(config.queues.into(), ask)?;
    let places = places::MOST / interrupts.len();
    let lines = (0..).take(interrupts.len()).map(|number| {
        let ring = regions.ring(&ready, &allocator, number, WANTED_QUEUE)?;
        let count = usize::from(ring.layout.size).min(places);
        let places = Places::new(&allocator, count)?;
        Ok(Line::new(number, ring, places)?)
    });
    let lines = lines.collect::<Result<_, Trouble>>()?;
    // Since the reset above, the device was told of no memory but this driver's own.
    allocator.reset_done()?;
    device::start(&ready.common);
    let parts = Parts {
        function,
        common: ready.common,
        lines,
        allocator,
        config,
        features,
    };
    Ok((parts, interrupts))
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
