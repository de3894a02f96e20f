//! What the functions of the interface take and give, the same on every machine.

/// What may be done with mapped memory besides reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// It may be written.
    pub write: bool,
    /// Instructions may be fetched, also where the processor cannot forbid it.
    pub execute: bool,
    /// Programs may use it.
    pub user: bool,
    /// Device registers: nothing is cached, gathered or done in another order.
    pub device: bool,
    /// The translation survives a change of address space.
    pub global: bool,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access that the page table does not permit; `address` is the one accessed.
    PageFault {
        /// The access was a write.
        write: bool,
        /// The access was an instruction fetch.
        execute: bool,
    },
    /// A page fault in the guard page below the running thread's stack.
    StackOverflow,
    /// Division by zero or overflow of a quotient.
    Divide,
    /// An undefined instruction.
    InvalidOpcode,
    /// An access or instruction that the processor forbids, other than by the page table.
    GeneralProtection,
    /// A breakpoint instruction.
    Breakpoint,
    /// Any other exception, by vector.
    Other(u8),
}

/// A fault: its kind and, for the page-fault kinds, the address; for the others the instruction's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Where.
    pub address: u64,
}

/// When a wire interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// When its level changes.
    Edge,
    /// As long as it is active.
    Level,
}

/// Which level of a wire is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polarity {
    /// The high level.
    High,
    /// The low level.
    Low,
}

/// How fast the machine counts.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Counts of the clock per second.
    pub clock: u64,
    /// Counts of a processor's timer per second.
    pub timer: u64,
    /// Where the rate of the clock comes from.
    pub source: &'static str,
}
