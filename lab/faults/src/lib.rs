//! The fault campaign: clients that check every result call a block device through the real block
//! shadow, while the driver behind it is made to fail in every way that there is.
//!
//! The kernel runs the campaign itself, on the hosted platform and, with the feature `testing`, on
//! the bare machine; it is never part of the system that users run. What is to happen comes as a
//! plan, one fault a line ([`plan`]), and every run is reported as one line of JSON.
//!
//! - [`plan`]: faults, how they are drawn and written;
//! - `store`: the medium, which outlives every driver;
//! - `supervisor`: starts drivers and offers `Respawn` to the shadow;
//! - `clients`: the threads that write, read and check;
//! - `counts`: what a death must give back;
//! - `ledger`: the line of a run;
//! - `engine`: one run after the other;
//! - `files`: the same for file systems, `ext2`, `ramfs` and `keep`;
//! - `parts`: the domains that those are made of;
//! - `stages`: which ones, and how they begin;
//! - `reach`: how clients get at files behind them;
//! - `cycles`: crash and restart of one domain, again and again.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod plan;

#[cfg(target_os = "none")]
mod clients;
#[cfg(target_os = "none")]
mod counts;
#[cfg(target_os = "none")]
mod cycles;
#[cfg(target_os = "none")]
mod engine;
#[cfg(target_os = "none")]
mod files;
#[cfg(target_os = "none")]
mod ledger;
#[cfg(target_os = "none")]
mod parts;
#[cfg(target_os = "none")]
mod reach;
#[cfg(target_os = "none")]
mod stages;
#[cfg(target_os = "none")]
pub mod store;
#[cfg(target_os = "none")]
pub mod supervisor;

#[cfg(target_os = "none")]
pub use engine::{Ground, run};
#[cfg(target_os = "none")]
pub use line::Line;
