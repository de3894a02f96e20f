//! A place where threads wait for a condition that other threads or interrupts make true.

use core::sync::atomic::{AtomicU32, Ordering};

use super::Sleepable;
use crate::task::{self, WaitResult};

/// Threads that wait until a condition holds.
///
/// Whoever changes the condition calls a wake function afterwards; the queue counts these calls,
/// and a waiter sleeps only if none came since before it looked, so no wake-up is lost.
pub struct WaitQueue {
    events: AtomicU32,
}

impl WaitQueue {
    /// A queue without waiters.
    pub const fn new() -> Self {
        Self {
            events: AtomicU32::new(0),
        }
    }

    /// Sleeps until `ready` returns a value. Ends early, without one, when the deadline (in
    /// nanoseconds since boot) passes or the thread is interrupted.
    pub fn wait_until<R>(
        &self,
        _token: Sleepable,
        deadline_ns: Option<u64>,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R, WaitResult> {
        loop {
            let seen = self.events.load(Ordering::SeqCst);
            if let Some(value) = ready() {
                return Ok(value);
            }
            match task::wait_on(&self.events, seen, deadline_ns) {
                WaitResult::Woken | WaitResult::Mismatch => {}
                ended => return Err(ended),
            }
        }
    }

    /// Lets one waiter look at its condition again. Usable in interrupt context.
    pub fn wake_one(&self) {
        self.events.fetch_add(1, Ordering::SeqCst);
        task::wake(&self.events, 1);
    }

    /// Lets all waiters look at their condition again. Usable in interrupt context.
    pub fn wake_all(&self) {
        self.events.fetch_add(1, Ordering::SeqCst);
        task::wake(&self.events, usize::MAX);
    }
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}
