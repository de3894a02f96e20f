//! The work that `cargo xtask bench schedule` times, the same on every system: threads that wake
//! each other, send each other messages, give way, and spin.
//!
//! - [`System`] and [`Shared`] are what a system brings: time, threads, a lock with places to wait.
//! - [`team`] starts threads together; [`work`] has the loads; [`figures`] computes what is
//!   reported.
//! - [`Command`] is what the programs on both systems understand, and carries it out.
//!
//! Every load takes its times inside, by the system's own clock.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod command;
pub mod figures;
#[cfg(test)]
mod host;
pub mod team;
pub mod work;

pub use command::{Command, Part, USAGE, parse_line};

/// A system under the ruler.
pub trait System: 'static {
    /// Why a thread does not start.
    type Error;
    /// Data that several threads change.
    type Shared<T: Send + 'static>: Shared<T>;
    /// Nanoseconds of a clock that only goes forward, the same for all programs.
    fn now() -> u64;
    /// Sleeps for so many nanoseconds.
    fn sleep(nanoseconds: u64);
    /// Lets another thread run.
    fn yield_now();
    /// Runs `body` on a new thread.
    ///
    /// # Errors
    /// The system's.
    fn spawn(body: impl FnOnce() + Send + 'static) -> Result<(), Self::Error>;
}

/// Where a thread waits until somebody has changed the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// For those who take.
    Taking,
    /// For those who give.
    Giving,
}

/// Data behind a lock with two condition variables, one for each [`Place`].
pub trait Shared<T>: Send + Sync + 'static {
    /// With this data.
    fn new(data: T) -> Self;
    /// Tries `step` under the lock until it gives something, and waits at `place` in between.
    fn until<R>(&self, place: Place, step: impl FnMut(&mut T) -> Option<R>) -> R;
    /// Changes the data under the lock, without waiting for anything but that.
    fn change(&self, mut change: impl FnMut(&mut T)) {
        self.until(Place::Giving, |data| {
            change(data);
            Some(())
        });
    }
    /// Wakes one thread that waits at `place`.
    fn wake_one(&self, place: Place);
    /// Wakes every thread that waits at `place`.
    fn wake_all(&self, place: Place);
}
