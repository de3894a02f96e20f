//! A program with all its registers, for kernels that keep them here.

use super::{UserThread, VmSpace};
use crate::arch::user::{self, Registers};
use abi::user::UserEvent;

/// All registers of a user program.
#[derive(Default)]
pub struct UserContext {
    registers: Registers,
    thread: UserThread,
}

impl UserContext {
    /// A program that will start at `entry` with its stack pointer at `stack`.
    pub fn new(entry: usize, stack: usize) -> Self {
        Self {
            registers: user::first_registers(entry, stack),
            thread: UserThread::new(),
        }
    }

    /// The registers.
    pub fn registers(&self) -> Registers {
        self.registers
    }

    /// Sets the registers. Flags that are not a program's business are ignored; bases of segments
    /// that are no user addresses are a general-protection fault before the program runs.
    pub fn set_registers(&mut self, registers: &Registers) {
        self.registers = *registers;
    }

    /// Sets what a system call returns.
    pub fn set_result(&mut self, result: u64) {
        user::set_result(&mut self.registers, result);
    }
}

/// The right to run a context in an address space.
pub struct UserMode<'a> {
    context: &'a mut UserContext,
    space: &'a VmSpace,
}

impl<'a> UserMode<'a> {
    /// Pairs a context with its address space.
    pub fn new(context: &'a mut UserContext, space: &'a VmSpace) -> Self {
        Self { context, space }
    }

    /// The context.
    pub fn context(&mut self) -> &mut UserContext {
        self.context
    }

    /// Runs the program until it traps, or an interrupt has come in and was handled
    /// ([`UserEvent::Interrupted`]: run it again), and then gives way if another thread's turn has
    /// come.
    pub fn run(&mut self) -> UserEvent {
        let UserContext { registers, thread } = self.context;
        thread.run(self.space, registers, || true)
    }
}
