//! Domains: how they are loaded, called, killed and cleared away.
//!
//! The promises are RedLeaf's five principles (RedLeaf, section 3), enforced: heap isolation,
//! exchangeable types, ownership tracking, interface validation, cross-domain call proxying. This
//! crate is trusted and platform-neutral: it knows the machine only through [`platform::Platform`]
//! and one per-CPU (or per-thread) block behind the GS register, whose first three words are fixed
//! ([`thread`]).
//!
//! By subject, each a folder:
//!
//! - [`call`]: the call chain. Every call into a domain has a [`call::Record`] on the caller's
//!   stack, which is how a crash finds its way back. The macro [`proxy!`] writes a whole proxy;
//!   [`call::handle`] has the proxies themselves as objects, who holds them, and what happens when
//!   they are dropped.
//! - [`domain`]: control blocks, the table of all domains, events; [`domain::group`]: domains that
//!   share one budget; [`domain::account`]: what memory and threads a domain is charged with;
//!   `quota` says how much of the log it may fill.
//! - [`memory`]: the shared heap and its owner tables, who may own how much, and what is done when
//!   there is no memory.
//! - [`death`]: the crash itself, the watchdog, the reaper that waits until nobody is inside, and
//!   the undertaker that then frees everything.
//! - [`load`]: from a signed image file to a running domain, and what the kernel offers it.
//!
//! Below them lie [`lock`], [`sync`] and [`platform`]; that one looks up at them only for when a
//! wait is to end, and for types that it passes on. The subjects need each other: a call asks
//! whether its domain is dead, a death goes through calls.
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
