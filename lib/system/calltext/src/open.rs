//! Calls that have begun and are not over.

use alloc::collections::VecDeque;

/// Most calls that are waited for: the ends of some never come, as their callers have died.
pub const MOST_OPEN: usize = 1024;

/// The beginning of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// When, in nanoseconds.
    pub begun: u64,
    /// Who called.
    pub caller: u32,
    /// Who was called.
    pub callee: u32,
    /// The number of the interface.
    pub interface: u64,
    /// The number of the method.
    pub method: u32,
    /// Numbers of the arguments.
    pub arguments: [u64; 4],
}

/// Calls that have begun, the oldest first.
#[derive(Debug, Default)]
pub struct Open(VecDeque<Traced>);

impl Open {
    /// A call begins. If that is one too many, the oldest is given up, and returned.
    pub fn begin(&mut self, call: Traced) -> Option<Traced> {
        let oldest = (self.0.len() == MOST_OPEN).then(|| self.0.pop_front());
        self.0.push_back(call);
        oldest.flatten()
    }

    /// A call from `caller` to `callee` that began at `begun` ends; `None` if that was not seen.
    pub fn end(&mut self, caller: u32, callee: u32, begun: u64) -> Option<Traced> {
        let is_it =
            |call: &Traced| (call.caller, call.callee, call.begun) == (caller, callee, begun);
        // Calls that began last end first.
        self.0.remove(self.0.iter().rposition(is_it)?)
    }

    /// The oldest that is not over, for the end of all.
    pub fn give_up(&mut self) -> Option<Traced> {
        self.0.pop_front()
    }
}
