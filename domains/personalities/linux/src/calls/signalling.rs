//! Handlers and masks of signals.

use super::{Other, Result};
use crate::errno::{EINTR, EINVAL, ENOMEM, EPERM, SIGKILL, SIGSTOP};
use crate::handlers::Handler;
use crate::memory;
use crate::task::{After, NO_STACK, Task};

const SS_DISABLE: u64 = 2;
/// The smallest stack for handlers (MINSIGSTKSZ).
const SMALLEST_STACK: u64 = 2048;

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

    /// `sigaltstack`.
    pub(super) fn set_signal_stack(&mut self, new: u64, old: u64) -> Result<u64> {
        let wanted = match new {
            0 => None,
            at => Some(self.get::<3>(at)?),
        };
        let before = self.signal_stack;
        let is_on_it = self.is_on_stack(self.program.registers.rsp);
        if let Some([at, flags, bytes]) = wanted {
            let flags = flags & 0xffff_ffff;
            self.signal_stack = match flags {
                _ if is_on_it => return Err(EPERM),
                SS_DISABLE => NO_STACK,
                0 | 1 if bytes < SMALLEST_STACK => return Err(ENOMEM),
                0 | 1 => [at, 0, bytes],
                _ => return Err(EINVAL),
            };
        }
        if old != 0 {
            let flags = if is_on_it { 1 } else { before[1] };
            self.put(old, &[before[0], flags, before[2]])?;
        }
        Ok(0)
    }

    /// Whether an address is on the stack for handlers.
    pub fn is_on_stack(&self, at: u64) -> bool {
        let [start, _, bytes] = self.signal_stack;
        at.wrapping_sub(start) < bytes
    }

    /// `rt_sigpending`.
    pub(super) fn pending_signals(&self, at: u64, bytes: u64) -> Result<u64> {
        match bytes {
            8 => self.put(at, &[self.ears.waiting()]),
            _ => Err(EINVAL),
        }
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
            let given = memory::read_word(&self.program.mm.space, new)?;
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
        let mask = memory::read_word(&self.program.mm.space, mask).map_err(Other::Error)?;
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
