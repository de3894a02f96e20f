//! Virtio 1.2 for drivers, as far as it is pure logic.
//!
//! Read sections 2.1 (status), 2.7 (split queues), 4.1.4 (PCI), 5.1 (network device) and 5.2 (block
//! device) of the specification "Virtual I/O Device (VIRTIO) Version 1.2" first. Nothing here
//! touches a machine: memory that a device shares comes in as [`queue::Memory`], device registers
//! as [`device::Registers`], so that all of it runs on the host against devices that lie.
//!
//! - [`capability`]: where a PCI function keeps its virtio registers;
//! - [`device`]: reset, feature negotiation, queue set-up;
//! - [`queue`]: a split virtqueue;
//! - [`block`]: requests and configuration of a block device;
//! - [`net`]: headers and configuration of a network device.
//!
//! A device is not trusted: whatever it writes is checked before it is used, and everything that
//! the driver needs to know of its own requests is kept where the device cannot write.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod block;
pub mod capability;
pub mod device;
pub mod net;
pub mod queue;
#[cfg(test)]
mod simulated;
