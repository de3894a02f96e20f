//! What a processor does between two looks of a busy wait.
//!
//! Real processors have an instruction for it, such as `pause`. QEMU's software emulation takes a
//! lock shared by all processors and their devices for each one, so processors that spin with it
//! keep the one they wait for from getting on (seconds instead of microseconds); there it is left
//! out. Where QEMU runs one processor after the other (`-icount`) it is the other way round: the
//! instruction has the next one run, and without it the one that waits has all its turn. Nobody can
//! see that from inside, so the command line says it, by the word `relax=pause`.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch::cpu;
use crate::boot::command_line;

static PAUSE: AtomicBool = AtomicBool::new(false);

/// Finds out whether the instruction is of use on this machine.
pub(crate) fn init_relax() {
    let mut words = command_line().split_whitespace();
    let is_useful = !cpu::is_emulated() || words.any(|word| word == "relax=pause");
    PAUSE.store(is_useful, Ordering::Relaxed);
}

/// Waits an instant in a loop that waits for another processor.
#[inline]
pub fn relax() {
    if PAUSE.load(Ordering::Relaxed) {
        core::hint::spin_loop();
    }
}
