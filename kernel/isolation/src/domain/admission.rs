//! Which calls are let in.

use super::{ALIVE, ALIVE_COUNTED, Claim, ControlBlock, Limits, SHORT};
use abi::RpcError;
use core::sync::atomic::Ordering;

/// [`ControlBlock::alive`] while calls are let in, for a domain with these limits.
pub(super) const fn open(limits: &Limits) -> u32 {
    match limits.calls {
        0 => ALIVE,
        _ => ALIVE_COUNTED,
    }
}

/// How a call is let in that was not let in at once.
#[must_use = "the end of a call that was counted must be counted, too"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// Without more ado.
    Uncounted,
    /// As one of those under way in a domain with a budget for them:
    /// [`give_call`](ControlBlock::give_call) must follow.
    Counted,
}

impl ControlBlock {
    /// What [`alive`](Self::alive) is while calls are let in.
    pub(crate) fn open(&self) -> u32 {
        open(&self.limits)
    }

    /// Lets only calls in that free, or all again. Nothing for one that is dead or to crash.
    pub(crate) fn set_short(&self, short: bool) {
        let (from, to) = match short {
            true => (self.open(), SHORT),
            false => (SHORT, self.open()),
        };
        #[cfg(test)]
        if crate::sync::is_broken(crate::sync::Broken::OpenedBlindly) {
            if self.alive.load(Ordering::Relaxed) == from {
                crate::sync::spin();
                self.alive.store(to, Ordering::SeqCst);
            }
            return;
        }
        let _ = self
            .alive
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Lets a call in that begins now, where it does not come in at once.
    ///
    /// # Errors
    /// Why it may not come in. What follows from [`CRASH_NEXT`](super::CRASH_NEXT) is the caller's
    /// affair.
    pub(crate) fn admit(&self, frees: bool) -> Result<Admitted, RpcError> {
        match self.alive.load(Ordering::Relaxed) {
            // Opened between `enter` and here.
            ALIVE => Ok(Admitted::Uncounted),
            SHORT if !frees => Err(RpcError::NoMemory),
            SHORT if self.limits.calls == 0 => Ok(Admitted::Uncounted),
            ALIVE_COUNTED | SHORT => {
                self.take_call().or(RpcError::Busy)?;
                Ok(Admitted::Counted)
            }
            _ => Err(RpcError::DomainCrashed),
        }
    }

    /// Counts a call that begins, if there may be one more.
    pub(crate) fn take_call(&self) -> Claim {
        let before = self.counters.calls_inside.fetch_add(1, Ordering::Relaxed);
        if before < self.limits.calls {
            return Claim::Granted;
        }
        self.give_call();
        Claim::Refused
    }

    /// Counts the end of a call that was counted.
    pub(crate) fn give_call(&self) {
        self.counters.calls_inside.fetch_sub(1, Ordering::Relaxed);
    }
}
