//! The framework: the machine half of Trefoil's trusted kernel.
//!
//! It owns everything that touches the processor and the memory directly and offers it to the rest
//! of the kernel through safe types. Modules that need the machine exist only when the crate is
//! built for the bare target; pure logic is built everywhere, so that `cargo test` reaches it.
//!
//! Start reading at [`boot`], which brings the machine from the boot loader to `kernel_main`.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(target_os = "none", feature(allocator_api))]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]
// On the host only the tests use the pure logic; its users exist on the machine alone.
#![cfg_attr(not(target_os = "none"), allow(dead_code))]

extern crate alloc;

#[cfg(target_os = "none")]
pub mod acpi;
#[cfg(target_os = "none")]
pub mod arch;
#[cfg(target_os = "none")]
pub mod boot;
#[cfg(target_os = "none")]
pub mod dma;
#[cfg(target_os = "none")]
pub mod fault;
pub mod io;
#[cfg(target_os = "none")]
pub mod irq;
#[cfg(target_os = "none")]
pub mod log;
pub mod mem;
#[cfg(target_os = "none")]
pub mod pci;
#[cfg(target_os = "none")]
pub mod power;
#[cfg(target_os = "none")]
pub mod selftest;
#[cfg(target_os = "none")]
pub mod smp;
pub mod spin;
#[cfg(target_os = "none")]
pub mod sync;
#[cfg(target_os = "none")]
pub mod task;
#[cfg(target_os = "none")]
pub mod time;
#[cfg(target_os = "none")]
pub mod user;
