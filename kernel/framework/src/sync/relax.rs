//! What a processor does between two looks of a busy wait.
//!
//! `pause` is the right instruction on real processors. QEMU's software emulation takes a lock
//! shared by all processors and their devices for each one, so processors that spin with it keep
//! the one they wait for from getting on (seconds instead of microseconds); there it is left out.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch::regs;

static PAUSE: AtomicBool = AtomicBool::new(false);

/// Finds out whether `pause` is of use on this machine.
pub(crate) fn init_relax() {
    let under_hypervisor = regs::cpuid(1, 0).ecx >> 31 != 0;
    let name = regs::cpuid(0x4000_0000, 0);
    let emulated = under_hypervisor
        && [name.ebx, name.ecx, name.edx]
            == [
                u32::from_le_bytes(*b"TCGT"),
                u32::from_le_bytes(*b"CGTC"),
                u32::from_le_bytes(*b"GTCG"),
            ];
    PAUSE.store(!emulated, Ordering::Relaxed);
}

/// Waits an instant in a loop that waits for another processor.
#[inline]
pub fn relax() {
    if PAUSE.load(Ordering::Relaxed) {
        core::hint::spin_loop();
    }
}
