//! Device registers and shared memory, as `lib/hardware/virtio` wants them.

use crate::Trouble;
use alloc::sync::Arc;
use domain_rt::io::{DmaBuffer, IoMem};
use virtio::capability::Place;
use virtio::device::Registers;
use virtio::queue::Memory;

/// A structure of the device inside a mapped memory region.
pub struct Window {
    memory: Arc<IoMem>,
    start: usize,
}

impl Window {
    /// The structure at `place`, of which at least `needed` bytes are used, in its region.
    ///
    /// # Errors
    /// [`Trouble::BadPlace`] if it does not lie in the region, or not at a multiple of 4.
    pub fn new(memory: Arc<IoMem>, place: Place, needed: usize) -> Result<Self, Trouble> {
        let start = place.offset as usize;
        let fits = start
            .checked_add(needed)
            .is_some_and(|end| end <= memory.len());
        let whole = fits && start.is_multiple_of(4) && needed <= place.length as usize;
        if whole {
            Ok(Window { memory, start })
        } else {
            Err(Trouble::BadPlace)
        }
    }
}

impl Registers for Window {
    fn read8(&self, offset: usize) -> u8 {
        self.memory.read8(self.start + offset)
    }
    fn read16(&self, offset: usize) -> u16 {
        self.memory.read16(self.start + offset)
    }
    fn read32(&self, offset: usize) -> u32 {
        self.memory.read32(self.start + offset)
    }
    fn write8(&self, offset: usize, value: u8) {
        self.memory.write8(self.start + offset, value);
    }
    fn write16(&self, offset: usize, value: u16) {
        self.memory.write16(self.start + offset, value);
    }
    fn write32(&self, offset: usize, value: u32) {
        self.memory.write32(self.start + offset, value);
    }
}

/// The memory of a queue.
pub struct Rings(pub DmaBuffer);

impl Memory for Rings {
    fn read_u16(&self, offset: usize) -> u16 {
        self.0.read_u16(offset)
    }
    fn read_u32(&self, offset: usize) -> u32 {
        self.0.read_u32(offset)
    }
    fn write_u16(&self, offset: usize, value: u16) {
        self.0.write_u16(offset, value);
    }
    fn write_u32(&self, offset: usize, value: u32) {
        self.0.write_u32(offset, value);
    }
    fn write_words(&self, offset: usize, words: [u64; 2]) {
        self.0.write_u64s(offset, words);
    }
    fn fence(&self) {
        domain_rt::io::fence();
    }
}
