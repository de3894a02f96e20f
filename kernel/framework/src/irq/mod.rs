//! Interrupt controllers and interrupt lines.
//!
//! Vectors: 0x20 to 0x2f catch strays of the legacy controllers, [`line`] hands out 0x30 to 0xef,
//! the rest belong to the kernel itself (timer, inter-processor requests, spurious). Everything
//! that arrives unexpectedly is acknowledged and counted, never fatal.
//!
//! Reference: Intel SDM volume 3, chapter 11 (APIC); Intel 82093AA data sheet (I/O APIC).

pub mod ioapic;
pub mod lapic;
pub mod line;

use core::sync::atomic::{AtomicU64, Ordering};

pub use ioapic::{Polarity, Trigger};
pub use line::{IrqError, IrqLine};

use crate::arch::trap::{self, TrapFrame};
use crate::mem::kspace::{Cache, Window};
use crate::mem::{NoMemory, PAGE_SIZE};
use crate::{acpi, kprintln};

/// Vector of the timer.
pub(crate) const TIMER: u8 = 0xf0;
/// Vector of requests from other processors.
pub(crate) const REQUEST: u8 = 0xf1;
/// Vector on which a local APIC reports that an interrupt vanished (SDM volume 3, 11.9).
pub(crate) const SPURIOUS: u8 = 0xff;

static UNEXPECTED: AtomicU64 = AtomicU64::new(0);

/// Number of interrupts that nobody had asked for.
pub fn unexpected() -> u64 {
    UNEXPECTED.load(Ordering::Relaxed)
}

/// Silences the legacy controllers and sets up the I/O APICs and the boot processor's local APIC.
pub(crate) fn init() {
    crate::sync::init_relax();
    ioapic::mask_legacy_controllers();
    for vector in 0x20..=0xfe {
        trap::set_handler(vector, stray);
    }
    trap::set_handler(SPURIOUS, vanished);
    line::init();
    let platform = acpi::platform();
    lapic::map(match platform.local_apic {
        0 => lapic::USUAL_ADDRESS,
        address => address,
    });
    lapic::enable();
    for controller in &platform.io_apics {
        let address = u64::from(controller.address);
        if ioapic::add(address, controller.gsi_base).is_err() {
            kprintln!("irq: no memory for the I/O APIC at {address:#x}");
        }
    }
}

/// Maps a page of controller registers for ever; returns its address.
fn map_registers(physical: u64) -> Result<usize, NoMemory> {
    let window = Window::map(physical, PAGE_SIZE, Cache::Device)?;
    let address = window.address();
    core::mem::forget(window);
    Ok(address)
}

/// An interrupt on a vector that nobody has.
fn stray(_: &mut TrapFrame) {
    UNEXPECTED.fetch_add(1, Ordering::Relaxed);
    lapic::end_of_interrupt();
}

/// Counts an interrupt that came to a line without an owner.
pub(crate) fn count_unexpected() {
    UNEXPECTED.fetch_add(1, Ordering::Relaxed);
}

/// A spurious interrupt of the local APIC: must not be acknowledged (SDM volume 3, 11.9).
fn vanished(_: &mut TrapFrame) {
    UNEXPECTED.fetch_add(1, Ordering::Relaxed);
}
