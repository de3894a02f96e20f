//! The medium: a block device of the kernel's own, which stands in for a disk and outlives every
//! driver.
//!
//! Every driver is granted a [`Grant`] of its own. Starting the next driver resets the device:
//! from then on what an older one asks for is answered with a device error, as a thread of a dead
//! driver that has not left it yet would see a device that was reset under it. No client may ever
//! get to know of that.

use abi::RVec;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU32;
use interfaces::{Medium, MediumError};
use isolation::lock::Lock;
use isolation::platform::platform;

/// Bytes of a sector.
pub const SECTOR: usize = 512;

/// What is on the medium.
pub struct Store {
    data: Lock<Data>,
}

struct Data {
    bytes: Vec<u8>,
    /// The driver that may use it.
    generation: u32,
    /// Requests since [`Store::trouble`].
    requests: u32,
    trouble: Option<Trouble>,
}

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    /// Which request, from 1.
    pub request: u32,
    /// Nanoseconds that it takes; 0: the medium answers that it is gone.
    pub delay: u64,
}

impl Store {
    /// An empty medium.
    pub fn new(sectors: usize) -> Self {
        let data = Data {
            bytes: alloc::vec![0; sectors * SECTOR],
            generation: 0,
            requests: 0,
            trouble: None,
        };
        Store {
            data: Lock::new(data),
        }
    }

    /// Resets the device; what the next driver is granted.
    pub fn reset(&'static self) -> Grant {
        let mut data = self.data.lock();
        data.generation += 1;
        Grant {
            store: self,
            generation: data.generation,
        }
    }

    /// Has a request go wrong, or none.
    pub fn trouble(&self, trouble: Option<Trouble>) {
        let mut data = self.data.lock();
        (data.requests, data.trouble) = (0, trouble);
    }

    /// Whether the request that was to go wrong has been made.
    pub fn was_troubled(&self) -> bool {
        let data = self.data.lock();
        data.trouble
            .is_some_and(|trouble| data.requests >= trouble.request)
    }
}

/// The right of one driver to use the medium until the next one is started.
pub struct Grant {
    store: &'static Store,
    generation: u32,
}

static NOBODY: AtomicU32 = AtomicU32::new(0);

/// Waits for `nanoseconds`, blocked.
pub fn pause(nanoseconds: u64) {
    let until = platform().now() + nanoseconds;
    while platform().now() < until {
        platform().wait(&NOBODY, 0, Some(until));
    }
}

impl Grant {
    /// Does one request, late or never if it is its turn.
    fn request<R>(
        &self,
        sector: u64,
        len: usize,
        work: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, MediumError> {
        let trouble = {
            let mut data = self.store.data.lock();
            data.requests += 1;
            let requests = data.requests;
            data.trouble
                .filter(|trouble| trouble.request == requests && data.generation == self.generation)
        };
        match trouble {
            Some(Trouble { delay: 0, .. }) => return Err(MediumError::Gone),
            Some(Trouble { delay, .. }) => pause(delay),
            None => {}
        }
        let mut data = self.store.data.lock();
        if data.generation != self.generation {
            return Err(MediumError::Reset);
        }
        let start = usize::try_from(sector)
            .ok()
            .and_then(|sector| sector.checked_mul(SECTOR));
        let range = start.and_then(|start| Some(start..start.checked_add(len)?));
        let bytes = range.and_then(|range| data.bytes.get_mut(range));
        bytes.map(work).ok_or(MediumError::OutOfRange)
    }
}

impl Medium for Grant {
    fn sectors(&self) -> Result<u64, MediumError> {
        Ok((self.store.data.lock().bytes.len() / SECTOR) as u64)
    }

    fn read(&self, sector: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, MediumError> {
        let len = buffer.len();
        self.request(sector, len, |bytes| buffer.copy_from_slice(bytes))?;
        Ok(buffer)
    }

    fn write(&self, sector: u64, data: &RVec<u8>) -> Result<(), MediumError> {
        self.request(sector, data.len(), |bytes| bytes.copy_from_slice(data))
    }

    fn flush(&self) -> Result<(), MediumError> {
        match self.store.data.lock().generation == self.generation {
            true => Ok(()),
            false => Err(MediumError::Reset),
        }
    }
}
