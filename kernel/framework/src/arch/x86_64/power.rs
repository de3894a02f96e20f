//! Turning the machine off, by ACPI, and resetting it.

use super::regs;
use crate::arch::upcalls::{Cache, GenericAddress, SPACE_MEMORY, Window, firmware as platform};

/// PM1 control: the sleep-enable bit (ACPI 6.5, 4.8.3.2.1).
const SLEEP_ENABLE: u16 = 1 << 13;
/// Where QEMU's `isa-debug-exit` device listens when configured as the command line must say.
const DEBUG_EXIT_PORT: u16 = 0xf4;

/// Tells QEMU's `isa-debug-exit` device `status`, which ends the machine.
pub(crate) fn tell(status: u8) {
    // SAFETY: the user says that the debug-exit device is at this port; it ends the machine.
    unsafe { regs::outl(DEBUG_EXIT_PORT, u32::from(status)) };
}

/// Enters sleep state S5 (soft off), by the PM1 control registers or, on hardware-reduced machines,
/// by the sleep control register.
pub(crate) fn off() {
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
fn write_register(register: GenericAddress, value: u8) {
    if let Some(port) = register.port() {
        // SAFETY: a power register by the firmware's word; it does not reach memory.
        unsafe { regs::outb(port, value) };
    } else if register.space == SPACE_MEMORY
        && let Ok(window) = Window::map(register.address, 1, Cache::Device)
    {
        // SAFETY: a power register by the firmware's word, mapped while `window` lives.
        unsafe { (window.address() as *mut u8).write_volatile(value) };
    }
}

/// Resets the machine; by the FADT's reset register, else by a triple fault's stand-in on PCs, the
/// reset control port. Returns if neither works.
pub(crate) fn reset() {
    if let Some((register, value)) = platform().fadt.and_then(|fadt| fadt.reset) {
        write_register(register, value);
    }
    // SAFETY: port 0xcf9 is the reset control register of PC chipsets; it does not reach memory.
    unsafe { regs::outb(0xcf9, 6) };
}
