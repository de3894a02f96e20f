//! Interrupts of devices and of other processors: vectors, and the controllers that send them.
//!
//! Vectors: 0x20 to 0x2f catch strays of the legacy controllers, [`LINES`] from 0x30 on are lines
//! of devices, the rest belong to the kernel itself (timer, requests of other processors,
//! spurious). Everything that arrives unexpectedly is acknowledged and counted, never fatal.
//!
//! Reference: Intel SDM volume 3, chapter 11 (APIC); Intel 82093AA data sheet (I/O APIC).

use core::sync::atomic::{AtomicU32, Ordering};

use super::trap::{self, TrapFrame};
use super::{interrupts, ioapic, lapic};
use crate::arch::MAX_CPUS;
use crate::arch::types::{Polarity, Trigger};
use crate::arch::upcalls::{self, Cache, NoMemory, PAGE_SIZE, Window, firmware, kprintln};

#[cfg(feature = "selftest")]
pub(crate) use super::ioapic::is_masked;
pub(crate) use super::ioapic::{has as has_input, set_masked};
pub(crate) use super::lapic::{enable, end_of_interrupt as end};

/// How many lines there are.
pub(crate) const LINES: usize = TIMER as usize - FIRST_LINE;
/// Vector of the first line.
const FIRST_LINE: usize = 0x30;
/// Vector of the timer.
pub(super) const TIMER: u8 = 0xf0;
/// Vector of requests from other processors.
const REQUEST: u8 = 0xf1;
/// Vector on which a local APIC reports that an interrupt vanished (SDM volume 3, 11.9).
pub(super) const SPURIOUS: u8 = 0xff;
/// Vector of non-maskable interrupts.
const NMI: u8 = 2;
/// Where devices send message-signalled interrupts (SDM volume 3, 11.11.1).
const MSI_BASE: u64 = 0xfee0_0000;

/// The APIC id of each processor, by its index.
static APIC_IDS: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];

/// Silences the legacy controllers, and sets up the I/O APICs and the boot processor's local APIC.
/// Runs once, at boot, when memory works and the firmware's tables have been read.
///
/// # Panics
/// If there is no memory for the registers of the local APIC.
pub(crate) fn init() {
    ioapic::mask_legacy_controllers();
    for vector in 0x20..=0xfe {
        trap::set_handler(vector, stray);
    }
    trap::set_handler(SPURIOUS, vanished);
    for line in 0..LINES {
        trap::set_handler(vector(line), raised);
    }
    trap::set_handler(TIMER, upcalls::timer_fired);
    trap::set_handler(REQUEST, upcalls::request_arrived);
    let platform = firmware();
    lapic::map(match platform.local_apic {
        0 => lapic::USUAL_ADDRESS,
        address => address,
    });
    lapic::enable();
    set_number(0, lapic::id());
    for controller in &platform.io_apics {
        let address = u64::from(controller.address);
        if ioapic::add(address, controller.gsi_base).is_err() {
            kprintln!("irq: no memory for the I/O APIC at {address:#x}");
        }
    }
}

/// Maps a page of controller registers for ever; returns its address.
pub(super) fn map_registers(physical: u64) -> Result<usize, NoMemory> {
    let window = Window::map(physical, PAGE_SIZE, Cache::Device)?;
    let address = window.address();
    core::mem::forget(window);
    Ok(address)
}

/// Notes the APIC id of a processor.
pub(super) fn set_number(processor: usize, apic_id: u32) {
    APIC_IDS[processor].store(apic_id, Ordering::Relaxed);
}

/// The APIC id of a processor.
fn number(processor: usize) -> u32 {
    APIC_IDS[processor].load(Ordering::Relaxed)
}

/// What the machine calls a line.
pub(crate) fn vector(line: usize) -> u8 {
    (FIRST_LINE + line) as u8
}

/// The address and the value that a device writes to raise a line on a processor.
pub(crate) fn message(line: usize, processor: usize) -> (u64, u32) {
    (
        MSI_BASE | u64::from(number(processor)) << 12,
        u32::from(vector(line)),
    )
}

/// Lets an input, which [`has_input`], raise a line on a processor.
pub(crate) fn connect(
    input: u32,
    line: usize,
    processor: usize,
    trigger: Trigger,
    polarity: Polarity,
) {
    ioapic::route(input, vector(line), number(processor), trigger, polarity);
}

/// Where an interrupt of the ISA bus comes in, and how: as the ACPI tables say; edge-triggered,
/// active high and at the input of its number if they say nothing.
pub(crate) fn legacy_input(interrupt: u8) -> (u32, Trigger, Polarity) {
    let mut overrides = firmware().overrides.iter();
    match overrides.find(|entry| entry.isa == interrupt) {
        Some(entry) => {
            let (trigger, polarity) = as_on_isa(entry);
            (entry.gsi, trigger, polarity)
        }
        None => (u32::from(interrupt), Trigger::Edge, Polarity::High),
    }
}

/// Trigger and polarity of an override; ISA's own where it says "as the bus does".
fn as_on_isa(entry: &upcalls::Override) -> (Trigger, Polarity) {
    let trigger = match entry.trigger {
        upcalls::OverrideTrigger::Level => Trigger::Level,
        _ => Trigger::Edge,
    };
    let polarity = match entry.polarity {
        upcalls::OverridePolarity::Low => Polarity::Low,
        _ => Polarity::High,
    };
    (trigger, polarity)
}

/// Interrupts another processor, which calls [`upcalls::request_arrived`]. Interrupts must be off.
pub(crate) fn request(processor: usize) {
    lapic::send_interrupt(number(processor), REQUEST);
}

/// From now on [`halt`] stops the processor that it is for, which says where it was.
pub(crate) fn expect_halt() {
    trap::set_handler(NMI, |frame| {
        upcalls::halts(frame.place());
        interrupts::halt_forever()
    });
}

/// Stops another processor for good, whatever it is doing. Interrupts must be off.
pub(crate) fn halt(processor: usize) {
    lapic::send_nmi(number(processor));
}

/// Raises an interrupt on a processor, as a device would. Interrupts must be off.
#[cfg(feature = "selftest")]
pub(crate) fn raise(processor: usize, vector: u8) {
    lapic::send_interrupt(number(processor), vector);
}

/// An interrupt of a line.
fn raised(frame: &mut TrapFrame) {
    upcalls::line_raised(frame.vector as usize - FIRST_LINE, frame);
}

/// An interrupt on a vector that nobody has.
fn stray(_: &mut TrapFrame) {
    upcalls::count_unexpected();
    lapic::end_of_interrupt();
}

/// A spurious interrupt of the local APIC: must not be acknowledged (SDM volume 3, 11.9).
fn vanished(_: &mut TrapFrame) {
    upcalls::count_unexpected();
}
