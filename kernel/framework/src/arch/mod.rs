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
//! | `controller` | interrupt lines, requests to other processors, acknowledging |
//! | `clock` | the clock, the time of day at boot, the timer of each processor |
//! | `entropy` | the processor's own source of random numbers |
//! | `loader` | reading what the boot loader says |
//! | `start` | starting the other processors |
//! | `serial`, `power` | the lines that the log goes to; off and reset |
//! | `ports`, `reserved` | access to I/O ports; what no driver may have |
//! | `untyped` | copies in and out of memory that others change meanwhile |

mod contract;
pub mod cpu;
pub(crate) mod types;
mod upcalls;
mod x86_64;

use x86_64 as machine;

pub(crate) use machine::{
    boot_stack_low, clock, controller, guard_pages, init_cpu, interrupts, loader, page, power,
    reserved, serial, start, switch, untyped,
};
pub use machine::{entropy, ports, trap, user};

// The tests look into this machine.
#[cfg(feature = "selftest")]
pub(crate) use machine::{debug, gdt, idt, regs};

/// The largest number of processors the kernel runs on.
pub const MAX_CPUS: usize = 8;
