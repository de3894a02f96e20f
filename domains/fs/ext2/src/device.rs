//! The block device behind its interface, as `lib/ext2` wants it.

use alloc::sync::Arc;
use ext2::{BlockDevice, DeviceError, SECTOR_SIZE};
use interfaces::{Block, BlockError, Geometry, Handle, RVec};

/// Most bytes in one call to the device.
const BATCH: usize = 128 * 1024;

/// A disk. Clones share it.
#[derive(Clone)]
pub struct Disk {
    block: Arc<Handle<dyn Block>>,
    geometry: Geometry,
}

impl Disk {
    /// Asks the device for its shape.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(block: Handle<dyn Block>) -> Result<Self, DeviceError> {
        let geometry = block.geometry().map_err(device_error)?;
        Ok(Disk {
            block: Arc::new(block),
            geometry,
        })
    }

    /// Whether the device refuses writes.
    pub fn read_only(&self) -> bool {
        self.geometry.read_only
    }
}

/// Sectors in so many bytes.
fn sectors(bytes: usize) -> u64 {
    (bytes / SECTOR_SIZE) as u64
}

impl BlockDevice for Disk {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        for (part, at) in buf.chunks_mut(BATCH).zip(0..) {
            let buffer = RVec::filled(0, part.len()).map_err(|_| DeviceError::Unavailable)?;
            let from = sector + at * sectors(BATCH);
            let buffer = self.block.read(from, buffer).map_err(device_error)?;
            // The device is another domain: that it gives back as much as it got is not to be trusted.
            if buffer.len() != part.len() {
                return Err(DeviceError::Io);
            }
            part.copy_from_slice(&buffer);
        }
        Ok(())
    }

    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        for (part, at) in buf.chunks(BATCH).zip(0..) {
            let data = RVec::from_slice(part).map_err(|_| DeviceError::Unavailable)?;
            self.block
                .write(sector + at * sectors(BATCH), &data)
                .map_err(device_error)?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.block.flush().map_err(device_error)
    }

    fn sectors(&self) -> u64 {
        self.geometry.sectors
    }
}

fn device_error(error: BlockError) -> DeviceError {
    match error {
        BlockError::OutOfRange => DeviceError::OutOfRange,
        BlockError::Device | BlockError::ReadOnly => DeviceError::Io,
        BlockError::Rpc(_) | BlockError::Gone => DeviceError::Unavailable,
    }
}
