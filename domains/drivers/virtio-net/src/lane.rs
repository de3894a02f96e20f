//! A virtqueue, and the cells for the packets that are with the device.
//!
//! Each packet is one buffer, in a cell of its own: the header of virtio, and behind it the frame.
//! Which cell belongs to which chain the driver knows by itself; the device only names chains, and
//! [`Queue`] refuses such as it does not have.

use alloc::vec;
use alloc::vec::Vec;

use domain_rt::io::DmaBuffer;
use interfaces::{DmaAllocator, Handle, Packet};
use virtio::device::Registers;
use virtio::net::{HEADER, HEADER_BYTES, frame_bytes};
use virtio::queue::{Buffer, Fault, Queue};
use virtio_pci::{PAGE, Ring, Rings, Trouble, Window};

/// Bytes of an Ethernet header: the shortest frame.
pub const SHORTEST: usize = 14;
/// The longest frame: header and 1,500 bytes.
pub const LONGEST: usize = SHORTEST + 1500;
/// Bytes of a cell.
const CELL: usize = 2048;

/// See the module.
pub struct Lane {
    /// The number of the virtqueue.
    number: u16,
    queue: Queue,
    rings: Rings,
    cells: DmaBuffer,
    /// For each descriptor, the cell of the chain that begins there.
    holders: Vec<u16>,
    /// Cells that the device does not have.
    free: Vec<u16>,
    /// Its notification register.
    notify: Window,
}

/// A cell that came back.
pub struct Back {
    cell: u16,
    /// Bytes that the device says it wrote.
    written: u32,
}

impl Lane {
    /// A virtqueue that was just set up, whose cells the device does not have yet.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn new(
        number: u16,
        ring: Ring,
        allocator: &Handle<dyn DmaAllocator>,
    ) -> Result<Self, Trouble> {
        let count = ring.layout.size;
        let pages = (usize::from(count) * CELL).div_ceil(PAGE) as u32;
        Ok(Lane {
            number,
            queue: ring.queue,
            rings: ring.rings,
            cells: DmaBuffer::new(allocator.allocate(pages)?)?,
            holders: vec![0; usize::from(count)],
            free: (0..count).rev().collect(),
            notify: ring.notify,
        })
    }

    /// Gives the device all cells to write packets to.
    pub fn fill(&mut self) {
        while let Some(cell) = self.free.pop() {
            if !self.post(cell, CELL, true) {
                return;
            }
        }
    }

    /// Gives the device a cell back that it has written.
    pub fn refill(&mut self, back: Back) {
        self.post(back.cell, CELL, true);
    }

    /// Gives the device a packet to be sent, whose length was checked; whether there was a free
    /// cell.
    pub fn send(&mut self, packet: &Packet) -> bool {
        let (Some(cell), Some(frame)) =
            (self.free.pop(), packet.bytes.get(..packet.length as usize))
        else {
            return false;
        };
        let start = usize::from(cell) * CELL;
        self.cells.write_bytes(start, &HEADER);
        self.cells.write_bytes(start + HEADER_BYTES, frame);
        self.post(cell, HEADER_BYTES + frame.len(), false)
    }

    /// Gives the device the first `length` bytes of a cell; whether it could be. It can, as there
    /// are as many descriptors as cells.
    fn post(&mut self, cell: u16, length: usize, device_writes: bool) -> bool {
        let buffer = Buffer {
            address: self.cells.device_address() + (usize::from(cell) * CELL) as u64,
            length: length as u32,
            device_writes,
        };
        match self.queue.add(&self.rings, &[buffer]) {
            Ok(chain) => {
                self.holders[usize::from(chain.0)] = cell;
                true
            }
            Err(_) => {
                self.free.push(cell);
                false
            }
        }
    }

    /// The next cell that the device is done with.
    ///
    /// # Errors
    /// It breaks the rules.
    pub fn take(&mut self) -> Result<Option<Back>, Fault> {
        let completion = self.queue.take(&self.rings)?;
        Ok(completion.map(|it| Back {
            cell: self.holders[usize::from(it.chain.0)],
            written: it.written,
        }))
    }

    /// Puts a cell that was sent among the free ones.
    pub fn release(&mut self, back: &Back) {
        self.free.push(back.cell);
    }

    /// Copies the frame out of a cell; whether there is one of a length that may be.
    pub fn read(&self, back: &Back, packet: &mut Packet) -> bool {
        let Some(length) = frame_bytes(back.written, SHORTEST, LONGEST) else {
            return false;
        };
        let start = usize::from(back.cell) * CELL + HEADER_BYTES;
        self.cells.read_bytes(start, &mut packet.bytes[..length]);
        packet.length = length as u32;
        true
    }

    /// Wants an interrupt for the next packet; whether there is one already.
    pub fn want_interrupt(&mut self) -> bool {
        self.queue.want_interrupt(&self.rings)
    }

    /// Wants no interrupts.
    pub fn want_no_interrupt(&mut self) {
        self.queue.want_no_interrupt(&self.rings);
    }

    /// Tells the device of the cells that it was given, if it wants to know.
    pub fn notify(&mut self) {
        if self.queue.wants_notification(&self.rings) {
            // Section 4.1.5.2: the notification is the queue's number.
            self.notify.write16(0, self.number);
        }
    }
}
