//! Which calls are let in.

use super::{ALIVE, ALIVE_COUNTED, ControlBlock, Limits, SHORT};
use abi::RpcError;
use core::sync::atomic::Ordering;

/// [`ControlBlock::alive`] while calls are let in, for a domain with these limits.
pub(super) const fn open(limits: &Limits) -> u32 {
    match limits.calls {
        0 => ALIVE,
        _ => ALIVE_COUNTED,
    }
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

    /// Whether a call that begins now may come in, where it does not do so at once; if it was
    /// counted.
    ///
    /// # Errors
    /// Why not. What follows from [`CRASH_NEXT`] is the caller's affair.
    pub(crate) fn admit(&self, frees: bool) -> Result<bool, RpcError> {
        match self.alive.load(Ordering::Relaxed) {
            // Opened between `enter` and here.
            ALIVE => Ok(false),
            SHORT if !frees => Err(RpcError::NoMemory),
            SHORT if self.limits.calls == 0 => Ok(false),
            ALIVE_COUNTED | SHORT if self.take_call() => Ok(true),
            ALIVE_COUNTED | SHORT => Err(RpcError::Busy),
            _ => Err(RpcError::DomainCrashed),
        }
    }

    /// Counts a call that begins, if there may be one more; whether there may.
    pub(crate) fn take_call(&self) -> bool {
        let before = self.counters.calls_inside.fetch_add(1, Ordering::Relaxed);
        let taken = before < self.limits.calls;
        if !taken {
            self.give_call();
        }
        taken
    }

    /// Counts the end of a call that was counted.
    pub(crate) fn give_call(&self) {
        self.counters.calls_inside.fetch_sub(1, Ordering::Relaxed);
    }
}
