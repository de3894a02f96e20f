//! The interface of the machine: what the framework asks of a processor and the board around it.
//!
//! A machine is a folder of this one. It gives the modules below with the functions of
//! [`contract`], which the compiler compares; the rest of the framework names nothing of a machine
//! but them. What a machine needs of the framework stands in [`upcalls`].
//!
//! | module | what a machine gives |
//! | --- | --- |
//! | `interrupts` | whether interrupts come in here, and waiting for one |
//! | `cpu` | the register that points to the processor's block, [`cpu::PerCpu`] |
//! | `page` | the format of page-table entries, the table in use, what is kept of translations |
//! | `switch` | leaving one stack for another, and what a new stack begins with |
//! | `trap` | the registers of interrupted code, and resuming it |
//! | `user` | the registers of a program, and running it until it traps |

mod contract;
pub mod cpu;
pub(crate) mod types;
mod upcalls;
mod x86_64;

use x86_64 as machine;

#[cfg(feature = "selftest")]
pub(crate) use machine::{debug, idt};
pub(crate) use machine::{gdt, guard_pages, init_cpu, interrupts, page, regs, switch};
pub use machine::{trap, user};

/// The largest number of processors the kernel runs on.
pub const MAX_CPUS: usize = 8;
