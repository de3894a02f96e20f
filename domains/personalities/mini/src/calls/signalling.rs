//! Handlers and masks of signals.

use super::Result;
use crate::errno::{EINTR, EINVAL, SIGKILL};
use crate::memory;
use crate::process::Process;
use crate::signals::Handler;

impl Process {
    pub(super) fn set_handler(&mut self, signal: u32, new: u64, old: u64) -> Result<u64> {
        if !(1..=64).contains(&signal) {
            return Err(EINVAL);
        }
        let before = (old != 0).then(|| self.handlers[signal as usize]);
        if new != 0 {
            let [function, flags, restorer, mask] = self.get(new)?;
            let handler = Handler {
                function,
                flags,
                restorer,
                mask,
            };
            if signal == SIGKILL {
                return Err(EINVAL);
            }
            self.handle(signal, handler);
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

    pub(super) fn change_mask(&mut self, how: u64, new: u64, old: u64) -> Result<u64> {
        let before = self.mask();
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

    /// `rt_sigsuspend`: the mask comes back when a handler has been entered.
    pub(super) fn suspend(&mut self, mask: u64) -> Result<u64> {
        let mask = memory::read_word(&self.program.space, mask)?;
        self.mask_after = Some(self.mask());
        self.set_mask(mask);
        self.until(|| None::<()>)?;
        Err(EINTR)
    }
}
