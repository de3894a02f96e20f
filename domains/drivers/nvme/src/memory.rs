//! Registers and shared memory, as `lib/hardware/nvme` wants them.

use alloc::sync::Arc;
use domain_rt::io::{DmaBuffer, IoMem};
use interfaces::{DmaAllocator, Handle};
use nvme_queues::PAGE;
use nvme_queues::command::{RANGE_BYTES, WORDS};
use nvme_queues::prp::List;
use nvme_queues::queue::Memory;
use nvme_queues::registers::Registers;

use crate::bring_up::Trouble;

/// The registers of the controller.
#[derive(Clone)]
pub struct Window(pub Arc<IoMem>);

impl Registers for Window {
    fn read32(&self, offset: usize) -> u32 {
        self.0.read32(offset)
    }
    fn write32(&self, offset: usize, value: u32) {
        self.0.write32(offset, value);
    }
}

/// The memory of a pair of queues.
pub struct Rings(pub DmaBuffer);

impl Memory for Rings {
    fn read_u64(&self, offset: usize) -> u64 {
        self.0.read_u64(offset)
    }
    fn write_command(&self, offset: usize, words: [u64; WORDS]) {
        self.0.write_u64s(offset, words);
    }
    fn fence(&self) {
        domain_rt::io::fence();
    }
}

/// So many zero bytes, in whole pages.
///
/// # Errors
/// There is no such memory.
pub fn allocate(allocator: &Handle<dyn DmaAllocator>, bytes: usize) -> Result<DmaBuffer, Trouble> {
    let pages = bytes.div_ceil(PAGE) as u32;
    Ok(DmaBuffer::new(allocator.allocate(pages)?)?)
}

/// Commands that can be under way by a pair. With all pages that they can have they are just within
/// what one driver may have held.
pub const PLACES: usize = 64;
/// Pages that the list of a place has room for, and those of a command with data: its first page is
/// not in the list.
pub const LIST: usize = 128;
pub const MOST_PAGES: usize = LIST + 1;

const LIST_BYTES: usize = 8 * LIST;

/// For each command that can be under way a list of pages and a range of blocks. No list crosses
/// the end of a page, since four are as large as one.
pub struct Places {
    memory: DmaBuffer,
    count: usize,
}

impl Places {
    /// So many places.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn new(allocator: &Handle<dyn DmaAllocator>, count: usize) -> Result<Self, Trouble> {
        let memory = allocate(allocator, count * (LIST_BYTES + RANGE_BYTES))?;
        Ok(Places { memory, count })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The list of a place.
    pub fn list(&self, place: u16) -> List {
        let offset = usize::from(place) * LIST_BYTES;
        List {
            address: self.memory.device_address() + offset as u64,
            room: LIST,
        }
    }

    /// Puts an entry into the list of a place.
    pub fn put(&self, place: u16, number: usize, page: u64) {
        let offset = usize::from(place) * LIST_BYTES + 8 * number;
        self.memory.write_u64(offset, page);
    }

    /// Writes the range of a place; where it is for the controller.
    pub fn range(&self, place: u16, range: &[u8; RANGE_BYTES]) -> u64 {
        let offset = self.count * LIST_BYTES + usize::from(place) * RANGE_BYTES;
        self.memory.write_bytes(offset, range);
        self.memory.device_address() + offset as u64
    }
}
