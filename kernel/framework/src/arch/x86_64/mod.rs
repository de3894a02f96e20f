//! x86-64: control registers, descriptor tables, trap entry and the per-processor block.
//!
//! [`init_cpu`] makes the calling processor ready to take traps; it is called once on every
//! processor, first on the boot processor (index 0).

mod calibrate;
pub(crate) mod clock;
pub(crate) mod controller;
pub(crate) mod cpu;
pub(crate) mod debug;
pub mod entropy;
mod entry;
pub(crate) mod gdt;
pub(crate) mod idt;
pub(crate) mod interrupts;
mod ioapic;
mod lapic;
pub(crate) mod loader;
pub(crate) mod page;
pub mod ports;
pub(crate) mod power;
pub(crate) mod regs;
pub(crate) mod reserved;
mod ring3;
mod rtc;
pub(crate) mod serial;
pub(crate) mod start;
pub(crate) mod switch;
pub mod trap;
pub(crate) mod untyped;
pub mod user;
mod vector;

use crate::arch::MAX_CPUS;
use crate::arch::upcalls::NoMemory;

pub(crate) use entry::boot_stack_low;

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
    gdt::static_guard_pages().chain([entry::boot_stack_guard()])
}
