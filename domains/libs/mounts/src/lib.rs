//! How a personality uses a file system that may be restarted: by its present instance, with what
//! is open held, questions asked again and changes made once.
//!
//! - [`Mount`]: its present instance, and how it is replaced;
//! - [`Known`]: names lead to numbers, and who acts by a number means what the name led to;
//! - [`Seat`]: a hold, which passes from instance to instance;
//! - [`Lanes`]: changes that must not be made twice.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod known;
mod lanes;
mod mount;
mod seat;

pub use known::Known;
pub use lanes::Lanes;
pub use mount::{Live, Mount};
pub use seat::Seat;
