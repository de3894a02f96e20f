//! Running a program until it traps.

use super::space::VmSpace;
use crate::arch::interrupts;
use crate::arch::types::UserEvent;
use crate::arch::user::UserContext;

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

    /// Runs the program until it traps, and then gives way if another thread's turn has come.
    pub fn run(&mut self) -> UserEvent {
        if let Err(event) = self.context.prepare() {
            return event;
        }
        let interrupts_were_on = interrupts::disable();
        // SAFETY: interrupts are off until the program runs, and again from its trap on. The
        // address space shares the kernel half and lives as long as `self`; `prepare` had nothing
        // against the context.
        let event = unsafe {
            self.space.load();
            self.context.enter()
        };
        if interrupts_were_on {
            interrupts::enable();
        }
        crate::task::preempt_point();
        event
    }
}
