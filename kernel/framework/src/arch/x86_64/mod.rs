//! x86-64: control registers, descriptor tables, trap entry and the per-processor block.
//!
//! [`init_cpu`] makes the calling processor ready to take traps; it is called once on every
//! processor, first on the boot processor (index 0).

pub(crate) mod cpu;
pub(crate) mod debug;
pub(crate) mod gdt;
pub(crate) mod idt;
pub(crate) mod interrupts;
pub(crate) mod page;
pub(crate) mod regs;
mod ring3;
pub(crate) mod switch;
pub mod trap;
pub mod user;

use crate::arch::MAX_CPUS;
use crate::arch::upcalls::{self, NoMemory};

/// Sets up the calling processor as number `cpu_index`: control-register features, descriptor
/// tables with IST stacks, the IDT and the per-processor block in GS.
///
/// Call once per processor, with interrupts disabled. Returns an error if the IST stacks of an
/// application processor cannot be allocated.
pub(crate) fn init_cpu(cpu_index: usize) -> Result<(), NoMemory> {
    assert!(cpu_index < MAX_CPUS, "cpu index {cpu_index} out of range");
    cpu::enable_features();
    gdt::init(cpu_index)?;
    cpu::install_block(cpu_index);
    idt::load();
    debug::init();
    cpu::enable_syscall();
    Ok(())
}

/// The guard pages among the kernel's static data, for the kernel's page table to leave out.
pub(crate) fn guard_pages() -> impl Iterator<Item = usize> {
    gdt::static_guard_pages().chain([upcalls::boot_stack_guard()])
}
