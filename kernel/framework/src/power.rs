//! Turning the machine off and resetting it.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::acpi::platform;
use crate::arch::{interrupts, regs};

/// PM1 control: the sleep-enable bit (ACPI 6.5, 4.8.3.2.1).
const SLEEP_ENABLE: u16 = 1 << 13;
/// Where QEMU's `isa-debug-exit` device listens when configured as the command line must say.
const DEBUG_EXIT_PORT: u16 = 0xf4;

/// Whether a panic ends the machine (for test runs) instead of halting it.
static OFF_AFTER_PANIC: AtomicBool = AtomicBool::new(false);

/// Whether the command line contains a word.
fn asked_for(word: &str) -> bool {
    crate::boot::command_line()
        .split_whitespace()
        .any(|given| given == word)
}

/// Turns the machine off by ACPI, or through `isa-debug-exit` if the command line says
/// `debug-exit`; halts this processor if neither works.
pub fn off() -> ! {
    off_with_status(0)
}

/// As [`off`]; the debug-exit device, if the command line says that there is one, tells `status`
/// to who runs the emulator.
pub fn off_with_status(status: u8) -> ! {
    crate::kprintln!("power off, status {status}");
    crate::log::flush();
    if asked_for("debug-exit") {
        // SAFETY: the user says that the debug-exit device is at this port; it ends the machine.
        unsafe { regs::outl(DEBUG_EXIT_PORT, u32::from(status)) };
    }
    sleep_s5();
    crate::kprintln!("power: the machine cannot be turned off; halted");
    crate::log::flush();
    interrupts::halt_forever()
}

/// Enters sleep state S5 (soft off), by the PM1 control registers or, on hardware-reduced machines,
/// by the sleep control register.
fn sleep_s5() {
    let (Some(fadt), Some((type_a, type_b))) = (platform().fadt, platform().s5) else {
        return;
    };
    let value = |sleep_type: u8| u16::from(sleep_type & 7) << 10 | SLEEP_ENABLE;
    for (port, sleep_type) in [(fadt.pm1b_control, type_b), (fadt.pm1a_control, type_a)] {
        if let Some(port) = port {
            // SAFETY: the firmware names this port as the PM1 control register; the value enters
            // S5, after which nothing runs.
            unsafe { regs::outw(port, value(sleep_type)) };
        }
    }
    if let Some(control) = fadt.sleep_control {
        // SLP_TYP in bits 2 to 4, SLP_EN in bit 5 (4.8.3.7).
        write_register(control, type_a << 2 | 1 << 5);
    }
    // The machine may run on for a moment before it is off.
    for _ in 0..100_000 {
        // SAFETY: port 0x80 is the POST code port; reading it is the customary short delay.
        unsafe { regs::inb(0x80) };
    }
}

/// Writes a byte to a register that the firmware tables name.
fn write_register(register: acpi_tables::GenericAddress, value: u8) {
    if let Some(port) = register.port() {
        // SAFETY: a power register by the firmware's word; it does not reach memory.
        unsafe { regs::outb(port, value) };
    } else if register.space == acpi_tables::SPACE_MEMORY {
        use crate::mem::kspace::{Cache, Window};
        if let Ok(window) = Window::map(register.address, 1, Cache::Device) {
            // SAFETY: a power register by the firmware's word, mapped while `window` lives.
            unsafe { (window.address() as *mut u8).write_volatile(value) };
        }
    }
}

/// Resets the machine; by the FADT's reset register, else by a triple fault's stand-in on PCs, the
/// reset control port.
pub fn reset() -> ! {
    crate::log::flush();
    if let Some((register, value)) = platform().fadt.and_then(|fadt| fadt.reset) {
        write_register(register, value);
    }
    // SAFETY: port 0xcf9 is the reset control register of PC chipsets; it does not reach memory.
    unsafe { regs::outb(0xcf9, 6) };
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
    crate::smp::halt_others();
    interrupts::halt_forever()
}
