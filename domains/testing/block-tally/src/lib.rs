//! A block device that counts what passes through it: the example of
//! `docs/guide/write-a-domain.md`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use domain_rt::sync::Mutex;
use interfaces::{
    Block, BlockError, BlockQueue, Counts, Extent, Geometry, Handle, RVec, Raiser, RpcResult,
    Tally, WriteSequence,
};

/// Bytes of a sector.
const SECTOR: usize = 512;

/// Makes the two objects that this domain offers. They share the counts.
///
/// # Errors
/// There is no memory for them.
pub fn start(device: Handle<dyn Block>) -> RpcResult<(Handle<dyn Block>, Handle<dyn Tally>)> {
    let counts = Arc::new(Mutex::new(Counts {
        read: 0,
        written: 0,
    }));
    let disk = Disk {
        device,
        counts: counts.clone(),
    };
    Ok((Handle::new(disk)?, Handle::new(Counter(counts))?))
}

/// The device that is passed on.
struct Disk {
    device: Handle<dyn Block>,
    counts: Arc<Mutex<Counts>>,
}

impl Block for Disk {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        self.device.geometry()
    }

    // The lock is not held during the call: that could take long.
    fn read(&self, sector: u64, buffer: RVec<u8>) -> Result<RVec<u8>, BlockError> {
        let buffer = self.device.read(sector, buffer)?;
        self.counts.lock().read += (buffer.len() / SECTOR) as u64;
        Ok(buffer)
    }

    fn write(&self, sector: u64, data: &RVec<u8>) -> Result<(), BlockError> {
        self.device.write(sector, data)?;
        self.counts.lock().written += (data.len() / SECTOR) as u64;
        Ok(())
    }

    fn write_extents(&self, extents: &RVec<Extent>, data: &RVec<u8>) -> Result<(), BlockError> {
        self.device.write_extents(extents, data)?;
        self.counts.lock().written += (data.len() / SECTOR) as u64;
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }

    // Whoever asks then uses the calls above, so all is counted.
    fn sequence(&self) -> Result<Handle<dyn WriteSequence>, BlockError> {
        Err(BlockError::Unsupported)
    }

    fn open(&self, _: Option<Handle<dyn Raiser>>) -> Result<Handle<dyn BlockQueue>, BlockError> {
        Err(BlockError::Unsupported)
    }
}

/// Tells the counts.
struct Counter(Arc<Mutex<Counts>>);

impl Tally for Counter {
    fn counts(&self) -> RpcResult<Counts> {
        Ok(*self.0.lock())
    }
}
