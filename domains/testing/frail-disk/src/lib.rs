//! A block driver for the fault campaign: it does what drivers do, so that there is much to fail.
//!
//! Reads go through a cache with checksums. Writes are queued and carried out by a thread of the
//! driver's own, as interrupts would do; the caller waits for that, but not for ever: a device that
//! does not answer is gone. What was acknowledged is on the medium, so a new instance starts with
//! an empty cache.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cache;
mod queue;

use alloc::sync::Arc;
use alloc::vec::Vec;
use cache::{Cache, SECTOR};
use domain_rt::sync::Mutex;
use domain_rt::{log, thread};
use interfaces::{
    Block, BlockError, BlockQueue, Geometry, Handle, RVec, Raiser, RpcError, RpcResult,
};
use queue::Queue;

/// Makes the driver.
///
/// # Errors
/// [`RpcError::Refused`] if an option is not understood; [`RpcError::NoMemory`].
pub fn start(medium: Handle<dyn Block>, options: RVec<u8>) -> RpcResult<Handle<dyn Block>> {
    let wishes = wishes(&options).ok_or_else(|| {
        log!("options: expected ballast=KIB or patience=MS");
        RpcError::Refused
    })?;
    let medium = Arc::new(medium);
    let queue = Arc::new(Queue::new(wishes.patience));
    let (worker, device) = (queue.clone(), medium.clone());
    thread::spawn("writer", move || worker.work(&device))?;
    Handle::new(Disk {
        medium,
        queue,
        cache: Mutex::new(Cache::new()),
        _ballast: (0..wishes.ballast).map(|_| alloc::vec![0; 1024]).collect(),
    })
}

/// What the options say.
struct Wishes {
    /// KiB that are never used.
    ballast: usize,
    /// How long a write may take, in milliseconds.
    patience: u64,
}

fn wishes(options: &[u8]) -> Option<Wishes> {
    let mut wishes = Wishes {
        ballast: 0,
        patience: 60,
    };
    for word in core::str::from_utf8(options).ok()?.split_ascii_whitespace() {
        match word.split_once('=')? {
            ("ballast", number) => wishes.ballast = number.parse().ok()?,
            ("patience", number) => wishes.patience = number.parse().ok()?,
            _ => return None,
        }
    }
    Some(wishes)
}

struct Disk {
    medium: Arc<Handle<dyn Block>>,
    queue: Arc<Queue>,
    cache: Mutex<Cache>,
    _ballast: Vec<Vec<u8>>,
}

impl Block for Disk {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        self.medium.geometry()
    }

    fn read(&self, sector: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, BlockError> {
        if !buffer.len().is_multiple_of(SECTOR) {
            return Err(BlockError::OutOfRange);
        }
        if self.cache.lock().read(sector, &mut buffer) {
            return Ok(buffer);
        }
        let seen = self.cache.lock().writes();
        let buffer = self.medium.read(sector, buffer)?;
        self.cache.lock().fill(sector, &buffer, seen);
        Ok(buffer)
    }

    fn write(&self, sector: u64, data: &RVec<u8>) -> Result<(), BlockError> {
        self.write_part(sector, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.medium.flush()
    }

    fn open(&self, _: Option<Handle<dyn Raiser>>) -> Result<Handle<dyn BlockQueue>, BlockError> {
        Err(BlockError::Unsupported)
    }
}

impl Disk {
    fn write_part(&self, sector: u64, data: &[u8]) -> Result<(), BlockError> {
        if !data.len().is_multiple_of(SECTOR) {
            return Err(BlockError::OutOfRange);
        }
        // Before and after: what is read meanwhile must not stay.
        self.cache.lock().forget(sector, data.len() / SECTOR);
        self.queue.write(sector, data)?;
        self.cache.lock().write(sector, data);
        Ok(())
    }
}
