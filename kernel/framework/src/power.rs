//! Turning the machine off.

use crate::arch::regs;

/// Turns the machine off; halts this processor if that does not work.
pub fn off() -> ! {
    // SAFETY: writing SLP_EN with the S5 type of QEMU's q35 to its PM1a control register turns
    // the machine off; it reaches no memory.
    unsafe { regs::outw(0x604, 0x2000) };
    regs::halt_forever()
}

/// After a panic was reported: halts this processor.
pub(crate) fn stop_after_panic() -> ! {
    off()
}
