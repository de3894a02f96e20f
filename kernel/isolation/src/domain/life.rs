//! How a domain goes through its states, from the first to the last, and how its end is waited for.

use super::debugger::{Change, image_changes};
use super::trace::note_state;
use super::{ControlBlock, DEAD, announce};
use crate::platform::{WaitResult, platform, wait};
use abi::RpcError;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use interfaces::{CrashReason as Reason, DomainState as State};

/// Whose deed a death is.
#[must_use = "who made a domain die hands it to the reaper; nobody else does"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Died {
    /// It dies by this.
    Now,
    /// It was dead, and keeps the reason that it has.
    Before,
}

/// How a wait for the end of a domain ended.
#[must_use = "a domain is not gone because its end was waited for"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left of it.
    Gone,
    /// The deadline passed.
    TimedOut,
}

impl ControlBlock {
    /// What it is doing.
    pub fn state(&self) -> State {
        let state = u64::from(self.counters.state.load(Ordering::Acquire));
        match State::from_number(state).expect("only numbers of states are stored") {
            // The reaper has not got to it yet.
            State::Starting | State::Running if !self.is_alive() => State::Dying,
            state => state,
        }
    }

    /// Whether the start of `state`, or of a later one, was announced.
    pub(crate) fn has_entered(&self, state: State) -> bool {
        self.counters.state.load(Ordering::Acquire) >= state.number()
    }

    /// Whether nobody is inside, nor will be: its start is over, its own threads have ended, and
    /// nobody has a handle to an object of it. Who calls one has a handle to it until he has left;
    /// so has, in his chain of calls, whoever dropped one. What those did inside is seen by the
    /// caller then.
    pub(crate) fn is_deserted(&self) -> bool {
        let has_run = self.has_entered(State::Running) && !self.has_entered(State::Dying);
        let counters = &self.counters;
        let exports = counters.exports.load(Ordering::Acquire);
        #[cfg(test)]
        let exports = match crate::sync::is_broken(crate::sync::Broken::HandlesAreNothing) {
            true => 0,
            false => exports,
        };
        has_run && counters.threads.load(Ordering::Acquire) == 0 && exports == 0
    }

    /// Why it ended.
    pub fn reason(&self) -> Reason {
        let reason = u64::from(self.counters.reason.load(Ordering::Relaxed));
        Reason::from_number(reason).expect("only numbers of reasons are stored")
    }

    /// Announces the start of a new state and tells those who wait for events.
    pub(crate) fn enter_state(self: &Arc<Self>, state: State) {
        self.counters.state.store(state.number(), Ordering::Release);
        announce(self, state);
        if state == State::Gone {
            self.counters.gone.store(1, Ordering::Release);
            platform().wake(&self.counters.gone, u32::MAX);
        }
    }

    /// Announces that it has started, unless it died in doing so.
    pub(crate) fn enter_running(&self) {
        let (from, to) = (State::Starting.number(), State::Running.number());
        let changed =
            self.counters
                .state
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        if changed.is_ok() {
            announce(self, State::Running);
        }
    }

    /// Marks it dead for `reason`, unless somebody has done so before.
    pub(crate) fn die(&self, reason: Reason) -> Died {
        if self.alive.swap(DEAD, Ordering::SeqCst) == DEAD {
            return Died::Before;
        }
        self.counters
            .reason
            .store(reason.number(), Ordering::Relaxed);
        note_state(self, State::Dying);
        image_changes(Change::Died, self);
        Died::Now
    }

    /// Blocks until it is gone.
    ///
    /// # Errors
    /// [`RpcError::Interrupted`] if a domain that waits here dies meanwhile.
    pub fn wait_gone(&self) -> Result<Reason, RpcError> {
        self.await_end(None).map(|_| self.reason())
    }

    /// Blocks until it is gone, until `deadline` (nanoseconds since boot) at most.
    ///
    /// # Errors
    /// As [`wait_gone`](Self::wait_gone).
    pub fn wait_gone_until(&self, deadline: u64) -> Result<Ended, RpcError> {
        self.await_end(Some(deadline))
    }

    fn await_end(&self, deadline: Option<u64>) -> Result<Ended, RpcError> {
        while self.counters.gone.load(Ordering::Acquire) == 0 {
            match wait(&self.counters.gone, 0, deadline) {
                WaitResult::Interrupted => return Err(RpcError::Interrupted),
                WaitResult::TimedOut => return Ok(Ended::TimedOut),
                _ => {}
            }
        }
        Ok(Ended::Gone)
    }
}
