//! The framework: the machine half of Trefoil's trusted kernel.
//!
//! It owns everything that touches the processor and the memory directly and offers it to the rest
//! of the kernel through safe types. Modules that need the machine exist only when the crate is
//! built for the bare target; pure logic is built everywhere, so that `cargo test` reaches it.
//!
//! Start reading at `boot`, which brings the machine from the boot loader to `kernel_main`.
//!
//! | module | what |
//! | --- | --- |
//! | `boot` | what the loader says, and the way to `kernel_main` |
//! | `arch` | the interface of the machine, and x86-64 behind it |
//! | `mem` | frames and their metadata, page tables, kernel space, heap |
//! | `fault`, `log`, `power` | faults in ring 0, the kernel log, off and reset |
//! | `acpi`, `pci` | what the firmware says; stopping a device |
//! | `io`, `dma` | device registers and device memory as capabilities |
//! | `dma_ledger` | which memory a device may still know |
//! | `user` | ring 3: address spaces, registers, running until a trap |
//! | `task`, `sync`, `irq`, `smp`, `time` | threads, locks, interrupts, processors, clocks |
//! | `trace` | who is told what threads and interrupts do |
//! | `selftest` | the cases that run on the booted machine; beside `src`, as they are not trusted |

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
pub mod dma_ledger;
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
mod ring;
#[cfg(all(target_os = "none", feature = "selftest"))]
#[path = "../selftest/mod.rs"]
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
pub mod trace;
#[cfg(target_os = "none")]
pub mod user;
