//! A block driver that does everything wrong that an update can meet, when it is told to: see
//! `odd-disk.idl`. Where it is not told to it is an empty disk of 1 MiB that takes any state over
//! and forgets it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::sync::Arc;
use core::hint::black_box;
use domain_rt::log;
use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{
    Block, BlockError, BlockQueue, Estate, Geometry, HandOver, HandOverError, Handle, PciDevice,
    RRef, RVec, Raiser, RpcError, RpcResult, Text,
};

/// Sectors that it claims to have.
const SECTORS: u64 = 2048;

/// Makes the disk, or does not.
///
/// # Errors
/// [`RpcError::Refused`] if it is told to.
pub fn start(
    device: Option<Handle<dyn PciDevice>>,
    options: RVec<u8>,
) -> RpcResult<(Handle<dyn Block>, Handle<dyn HandOver>)> {
    let ways = Arc::new(Ways(String::from_utf8_lossy(&options).into_owned()));
    // A driver that has memory for its device, and has not come to reset it.
    let dma = device
        .as_ref()
        .map(|device| device.dma().map(|dma| dma.allocate(100)));
    if let Some(Ok(Err(error))) = &dma {
        log!("no memory for the device: {error:?}");
    }
    if ways.misbehave("start=") {
        log!("it does not want to");
        return Err(RpcError::Refused);
    }
    let disk = Odd(ways.clone());
    Ok((Handle::new(disk)?, Handle::new(Odd(ways))?))
}

/// What it was told.
struct Ways(String);

impl Ways {
    /// Does at `place` what it was told to; whether that is to refuse.
    fn misbehave(&self, place: &str) -> bool {
        let mut words = self.0.split_whitespace();
        match words.find_map(|word| word.strip_prefix(place)) {
            Some("panic") => panic!("told to panic at {place}"),
            Some("spin") => loop {
                black_box(place);
            },
            Some("hang") => wait_for_ever(),
            Some("refuse") => true,
            _ => false,
        }
    }
}

/// Waits until somebody on whose behalf it waits is ended.
fn wait_for_ever() -> bool {
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let (mut guard, mut wait) = never.wait(lock.lock());
    while wait != Wait::Interrupted {
        (guard, wait) = never.wait(guard);
    }
    drop(guard);
    true
}

struct Odd(Arc<Ways>);

impl Odd {
    fn serve(&self) -> Result<(), BlockError> {
        match self.0.misbehave("serve=") {
            true => Err(BlockError::Device),
            false => Ok(()),
        }
    }

    fn agree(&self, place: &str) -> Result<(), HandOverError> {
        match self.0.misbehave(place) {
            true => Err(HandOverError::Refused(Text::new("told to refuse it"))),
            false => Ok(()),
        }
    }
}

impl Block for Odd {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        self.serve()?;
        Ok(Geometry {
            sectors: SECTORS,
            read_only: false,
        })
    }

    fn open(&self, _: Option<Handle<dyn Raiser>>) -> Result<Handle<dyn BlockQueue>, BlockError> {
        Err(BlockError::Unsupported)
    }
}

impl HandOver for Odd {
    fn give(&self) -> Result<RRef<Estate>, HandOverError> {
        self.agree("give=")?;
        Ok(RRef::new(Estate {
            kind: Text::new("nothing"),
            version: 1,
            head: RVec::from_slice(&[])?,
            runs: [const { None }; 64],
        })?)
    }

    fn check(&self, _estate: &RRef<Estate>) -> Result<(), HandOverError> {
        self.agree("check=")
    }

    fn take(&self, _estate: RRef<Estate>) -> Result<(), HandOverError> {
        self.agree("take=")
    }
}
