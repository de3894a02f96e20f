//! Turning the machine off and resetting it.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch::{interrupts, power};

/// Whether a panic ends the machine (for test runs) instead of halting it.
static OFF_AFTER_PANIC: AtomicBool = AtomicBool::new(false);

/// Whether the command line contains a word.
fn asked_for(word: &str) -> bool {
    crate::boot::command_line()
        .split_whitespace()
        .any(|given| given == word)
}

/// Turns the machine off by the firmware's way, or through the emulator's device for it if the
/// command line says `debug-exit`; halts this processor if neither works.
pub fn off() -> ! {
    off_with_status(0)
}

/// As [`off`]; the debug-exit device, if the command line says that there is one, tells `status`
/// to who runs the emulator.
pub fn off_with_status(status: u8) -> ! {
    crate::kprintln!("power off, status {status}");
    crate::log::flush();
    if asked_for("debug-exit") {
        power::tell(status);
    }
    power::off();
    crate::kprintln!("power: the machine cannot be turned off; halted");
    crate::log::flush();
    interrupts::halt_forever()
}

/// Resets the machine.
pub fn reset() -> ! {
    crate::log::flush();
    power::reset();
    interrupts::halt_forever()
}

/// Chooses whether a panic turns the machine off (`true`: test runs) or halts it, so that its last
/// words stay on the screen.
pub fn set_off_after_panic(off: bool) {
    OFF_AFTER_PANIC.store(off, Ordering::Relaxed);
}

/// After a panic was reported.
pub(crate) fn stop_after_panic() -> ! {
    if OFF_AFTER_PANIC.load(Ordering::Relaxed) || asked_for("panic=off") {
        off()
    }
    crate::kprintln!("halted");
    interrupts::halt_forever()
}
