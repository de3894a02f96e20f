//! Domains: how they are loaded, called, killed and cleared away.
//!
//! The promises are RedLeaf's five principles (RedLeaf, section 3), enforced: heap isolation,
//! exchangeable types, ownership tracking, interface validation, cross-domain call proxying. This
//! crate is trusted and platform-neutral: it knows the machine only through [`platform::Platform`]
//! and one per-CPU (or per-thread) block behind the GS register, whose first three words are fixed
//! ([`thread`]).
//!
//! - [`call`]: the call chain. Every call into a domain has a [`call::Record`] on the caller's
//!   stack, which is how a crash finds its way back. The macro [`proxy!`] writes a whole proxy.
//! - [`handle`]: the proxies themselves as objects, who holds them, and what happens when they are
//!   dropped.
//! - [`drops`]: where the drop of an object runs whose last handle went elsewhere.
//! - [`domain`]: control blocks, the table of all domains, events.
//! - [`group`]: domains that share one budget.
//! - [`account`]: what memory and threads a domain is charged with.
//! - [`heap`]: the shared heap and its owner tables; [`owner`]: who may be looked for in them;
//!   [`budget`] says how much of it a domain may own.
//! - [`relief`]: what is done when there is no memory: domains that keep some for speed alone are
//!   asked for it.
//! - [`loader`]: from a signed image file to a running domain; [`elf`] and [`verify`] are its
//!   parts.
//! - [`kill`]: how a domain dies: the crash itself, the watchdog, and the reaper that waits until
//!   nobody is inside; [`undertaker`] then frees everything.
//! - [`entry`]: the functions that the kernel offers to the runtime in every domain; [`quota`] says
//!   how much of the log a domain may fill.
#![no_std]
#![cfg_attr(target_os = "none", feature(rust_cold_cc))]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod account;
pub mod budget;
pub mod call;
pub mod domain;
mod drops;
pub mod elf;
pub mod entry;
pub mod group;
pub mod handle;
pub mod heap;
mod kept;
pub mod kill;
pub mod loader;
pub mod lock;
pub mod owner;
pub mod platform;
mod quota;
pub mod relief;
pub mod sync;
mod text;
pub mod thread;
mod undertaker;
pub mod verify;
mod words;

#[cfg(test)]
mod model;

pub use call::{Method, Record};
pub use domain::{ControlBlock, Reason, State};
pub use handle::{Proxy, ProxyEntry};
pub use platform::Platform;

#[doc(hidden)]
pub use abi;
