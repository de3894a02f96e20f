//! x86-64: control registers, descriptor tables, trap entry and the per-processor block.
//!
//! [`init_cpu`] makes the calling processor ready to take traps; it is called once on every
//! processor, first on the boot processor (index 0).

pub mod cpu;
pub(crate) mod debug;
pub mod gdt;
pub mod idt;
pub mod regs;
pub mod trap;

mod percpu;

/// The largest number of processors the kernel runs on.
pub const MAX_CPUS: usize = 8;

/// Sets up the calling processor as number `cpu_index`: control-register features, descriptor
/// tables with IST stacks, the IDT and the per-processor block in GS.
///
/// Call once per processor, with interrupts disabled. Returns an error if the IST stacks of an
/// application processor cannot be allocated.
pub(crate) fn init_cpu(cpu_index: usize) -> Result<(), crate::mem::NoMemory> {
    assert!(cpu_index < MAX_CPUS, "cpu index {cpu_index} out of range");
    cpu::enable_features();
    gdt::init(cpu_index)?;
    cpu::install_block(cpu_index);
    idt::load();
    debug::init();
    cpu::enable_syscall();
    Ok(())
}
