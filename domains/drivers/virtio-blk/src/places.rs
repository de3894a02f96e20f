//! Where the device finds the requests of block queues: for each that it can have at once a table
//! of descriptors, a header, a range of sectors and a status byte.

use domain_rt::io::DmaBuffer;
use interfaces::{DmaAllocator, Handle};
use virtio::block::{HEADER_BYTES, STATUS_UNSET, Status};
use virtio::queue::{Buffer, DESCRIPTOR, Table};
use virtio_pci::{PAGE, Rings, Trouble};

/// Requests that can be with the device at once, by all virtqueues.
pub const MOST: usize = 64;
/// Pieces of data in one request.
pub const MOST_SEGMENTS: usize = TABLE - 2;

/// Descriptors of a table: header, data, status.
const TABLE: usize = 64;
const HEADER: usize = TABLE * DESCRIPTOR;
const RANGE: usize = HEADER + 16;
const STATUS: usize = RANGE + 16;
/// Bytes of a place; a table lies at a multiple of 16.
const BYTES: usize = STATUS + 16;

/// The places of all requests.
pub struct Places {
    memory: Rings,
    count: usize,
}

impl Places {
    /// So many places.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn new(allocator: &Handle<dyn DmaAllocator>, count: usize) -> Result<Self, Trouble> {
        let pages = (count * BYTES).div_ceil(PAGE) as u32;
        let memory = Rings(DmaBuffer::new(allocator.allocate(pages)?)?);
        Ok(Places { memory, count })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The table of a place.
    pub fn table(&self, place: u16) -> Table<'_, Rings> {
        Table {
            memory: &self.memory,
            offset: usize::from(place) * BYTES,
            address: self.memory.0.device_address() + (usize::from(place) * BYTES) as u64,
            room: TABLE,
        }
    }

    fn buffer(&self, place: u16, inside: usize, length: u32, device_writes: bool) -> Buffer {
        Buffer {
            address: self.memory.0.device_address() + (usize::from(place) * BYTES + inside) as u64,
            length,
            device_writes,
        }
    }

    /// Writes the header; what the device reads.
    #[inline]
    pub fn header(&self, place: u16, header: &[u8; HEADER_BYTES]) -> Buffer {
        let whole = u128::from_le_bytes(*header);
        let words = [whole as u64, (whole >> 64) as u64];
        let offset = usize::from(place) * BYTES + HEADER;
        self.memory.0.write_u64s(offset, words);
        self.buffer(place, HEADER, HEADER_BYTES as u32, false)
    }

    /// Writes a range of sectors; what the device reads.
    pub fn range(&self, place: u16, range: &[u8]) -> Buffer {
        self.memory
            .0
            .write_bytes(usize::from(place) * BYTES + RANGE, range);
        self.buffer(place, RANGE, range.len() as u32, false)
    }

    /// Clears the status byte; what the device writes.
    pub fn status_buffer(&self, place: u16) -> Buffer {
        let offset = usize::from(place) * BYTES + STATUS;
        self.memory.0.write_u8(offset, STATUS_UNSET);
        self.buffer(place, STATUS, 1, true)
    }

    /// What the device has written there.
    pub fn status(&self, place: u16) -> Status {
        let offset = usize::from(place) * BYTES + STATUS;
        Status::from_byte(self.memory.0.read_u8(offset))
    }
}
