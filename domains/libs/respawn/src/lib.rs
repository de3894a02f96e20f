//! Calls to a domain that is started again when it crashes: the one way to use a `Respawn`.
//!
//! - [`fetch`]: an instance other than the one that failed, and one that answers;
//! - [`Absent`]: why there is none, and what a caller is told then;
//! - [`Client`]: the present instance, shared by all threads of a domain;
//! - [`Buffer`]: what a call fills, for each of its attempts;
//! - [`Slot`]: the present instance, for who has a lock around it anyway;
//! - [`Patience`]: how long one waits for what has served and is refused;
//! - [`until_answered`]: the rule that they share.
//!
//! # The rule
//! A call that ends with an error for which [`Failure::is_gone`] holds
//! is made again on the next instance, [`ATTEMPTS`] times in all. Every other error is an answer.
//! If no instance is left, the caller gets [`Failure::gone`].
//!
//! Nobody here knows whether a call may be made twice. Who passes one to [`Client::call`] or
//! [`Slot::call`] says that it may.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffer;
mod client;
mod fetch;
mod patience;
mod slot;
#[cfg(test)]
mod tests;

use interfaces::Failure;

pub use buffer::Buffer;
pub use client::Client;
pub use fetch::{Absent, Live, fetch};
pub use patience::Patience;
pub use slot::Slot;

/// How often a call is made, the first time included.
pub const ATTEMPTS: u32 = 8;

/// Runs `attempt` until it gives an answer, [`ATTEMPTS`] times at most. It gives `None` if the
/// instance that it called is gone.
pub fn until_answered<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    (0..ATTEMPTS).find_map(|_| attempt())
}

/// What the caller is told when the last attempt has failed.
fn exhausted<E: Failure>(what: &str) -> E {
    report(format_args!(
        "gave a call up after {ATTEMPTS} instances of the {what}"
    ));
    E::gone()
}

/// Writes a line to the log. Tests run on the host, where there is none.
fn report(line: core::fmt::Arguments<'_>) {
    #[cfg(target_os = "none")]
    domain_rt::log!("{line}");
    #[cfg(not(target_os = "none"))]
    let _ = line;
}
