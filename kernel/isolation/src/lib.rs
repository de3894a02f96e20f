//! Domains: how they are loaded, called, killed and cleared away.
//!
//! The promises are RedLeaf's five principles (RedLeaf, section 3), enforced: heap isolation,
//! exchangeable types, ownership tracking, interface validation, cross-domain call proxying. This
//! crate is trusted and platform-neutral: it knows the machine only through [`platform::Platform`]
//! and one per-CPU (or per-thread) block behind the GS register, whose first words are fixed
//! ([`abi::words`]).
//!
//! By subject, each a folder, from the lowest:
//!
//! - [`memory`]: the shared heap and its owner tables, images that are kept, and what is done when
//!   there is no memory.
//! - [`domain`]: control blocks, the table of all domains, events; [`domain::group`]: domains that
//!   share one budget; [`domain::account`] and [`domain::budget`]: what memory and threads a domain
//!   is charged with; `quota` says how much of the log it may fill; `queues`, where the dead and
//!   their drops wait for those who work on them.
//! - [`call`]: the call chain. Every call into a domain has a [`call::Record`] on the caller's
//!   stack, which is how a crash finds its way back; [`call::thread`] has the chain of the running
//!   thread, `end` the ways out of it. The macro [`proxy!`] writes a whole proxy; [`call::handle`]
//!   has the proxies themselves as objects, who holds them, and `drops` what happens when they are
//!   dropped.
//! - [`death`]: who is ended and why, the watchdog, the reaper that waits until nobody is inside,
//!   and the undertaker that then frees everything.
//! - [`load`]: from a signed image file to a running domain, and what the kernel offers it.
//!
//! In this order each knows those before it and none behind it, and below them lie [`platform`],
//! [`sync`] and [`lock`], so there are circles of files only inside a subject. `cargo xtask check`
//! holds the table of that (decision 0030). Where something below has to reach up, it is given what
//! to call: a wait asks `platform::Chain`, and [`set_platform`] says who answers.
#![no_std]
#![cfg_attr(target_os = "none", feature(rust_cold_cc))]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod call;
pub mod death;
pub mod domain;
pub mod load;
pub mod lock;
pub mod memory;
pub mod platform;
pub mod sync;

#[cfg(test)]
mod model;

pub use call::handle::{Proxy, ProxyEntry};
pub use call::{Method, Record};
pub use domain::{ControlBlock, Reason, State};
pub use platform::Platform;

#[doc(hidden)]
pub use abi;

/// Tells this crate which machine it runs on. Called once at boot, before anything else here.
///
/// # Panics
/// If it was called before.
pub fn set_platform(machine: &'static dyn Platform) {
    platform::set(machine, &death::Waits);
}
