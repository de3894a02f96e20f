//! The kernel's policies: which thread runs next, which page is handed out next.
//!
//! They are safe code behind traits of the framework, which checks every answer. A mistake here
//! makes the system slow or unfair, but breaks no memory.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod frames;
#[cfg(target_os = "none")]
mod scheduler;

#[cfg(target_os = "none")]
pub use frames::BuddyFrames;
#[cfg(target_os = "none")]
pub use scheduler::KernelScheduler;
