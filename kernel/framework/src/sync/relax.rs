//! What a processor does between two looks of a busy wait.
//!
//! Real processors have an instruction for it, such as `pause`. QEMU's software emulation takes a
//! lock shared by all processors and their devices for each one, so processors that spin with it
//! keep the one they wait for from getting on (seconds instead of microseconds); there it is left
//! out.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch::cpu;

static PAUSE: AtomicBool = AtomicBool::new(false);

/// Finds out whether the instruction is of use on this machine.
pub(crate) fn init_relax() {
    PAUSE.store(!cpu::is_emulated(), Ordering::Relaxed);
}

/// Waits an instant in a loop that waits for another processor.
#[inline]
pub fn relax() {
    if PAUSE.load(Ordering::Relaxed) {
        core::hint::spin_loop();
    }
}
