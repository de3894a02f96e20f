//! How a thread takes its signals: handlers, and what is done without one.

use crate::errno::{EINTR, Error, SIGKILL, SIGSTOP};
use crate::handlers::Handler;
use crate::memory;
use crate::signals::{HARMLESS, STOPS, bit};
use crate::task::{After, Task, begin_anew};

/// The handler is forgotten when it is entered; the signal does not wait while it runs; system
/// calls that it has ended begin anew.
const SA_RESETHAND: u64 = 0x8000_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESTART: u64 = 0x1000_0000;
/// The most handlers that interrupt each other.
const MOST_SAVED: usize = 16;
/// Calls that end at a handler whatever it says: `poll`, `pause`, `nanosleep`, `rt_sigsuspend`,
/// `clock_nanosleep`.
const NEVER_AGAIN: [u64; 5] = [7, 34, 35, 130, 230];

impl Task {
    /// A signal of its own doing: it cannot be put off.
    pub fn hit(&mut self, signal: u32) -> After {
        let handler = self.process.handlers.get(signal);
        if handler.function > 1 && self.enter(signal, handler).is_ok() {
            After::Run
        } else {
            After::End(signal as i32)
        }
    }

    /// Does what signals ask for that have come.
    pub fn take_signals(&mut self) -> After {
        while let Some(signal) = self.ears.take() {
            if signal == SIGKILL {
                return match self.ears.ends_alone() {
                    true => After::Leave(SIGKILL as i32),
                    false => After::End(SIGKILL as i32),
                };
            }
            if signal == SIGSTOP {
                self.rest();
                continue;
            }
            let handler = self.process.handlers.get(signal);
            if handler.function > 1 && self.enter(signal, handler).is_ok() {
                continue;
            }
            match handler.function {
                0 if STOPS & bit(signal) != 0 => self.process.stop(signal),
                1 => {}
                _ if HARMLESS & bit(signal) != 0 => {}
                _ => return After::End(signal as i32),
            }
        }
        After::Run
    }

    /// Has the program go on in a handler, and then, by `rt_sigreturn`, where it was.
    fn enter(&mut self, signal: u32, handler: Handler) -> Result<(), Error> {
        if self.saved.len() == MOST_SAVED {
            return Err(EINTR);
        }
        let registers = &mut self.program.registers;
        // Below the red zone, and as a call leaves the stack (System V ABI, 3.2.2).
        let stack = (registers.rsp.wrapping_sub(128) & !15).wrapping_sub(8);
        memory::write(&self.program.space, stack, &handler.restorer.to_le_bytes())?;
        let mut before = *registers;
        let asked = self.program.asked;
        let begins_anew = handler.flags & SA_RESTART != 0 && !NEVER_AGAIN.contains(&asked);
        if begins_anew {
            begin_anew(&mut before, asked);
        }
        self.begun_anew.set(None);
        (registers.rsp, registers.rip) = (stack, handler.function);
        (registers.rdi, registers.rsi, registers.rdx) = (signal.into(), 0, 0);
        registers.rax = 0;
        if handler.flags & SA_RESETHAND != 0 {
            self.process.handle(signal, Handler::default());
        }
        let itself = match handler.flags & SA_NODEFER {
            0 => bit(signal),
            _ => 0,
        };
        let mask = self.mask_after.take();
        let now = self.ears.mask();
        self.set_mask(now | handler.mask | itself);
        self.saved.push((before, mask.unwrap_or(now)));
        Ok(())
    }

    /// A handler is done.
    pub fn leave_handler(&mut self) {
        if let Some((registers, mask)) = self.saved.pop() {
            self.program.registers = registers;
            self.set_mask(mask);
        }
    }

    /// Sets which signals wait; those that cannot be put off do not.
    pub fn set_mask(&self, mask: u64) {
        self.ears.set_mask(mask);
        // What has come for any thread may be another's now.
        if self.process.signals.pending() & mask != 0 {
            self.process.ask_others(self.id);
        }
    }
}
