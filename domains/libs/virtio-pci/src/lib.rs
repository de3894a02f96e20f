//! What drivers of virtio devices on the PCI bus have in common.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`window`] | device registers and shared memory as `lib/hardware/virtio` wants them |
//! | [`regions`] | the memory regions of a function, and its virtqueues |
//! | [`trouble`] | why a device cannot be used |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod regions;
mod trouble;
mod window;

pub use regions::{Ready, Regions, Ring};
pub use trouble::{Trouble, refuse};
pub use window::{Rings, Window};

/// Bytes of a page.
pub const PAGE: usize = 4096;
