//! Whether interrupts come in on this processor, and waiting for one.

use core::arch::asm;

use super::regs::RFLAGS_IF;

/// Reads the interrupt flag and disables interrupts. Returns whether they were enabled.
#[inline]
pub fn disable() -> bool {
    let flags: u64;
    // SAFETY: masking interrupts breaks no invariant; the stack use of pushfq is balanced.
    unsafe { asm!("pushfq", "pop {}", "cli", out(reg) flags) };
    flags & RFLAGS_IF != 0
}

/// Enables interrupts.
#[inline]
pub fn enable() {
    // SAFETY: the IDT is loaded before the first caller can run (boot order), and every vector
    // has an entry.
    unsafe { asm!("sti") };
}

/// Whether interrupts are enabled on this processor.
#[inline]
pub fn enabled() -> bool {
    let flags: u64;
    // SAFETY: reads the flags only.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags) };
    flags & RFLAGS_IF != 0
}

/// Enables interrupts and halts until the next one; no interrupt is lost in between.
#[inline]
pub fn wait() {
    // SAFETY: `sti; hlt` is atomic with respect to interrupts and touches no memory.
    unsafe { asm!("sti", "hlt") };
}

/// Stops this processor for ever.
pub fn halt_forever() -> ! {
    loop {
        // SAFETY: with interrupts masked nothing runs on this processor any more.
        unsafe { asm!("cli", "hlt") };
    }
}
