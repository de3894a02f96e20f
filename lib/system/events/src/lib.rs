//! Events, and one wait over many of them.
//!
//! An [`Event`](Raiser) counts how often it was raised. It can be bound to a [`Word`], under a tag:
//! then it counts there, and the word knows which of its events were raised since somebody looked
//! last, in their order. Looking costs as much as there is to be told, however many events are
//! bound.
//!
//! # Protocol
//! - An event's lock guards where it counts: in itself, or in which slot of which word. A word's
//!   lock guards its slots and the row of those that were raised. Whoever takes both takes that of
//!   the event first. Nothing is allocated, freed or waited for under either.
//! - Each raise is counted before it is told, and is told once: what a look takes from a slot is
//!   gone from there.
//! - Who puts the first slot into an empty row rings. Who waits has read the number of rings before
//!   it found the row empty, so the ring comes after that and ends the wait.
//! - Only the first rings. So who leaves a row that is not empty, with events or without, wakes the
//!   next who waits.
//!
//! What locks and waits are is said by a [`Kit`]: the kernel's, or a model checker's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod chunks;
mod event;
mod ready;
#[cfg(test)]
mod tests;
mod word;

pub use event::{NotBound, Raiser, Waiter, event};
pub use ready::{CHUNK_BYTES, MOST_BOUND, Raised};
pub use word::{Fired, Word, WordOwner};

/// Locks, waits and payments.
pub trait Kit: 'static {
    /// A lock that is held for a few instructions.
    type Lock<T: Send>: Locked<T>;
    /// What is waited for.
    type Bell: Bell;
    /// Who pays for memory, as long as it is in use.
    type Payment: Send + Sync;

    /// Whether a step is left out on purpose. Only tests of the tests do.
    #[inline(always)]
    fn breaks(_step: Step) -> bool {
        false
    }
}

/// Something behind a lock.
pub trait Locked<T>: Send + Sync {
    /// Not locked.
    fn new(value: T) -> Self;
    /// Runs `body` with the lock.
    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R;
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// Somebody rang or woke, or nobody knows why.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// Whoever waits is to go.
    Interrupted,
}

/// A count of rings that can be waited for.
pub trait Bell: Send + Sync {
    /// Nobody has rung.
    fn new() -> Self;
    /// How often it was rung, modulo a large number.
    fn rings(&self) -> u32;
    /// Rings, and wakes one who waits.
    fn ring(&self);
    /// Wakes one who waits, without ringing.
    fn wake_another(&self);
    /// Waits until it is rung again, if it was rung `seen` times so far.
    fn wait(&self, seen: u32, deadline: Option<u64>) -> Slept;
}

/// A step that tests leave out, to show that they would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The first slot in an empty row rings.
    FirstRings,
    /// Rings are counted before the row is looked at.
    RingsBeforeLook,
    /// Who leaves something behind wakes the next.
    LeaverWakes,
    /// What a bound event has counted goes with it when the binding ends.
    CountReturns,
}
