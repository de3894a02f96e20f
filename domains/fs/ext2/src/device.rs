//! The block device behind its interface, as `lib/fs/ext2` wants it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use ext2::{BlockDevice, DeviceError, Group, SECTOR_SIZE};
use interfaces::{Block, BlockError, Extent, Geometry, Handle, RVec, RpcError};

/// Most bytes in one call to the device.
const BATCH: usize = 128 * 1024;

/// A disk. Clones share it.
#[derive(Clone)]
pub struct Disk {
    block: Arc<Handle<dyn Block>>,
    geometry: Geometry,
    /// What the last write was put together in: large memory of the shared heap is cleared when it
    /// is taken.
    last: Arc<Mutex<Option<RVec<u8>>>>,
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
            last: Arc::default(),
        })
    }

    /// Whether the device refuses writes.
    pub fn read_only(&self) -> bool {
        self.geometry.read_only
    }
}

impl Disk {
    /// Fills `buffer` from `sector` on. What the device put into it is not copied.
    ///
    /// # Errors
    /// Those of the device.
    pub fn fill(&self, sector: u64, buffer: RVec<u8>) -> Result<RVec<u8>, DeviceError> {
        let length = buffer.len();
        let buffer = self.block.read(sector, buffer).map_err(device_error)?;
        // The device is another domain: that it gives back as much as it got is not to be trusted.
        match buffer.len() == length {
            true => Ok(buffer),
            false => Err(DeviceError::Io),
        }
    }

    /// Memory of `length` bytes, with anything in it; `None` if there is none.
    fn buffer(&self, length: usize) -> Option<RVec<u8>> {
        let last = self.last.lock().take();
        match last {
            Some(last) if last.len() == length => Some(last),
            _ => RVec::zeroed(length).ok(),
        }
    }

    /// Writes what is put together in `data`, and keeps that for the next time.
    fn write_together(&self, extents: &[(u64, usize)], data: RVec<u8>) -> Result<(), DeviceError> {
        let result = self.block.write_extents(&places(extents)?, &data);
        *self.last.lock() = Some(data);
        result.map_err(device_error)
    }
}

/// Sectors in so many bytes.
fn sectors(bytes: usize) -> u64 {
    (bytes / SECTOR_SIZE) as u64
}

impl BlockDevice for Disk {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        for (part, at) in buf.chunks_mut(BATCH).zip(0..) {
            let buffer = RVec::filled(0, part.len()).map_err(|_| DeviceError::NoMemory)?;
            let buffer = self.fill(sector + at * sectors(BATCH), buffer)?;
            part.copy_from_slice(&buffer);
        }
        Ok(())
    }

    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        for (part, at) in buf.chunks(BATCH).zip(0..) {
            let data = RVec::from_slice(part).map_err(|_| DeviceError::NoMemory)?;
            self.block
                .write(sector + at * sectors(BATCH), &data)
                .map_err(device_error)?;
        }
        Ok(())
    }

    fn write_extents(&self, extents: &[(u64, usize)], data: &[u8]) -> Result<(), DeviceError> {
        if let [(sector, _)] = extents {
            return self.write(*sector, data);
        }
        let (places, data) = shared(extents, data)?;
        self.block
            .write_extents(&places, &data)
            .map_err(device_error)
    }

    fn write_pieces(
        &self,
        extents: &[(u64, usize)],
        pieces: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), DeviceError> {
        let length = extents.iter().map(|(_, length)| length).sum();
        if let Some(mut data) = self.buffer(length) {
            let mut rest = &mut data[..];
            for piece in pieces {
                let (now, later) = rest.split_at_mut(piece.len());
                now.copy_from_slice(piece);
                rest = later;
            }
            return self.write_together(extents, data);
        }
        // Where memory is short, one by one.
        for (sector, length) in extents {
            let end = sector + sectors(*length);
            let mut at = *sector;
            while at < end {
                let piece = pieces.next().ok_or(DeviceError::Io)?;
                self.write(at, piece)?;
                at += sectors(piece.len());
            }
        }
        Ok(())
    }

    fn write_groups(&self, groups: Vec<Group>) -> Result<(), DeviceError> {
        let sequence = match self.block.sequence() {
            Ok(sequence) => sequence,
            // No shadow: then a crash of this domain may leave a part of them.
            Err(BlockError::Unsupported) => {
                return groups.iter().try_for_each(|group| group.write_to(self));
            }
            Err(error) => return Err(device_error(error)),
        };
        for Group {
            extents,
            data,
            flush,
        } in groups
        {
            let (places, data) = shared(&extents, &data)?;
            sequence.add(places, data, flush).map_err(device_error)?;
        }
        sequence.carry_out().map_err(device_error)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.block.flush().map_err(device_error)
    }

    fn sectors(&self) -> u64 {
        self.geometry.sectors
    }
}

/// Extents and their content as objects that the device can be lent or given.
fn shared(extents: &[(u64, usize)], data: &[u8]) -> Result<(RVec<Extent>, RVec<u8>), DeviceError> {
    let data = RVec::from_slice(data).map_err(|_| DeviceError::NoMemory)?;
    Ok((places(extents)?, data))
}

/// Extents as an object that the device can be lent or given.
fn places(extents: &[(u64, usize)]) -> Result<RVec<Extent>, DeviceError> {
    let nowhere = Extent {
        sector: 0,
        bytes: 0,
    };
    let places = RVec::filled(nowhere, extents.len());
    let mut places = places.map_err(|_| DeviceError::NoMemory)?;
    for (place, (sector, length)) in places.iter_mut().zip(extents) {
        *place = Extent {
            sector: *sector,
            bytes: *length as u64,
        };
    }
    Ok(places)
}

fn device_error(error: BlockError) -> DeviceError {
    match error {
        BlockError::OutOfRange => DeviceError::OutOfRange,
        BlockError::Device | BlockError::ReadOnly | BlockError::Unsupported => DeviceError::Io,
        BlockError::Rpc(RpcError::NoMemory) => DeviceError::NoMemory,
        BlockError::Rpc(RpcError::DomainCrashed) => DeviceError::Lost,
        BlockError::Rpc(_) => DeviceError::Io,
        BlockError::Gone => DeviceError::Unavailable,
    }
}
