//! The kernel's own objects behind `abi/interfaces/system.idl`: loader, images, domains, monitor,
//! traces of calls, memory objects, events, timers, random numbers, memory, what the first domain
//! leaves to its next instance.
//!
//! They are ordinary interface objects whose domain is the kernel, so that calls to them go through
//! the same proxies as all others. Everything here is safe code over `isolation`. The hosted
//! platform uses it, too.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "audit")]
mod auditor;
pub mod event;
mod legacy;
mod loader;
mod memory;
mod monitor;
pub mod random;
pub mod timer;
mod tracer;
pub mod vmo;

#[cfg(feature = "audit")]
pub use auditor::{Auditor, lacks_memory};
pub use event::KernelEvents;
pub use legacy::{Bequest, Left};
pub use loader::ImageLoader;
pub use memory::KernelMemory;
pub use monitor::{Control, KernelMonitor, Machine};
pub use random::{KernelRandom, Noise};
pub use tracer::KernelTracer;
pub use vmo::KernelObjects;

/// Whether a test wants there to be no memory for whoever asks now.
#[cfg(not(feature = "audit"))]
pub const fn lacks_memory() -> bool {
    false
}
