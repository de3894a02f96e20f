//! Handlers and masks of signals.

use super::{Other, Result};
use crate::errno::{EINTR, EINVAL, SIGKILL, SIGSTOP};
use crate::handlers::Handler;
use crate::memory;
use crate::task::{After, Task};

impl Task {
    pub(super) fn set_handler(&mut self, signal: u32, new: u64, old: u64) -> Result<u64> {
        if !(1..=64).contains(&signal) || matches!(signal, SIGKILL | SIGSTOP) {
            return Err(EINVAL);
        }
        let before = (old != 0).then(|| self.process.handlers.get(signal));
        if new != 0 {
            let [function, flags, restorer, mask] = self.get(new)?;
            let handler = Handler {
                function,
                flags,
                restorer,
                mask,
            };
            self.process.handle(signal, handler);
        }
        if let Some(before) = before {
            let Handler {
                function,
                flags,
                restorer,
                mask,
            } = before;
            self.put(old, &[function, flags, restorer, mask])?;
        }
        Ok(0)
    }

    /// Has a signal sent that there may be.
    pub(super) fn signal(
        &self,
        signal: u64,
        send: impl FnOnce(&Self, u32) -> Result<()>,
    ) -> Result<u64> {
        if signal > 64 {
            return Err(EINVAL);
        }
        send(self, signal as u32).map(|()| 0)
    }

    pub(super) fn change_mask(&mut self, how: u64, new: u64, old: u64) -> Result<u64> {
        let before = self.ears.mask();
        if new != 0 {
            let given = memory::read_word(&self.program.space, new)?;
            self.set_mask(match how {
                0 => before | given,
                1 => before & !given,
                2 => given,
                _ => return Err(EINVAL),
            });
        }
        if old != 0 {
            self.put(old, &[before])?;
        }
        Ok(0)
    }

    /// `rt_sigsuspend`: waits with this mask until a handler is entered, behind which the mask of
    /// before comes back.
    pub(super) fn suspend(&mut self, mask: u64) -> core::result::Result<u64, Other> {
        let mask = memory::read_word(&self.program.space, mask).map_err(Other::Error)?;
        self.mask_after = Some(self.ears.mask());
        self.set_mask(mask);
        self.program.registers.rax = EINTR.result();
        while self.mask_after.is_some() {
            let _ = self.until(|| None::<()>);
            match self.take_signals() {
                After::Run => {}
                After::Leave(status) => return Err(Other::Leave(status)),
                After::End(status) => return Err(Other::End(status)),
            }
        }
        Err(Other::NoResult)
    }
}
