//! Seeded work on files whose outcome can be computed again: what a system does before its power is
//! cut, and what may be found afterwards.
//!
//! - [`Workload`] draws one [`Operation`] after the other from a seed, all of which succeed on a
//!   file system with a few megabytes of room. The same seed gives the same operations everywhere.
//! - [`Model`] is what the files should be after each of them.
//! - [`History`] has all these moments, and says whether a tree is what a crash may leave.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod history;
mod model;
mod operation;
mod random;

pub use history::{Acknowledged, Found, History, Tree};
pub use model::{Model, Node};
pub use operation::{Operation, Workload};
pub use random::Random;
