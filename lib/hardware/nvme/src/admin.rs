//! The admin queue, and what is done with it (section 5): one command at a time, whose answer is
//! waited for.
//!
//! A command whose answer does not come stays under way, with the page that it may still write to:
//! nothing that came later is read from a page to which such a command was sent.

use alloc::collections::TryReserveError;

use crate::command::{self, Command, Structure};
use crate::queue::{Answer, Fault, Layout, Memory, Pair, SubmitError};
use crate::registers::{Capabilities, Registers};
use crate::status::{Meaning, Status};

/// Entries of the admin queues.
pub const ENTRIES: u16 = 16;
/// Milliseconds until the answer to an admin command must be there.
const PATIENCE: u32 = 5000;

/// Why an admin command was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminError {
    /// The controller breaks the rules.
    Fault(Fault),
    /// It does not answer.
    NoAnswer,
    /// It says no.
    Refused(Status),
    /// Too many commands before it had no answer.
    Full,
}

impl core::fmt::Display for AdminError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AdminError::Fault(fault) => write!(f, "{fault}"),
            AdminError::NoAnswer => f.write_str("an admin command has no answer"),
            AdminError::Refused(status) => write!(f, "an admin command was refused: {status}"),
            AdminError::Full => f.write_str("too many admin commands have no answer"),
        }
    }
}

/// The admin queue of a controller whose registers are `R` and whose memory is `M`.
pub struct Admin<R, M> {
    registers: R,
    memory: M,
    capabilities: Capabilities,
    pair: Pair,
}

impl<R: Registers, M: Memory> Admin<R, M> {
    /// The queue in `memory`, which is all zeros, of a controller that was just started.
    ///
    /// # Errors
    /// No memory.
    pub fn new(
        registers: R,
        memory: M,
        capabilities: Capabilities,
    ) -> Result<Self, TryReserveError> {
        let layout = Layout::new(ENTRIES);
        let pair = Pair::new(0, layout, usize::from(ENTRIES) - 1)?;
        Ok(Admin {
            registers,
            memory,
            capabilities,
            pair,
        })
    }

    /// The registers.
    pub fn registers(&self) -> &R {
        &self.registers
    }

    /// Has the controller do `command`; what it says of its result. `pause` waits a millisecond.
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn run(&mut self, command: &Command, mut pause: impl FnMut()) -> Result<u32, AdminError> {
        // Answers that came too late; nobody waits for them any more.
        while self.take()?.is_some() {}
        let number = self.pair.free_number().ok_or(AdminError::Full)?;
        let submitted = self.pair.submit(&self.memory, number, command);
        submitted.map_err(|_: SubmitError| AdminError::Full)?;
        if let Some(tail) = self.pair.tail(&self.memory) {
            let doorbell = self.capabilities.tail_doorbell(0);
            self.registers.write32(doorbell, tail);
        }
        for _ in 0..PATIENCE {
            while let Some((answer, result)) = self.take()? {
                if answer.command == number {
                    return match answer.status.meaning() {
                        Meaning::Done => Ok(result),
                        _ => Err(AdminError::Refused(answer.status)),
                    };
                }
            }
            pause();
        }
        Err(AdminError::NoAnswer)
    }

    /// The next answer, with its result.
    fn take(&mut self) -> Result<Option<(Answer, u32)>, AdminError> {
        let taken = self.pair.take_with_result(&self.memory);
        let taken = taken.map_err(AdminError::Fault)?;
        if let Some(head) = self.pair.head() {
            let doorbell = self.capabilities.head_doorbell(0);
            self.registers.write32(doorbell, head);
        }
        Ok(taken)
    }

    /// Has a structure written to the page `to`.
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn identify(
        &mut self,
        structure: Structure,
        namespace: u32,
        to: u64,
        pause: impl FnMut(),
    ) -> Result<(), AdminError> {
        let command = command::identify(structure, namespace, to);
        self.run(&command, pause).map(drop)
    }

    /// Makes pair `number`, whose memory is at `address` and all zeros. Its answers interrupt by
    /// `vector`, or not at all.
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn make_pair(
        &mut self,
        number: u16,
        layout: Layout,
        address: u64,
        vector: Option<u16>,
        mut pause: impl FnMut(),
    ) -> Result<(), AdminError> {
        let answers = address + layout.answers as u64;
        let command = command::create_completion(number, layout.entries, answers, vector);
        self.run(&command, &mut pause)?;
        let command = command::create_submission(number, layout.entries, address);
        self.run(&command, pause).map(drop)
    }
}
