//! A block driver for the fault campaign: it does what drivers do, so that there is much to fail.
//!
//! Requests are carried out by a thread of the driver's own, as interrupts would have it, one after
//! the other; reads go through a cache with checksums. Who looks for answers finds out if the
//! device does not answer: then it is gone. What was acknowledged is on the medium, so a new
//! instance starts with an empty cache.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cache;
mod queue;

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::{log, thread};
use interfaces::{
    Block, BlockError, BlockQueue, Geometry, Handle, Medium, MediumError, RVec, Raiser, RpcError,
    RpcResult,
};
use queue::{Jobs, Queue};

/// Makes the driver.
///
/// # Errors
/// [`RpcError::Refused`] if an option is not understood; [`RpcError::NoMemory`].
pub fn start(medium: Handle<dyn Medium>, options: RVec<u8>) -> RpcResult<Handle<dyn Block>> {
    let wishes = wishes(&options).ok_or_else(|| {
        log!("options: expected ballast=KIB or patience=MS");
        RpcError::Refused
    })?;
    let medium = Arc::new(medium);
    let jobs = Arc::new(Jobs::new(wishes.patience));
    let (worker, device) = (jobs.clone(), medium.clone());
    thread::spawn("worker", move || worker.work(&device))?;
    Handle::new(Disk {
        medium,
        jobs,
        _ballast: (0..wishes.ballast).map(|_| alloc::vec![0; 1024]).collect(),
    })
}

/// What the options say.
struct Wishes {
    /// KiB that are never used.
    ballast: usize,
    /// How long a request may take, in milliseconds.
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
    medium: Arc<Handle<dyn Medium>>,
    jobs: Arc<Jobs>,
    _ballast: Vec<Vec<u8>>,
}

impl Disk {
    fn sectors(&self) -> Result<u64, BlockError> {
        self.medium.sectors().map_err(|error| match error {
            MediumError::Rpc(error) => BlockError::Rpc(error),
            MediumError::Gone => BlockError::Gone,
            _ => BlockError::Device,
        })
    }
}

impl Block for Disk {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        Ok(Geometry {
            sectors: self.sectors()?,
            read_only: false,
        })
    }

    fn open(
        &self,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        let sectors = self.sectors()?;
        let id = self.jobs.open(raiser)?;
        let jobs = self.jobs.clone();
        Ok(Handle::new(Queue { jobs, id, sectors })?)
    }
}
