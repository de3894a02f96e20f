//! A small domain to copy: random numbers whose bytes are those of the source behind it, inverted.
//!
//! To make a domain of your own: copy this folder, choose names in `Cargo.toml` and in the `.idl`
//! file, say there what you want and what you offer, write [`start`], and add a block to a manifest
//! in `images/`:
//! ```toml
//! [domain.inverted]
//! image = "template"
//! grants = { random = "kernel.random" }
//! ```
//! `docs/guide/write-a-domain.md` shows all of this step by step. No manifest starts the template
//! itself.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{Handle, RVec, Random, RandomError, RpcResult};

/// Called once, when the domain starts, with what the manifest grants it. What it returns is what
/// it offers.
///
/// # Errors
/// An error here means that the domain does not start; `init` logs it.
pub fn start(random: Handle<dyn Random>) -> RpcResult<Handle<dyn Random>> {
    domain_rt::log!("ready");
    Handle::new(Inverted { random })
}

/// The object behind the offered interface. It is called from many threads at once; whatever
/// changes in it goes behind a `domain_rt::sync::Mutex`.
struct Inverted {
    random: Handle<dyn Random>,
}

impl Random for Inverted {
    fn is_ready(&self) -> RpcResult<bool> {
        self.random.is_ready()
    }

    // A buffer that comes by value is ours: it can be changed, and is given back. What comes by
    // reference is only lent for the call: it can be read, and not be kept.
    fn fill(&self, buffer: RVec<u8>) -> Result<RVec<u8>, RandomError> {
        let mut buffer = self.random.fill(buffer)?;
        buffer.iter_mut().for_each(|byte| *byte = !*byte);
        Ok(buffer)
    }
}
