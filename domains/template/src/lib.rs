//! A small domain to copy: a block device that inverts every byte of the device behind it.
//!
//! To make a domain of your own: copy this folder, choose names in `Cargo.toml` and in the `.idl`
//! file, say there what you want and what you offer, write [`start`], and add a block to a manifest
//! in `images/`:
//! ```toml
//! [domain.inverted]
//! image = "template"
//! grants = { device = "block" }
//! ```
//! `docs/guide/write-a-domain.md` shows all of this step by step. No manifest starts the template
//! itself.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{Block, BlockError, BlockQueue, Geometry, Handle, RVec, Raiser, RpcResult};

/// Called once, when the domain starts, with what the manifest grants it. What it returns is what
/// it offers.
///
/// # Errors
/// An error here means that the domain does not start; `init` logs it.
pub fn start(device: Handle<dyn Block>) -> RpcResult<Handle<dyn Block>> {
    domain_rt::log!("ready");
    Handle::new(Inverted { device })
}

/// The object behind the offered interface. It is called from many threads at once; whatever
/// changes in it goes behind a `domain_rt::sync::Mutex`.
struct Inverted {
    device: Handle<dyn Block>,
}

impl Block for Inverted {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        self.device.geometry()
    }

    // A buffer that comes by value is ours: it can be changed, and is given back.
    fn read(&self, sector: u64, buffer: RVec<u8>) -> Result<RVec<u8>, BlockError> {
        let mut buffer = self.device.read(sector, buffer)?;
        invert(&mut buffer);
        Ok(buffer)
    }

    // Data that comes by reference is only lent for the call: it cannot be changed, so it is
    // copied.
    fn write(&self, sector: u64, data: &RVec<u8>) -> Result<(), BlockError> {
        let mut inverted = RVec::from_slice(data)?;
        invert(&mut inverted);
        self.device.write(sector, &inverted)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }

    fn open(&self, _: Option<Handle<dyn Raiser>>) -> Result<Handle<dyn BlockQueue>, BlockError> {
        Err(BlockError::Unsupported)
    }
}

fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}
