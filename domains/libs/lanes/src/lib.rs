//! What drivers of disks have in common: the block queue that is open, and its requests on their
//! way to the device and back.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`lane`] | the queue that is open: its requests and its memory objects |
//! | [`state`] | that and what all lines have, without the lock that guards it |
//! | [`lanes`] | the lock, and the fence |
//! | [`check`] | what is wrong with a request, as far as that can be said at once |
//! | [`job`] | a request that the device gets |
//! | [`room`] | the calls that hold pages and release them, for a batch of jobs at once |
//! | [`desk`] | the jobs of a line, each in a place of its own |
//! | [`submitter`] | the queue as an object that its submitter calls |
//! | [`start`] | what is done at the start of a driver, and by its threads |
//!
//! # Protocol
//! A driver has one [`Lanes`], and *lines* of its own: queues of the device, each with a lock. What
//! is submitted is given to any line that has room; the lane keeps barriers over all of them.
//!
//! ```text
//! submit -> exchange -> Job, which holds pages -> the device -> Desk::end
//!                                    completions <- exchange <-
//! ```
//! - [`Lanes::exchange`] notes how jobs have ended, takes in what is submitted, and gives out jobs,
//!   under the lock of the line that has them: the lock of the lanes is the inner one. It gives as
//!   many as there is room for; the rest waits. So who finds a line full may leave it: who makes
//!   room there looks for what waits by the same call.
//! - Each job that was taken comes back, once, with its pages released. The fence waits for that.
//! - When a device was [given up](Lanes::give_up) nothing is taken any more.
//! - Who has ended jobs says [`Lanes::raise`] when he has no lock.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod check;
mod desk;
mod job;
mod lane;
mod lanes;
mod room;
pub mod start;
mod state;
mod submitter;
#[cfg(test)]
mod tests;

pub use desk::Desk;
pub use job::Job;
pub use lanes::{Lanes, PATIENCE};
pub use room::Room;
pub use state::Batch;
pub use submitter::{Device, open};
