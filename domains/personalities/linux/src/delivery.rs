//! How a thread takes its signals: handlers, and what is done without one.

use crate::errno::{Error, SIGKILL, SIGSEGV, SIGSTOP};
use crate::handlers::Handler;
use crate::signals::{HARMLESS, STOPS, bit};
use crate::task::{After, NO_STACK, Task};
use domain_rt::user::{self, UserRegisters};
use linux::frame::{self, General, Info, Interrupted};

/// The handler is forgotten when it is entered; the signal does not wait while it runs; system
/// calls that it has ended begin anew; it runs on a stack of its own.
const SA_RESETHAND: u64 = 0x8000_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESTART: u64 = 0x1000_0000;
const SA_ONSTACK: u64 = 0x0800_0000;
/// Calls that end at a handler whatever it says: `poll`, `select`, `pause`, `nanosleep`,
/// `rt_sigsuspend`, `clock_nanosleep`, `epoll_wait`, `pselect6`, `ppoll`, `epoll_pwait`.
const NEVER_AGAIN: [u64; 10] = [7, 23, 34, 35, 130, 230, 232, 270, 271, 281];
/// Flags that a handler begins without: trap, direction, resume.
const CLEARED: u64 = 1 << 8 | 1 << 10 | 1 << 16;
/// A signal by the kernel.
const SI_KERNEL: i32 = 0x80;

/// A signal that nobody sends.
pub fn by_kernel(signal: u32) -> Info {
    Info {
        signal,
        code: SI_KERNEL,
        ..Info::default()
    }
}

fn general(of: &UserRegisters) -> General {
    [
        of.r8, of.r9, of.r10, of.r11, of.r12, of.r13, of.r14, of.r15, of.rdi, of.rsi, of.rbp,
        of.rbx, of.rdx, of.rax, of.rcx, of.rsp, of.rip, of.rflags,
    ]
}

/// Sets the registers that a context has; the bases of segments stay.
fn set_general(of: &mut UserRegisters, from: &General) {
    [
        of.r8, of.r9, of.r10, of.r11, of.r12, of.r13, of.r14, of.r15, of.rdi, of.rsi, of.rbp,
        of.rbx, of.rdx, of.rax, of.rcx, of.rsp, of.rip, of.rflags,
    ] = *from;
}

impl Task {
    /// A signal that this process sends.
    pub fn by_self(&self, signal: u32) -> Info {
        Info {
            signal,
            pair: [self.process.id, 0],
            ..Info::default()
        }
    }

    /// A signal of its own doing: it cannot be put off. If it is, or is ignored, it ends the
    /// process.
    pub fn hit(&mut self, info: Info, trap: [u64; 3]) -> After {
        let signal = info.signal;
        let handler = self.process.handlers.get(signal);
        let is_put_off = self.ears.mask() & bit(signal) != 0;
        if handler.function > 1 && !is_put_off && self.enter(&info, handler, trap).is_ok() {
            return After::Run;
        }
        After::End(signal as i32)
    }

    /// Does what signals ask for that have come. A call that they have ended, and no handler was
    /// entered for, begins anew.
    pub fn take_signals(&mut self) -> After {
        while let Some(info) = self.ears.take() {
            let signal = info.signal;
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
            if handler.function > 1 {
                match self.enter(&info, handler, [0; 3]) {
                    Ok(()) => continue,
                    // What it needs cannot be written.
                    Err(_) => return After::End(SIGSEGV as i32),
                }
            }
            match handler.function {
                // A group that nobody could let go on does not stop.
                0 if STOPS & bit(signal) != 0 => {
                    let system = &self.process.system;
                    let group = self.group_of(0);
                    if !group.is_ok_and(|group| system.is_orphaned(group)) {
                        self.process.stop(signal);
                    }
                }
                1 => {}
                _ if HARMLESS & bit(signal) != 0 => {}
                _ => return After::End(signal as i32),
            }
        }
        if let Some(asked) = self.broken.take() {
            // `ppoll` and `pselect6` set a mask for the wait alone.
            if let Some(mask) = self.mask_after.take() {
                self.set_mask(mask);
            }
            self.begun_anew.set(self.broken_off.take());
            begin_anew(&mut self.program.registers, asked);
        }
        After::Run
    }

    /// Has the program go on in a handler, and then, by `rt_sigreturn`, where it was.
    fn enter(&mut self, info: &Info, handler: Handler, trap: [u64; 3]) -> Result<(), Error> {
        let mut before = self.program.registers;
        // The first handler decides whether the call is restarted; later ones interrupt no call.
        if let Some(asked) = self.broken.take() {
            self.broken_off.set(None);
            if handler.flags & SA_RESTART != 0 && !NEVER_AGAIN.contains(&asked) {
                begin_anew(&mut before, asked);
            }
        }
        self.begun_anew.set(None);
        let now = self.ears.mask();
        let interrupted = Interrupted {
            registers: general(&before),
            mask: self.mask_after.unwrap_or(now),
            stack: self.signal_stack,
            trap,
        };
        let [start, flags, bytes] = self.signal_stack;
        let is_wanted = handler.flags & SA_ONSTACK != 0 && flags == 0;
        let top = is_wanted && !self.is_on_stack(before.rsp);
        let top = top.then(|| start.saturating_add(bytes));
        self.room_of_vector()?;
        let (_, own) = self.vector.split_at_mut(frame::FRONT);
        user::vector(&self.program.thread, own);
        let (space, whole) = (&self.program.mm.space, &mut self.vector[..]);
        let frame = frame::push(space, top, handler.restorer, &interrupted, info, whole)?;
        self.mask_after = None;
        let registers = &mut self.program.registers;
        *registers = before;
        (registers.rsp, registers.rip) = (frame.at, handler.function);
        registers.rdi = info.signal.into();
        (registers.rsi, registers.rdx) = (frame.info, frame.context);
        registers.rax = 0;
        registers.rflags &= !CLEARED;
        if handler.flags & SA_RESETHAND != 0 {
            self.process.handle(info.signal, Handler::default());
        }
        let itself = match handler.flags & SA_NODEFER {
            0 => bit(info.signal),
            _ => 0,
        };
        self.set_mask(now | handler.mask | itself);
        Ok(())
    }

    /// A handler is done: what its frame says goes on. `false`: it says what cannot be.
    pub fn leave_handler(&mut self) -> bool {
        let at = self.program.registers.rsp.wrapping_sub(8);
        if self.room_of_vector().is_err() {
            return false;
        }
        let (_, vector) = self.vector.split_at_mut(frame::FRONT);
        let Ok((back, has_state)) = frame::pop(&self.program.mm.space, at, vector) else {
            return false;
        };
        if !has_state {
            user::first_vector(vector);
        }
        if !user::set_vector(&self.program.thread, vector) {
            return false;
        }
        set_general(&mut self.program.registers, &back.registers);
        // RCX is where a call goes on, and R11 its flags, only where the program has left them so.
        self.broken = None;
        self.set_mask(back.mask);
        let [start, flags, bytes] = back.stack;
        self.signal_stack = match flags & 2 {
            0 if bytes > 0 => [start, 0, bytes],
            _ => NO_STACK,
        };
        true
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

/// Has a program make the call once more that a signal has broken off.
fn begin_anew(registers: &mut UserRegisters, asked: u64) {
    registers.rip -= 2;
    registers.rax = asked;
}
