//! The local APIC of each processor: acknowledging, inter-processor interrupts, the timer.
//!
//! Used in xAPIC (memory-mapped) mode: every processor sees its own registers at the same
//! address. Reference: Intel SDM volume 3, chapter 11.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::controller::{SPURIOUS, TIMER, map_registers};
use super::regs;
use crate::arch::upcalls::relax;

/// Register offsets (SDM volume 3, table 11-1).
mod reg {
    pub const ID: usize = 0x20;
    pub const TASK_PRIORITY: usize = 0x80;
    pub const EOI: usize = 0xb0;
    pub const SPURIOUS: usize = 0xf0;
    pub const COMMAND_LOW: usize = 0x300;
    pub const COMMAND_HIGH: usize = 0x310;
    pub const LVT_TIMER: usize = 0x320;
    pub const LVT_LINT0: usize = 0x350;
    pub const LVT_LINT1: usize = 0x360;
    pub const LVT_ERROR: usize = 0x370;
    pub const INITIAL_COUNT: usize = 0x380;
    pub const CURRENT_COUNT: usize = 0x390;
    pub const DIVIDE: usize = 0x3e0;
}

/// Where the registers are if the firmware does not say (SDM volume 3, 11.4.1).
pub(super) const USUAL_ADDRESS: u64 = 0xfee0_0000;

const MSR_APIC_BASE: u32 = 0x1b;
const APIC_BASE_ENABLE: u64 = 1 << 11;
const APIC_BASE_X2APIC: u64 = 1 << 10;
const MSR_TSC_DEADLINE: u32 = 0x6e0;
const SOFTWARE_ENABLE: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
const LVT_NMI: u32 = 4 << 8;
const LVT_TSC_DEADLINE: u32 = 2 << 17;
const DIVIDE_BY_1: u32 = 0xb;
const DELIVERY_PENDING: u32 = 1 << 12;
const ASSERT: u32 = 1 << 14;
const DELIVER_NMI: u32 = 4 << 8;
const DELIVER_INIT: u32 = 5 << 8;
const DELIVER_STARTUP: u32 = 6 << 8;

/// Where the registers are mapped; 0 before `map`.
static BASE: AtomicUsize = AtomicUsize::new(0);
static TSC_DEADLINE: AtomicBool = AtomicBool::new(false);

/// Maps the registers, which lie at this physical address on every processor.
///
/// # Panics
/// If there is no memory for it; this is early boot.
pub(super) fn map(physical: u64) {
    let base = map_registers(physical).expect("memory at boot");
    BASE.store(base, Ordering::Relaxed);
    let has_deadline = regs::cpuid(1, 0).ecx >> 24 & 1 != 0;
    TSC_DEADLINE.store(has_deadline, Ordering::Relaxed);
}

fn read(register: usize) -> u32 {
    let address = BASE.load(Ordering::Relaxed) + register;
    // SAFETY: `map` mapped the register page before anything here is called, and the offsets are
    // those of 32-bit registers inside it.
    unsafe { (address as *const u32).read_volatile() }
}

fn write(register: usize, value: u32) {
    let address = BASE.load(Ordering::Relaxed) + register;
    // SAFETY: as in `read`. The callers write only what makes interrupts arrive on vectors that
    // all have a handler, or starts a processor on prepared code.
    unsafe { (address as *mut u32).write_volatile(value) };
}

/// Enables the calling processor's local APIC with its timer masked.
pub(crate) fn enable() {
    // SAFETY: the register exists on every x86-64 processor; turning x2APIC off brings
    // back the memory-mapped registers that this module uses.
    unsafe {
        let base = regs::rdmsr(MSR_APIC_BASE);
        regs::wrmsr(MSR_APIC_BASE, (base | APIC_BASE_ENABLE) & !APIC_BASE_X2APIC);
    }
    write(reg::TASK_PRIORITY, 0);
    write(reg::LVT_LINT0, MASKED);
    write(reg::LVT_LINT1, LVT_NMI);
    write(reg::LVT_ERROR, MASKED);
    write(reg::DIVIDE, DIVIDE_BY_1);
    write(reg::LVT_TIMER, MASKED | u32::from(TIMER));
    write(reg::SPURIOUS, SOFTWARE_ENABLE | u32::from(SPURIOUS));
    end_of_interrupt();
}

/// The calling processor's APIC id.
pub(super) fn id() -> u32 {
    read(reg::ID) >> 24
}

/// Acknowledges the interrupt being handled.
#[inline]
pub(crate) fn end_of_interrupt() {
    write(reg::EOI, 0);
}

/// Sends `command` to the processor with this APIC id. Interrupts must be off.
fn send(apic_id: u32, command: u32) {
    while read(reg::COMMAND_LOW) & DELIVERY_PENDING != 0 {
        relax();
    }
    write(reg::COMMAND_HIGH, apic_id << 24);
    write(reg::COMMAND_LOW, command | ASSERT);
}

/// Interrupts another processor on `vector`. Interrupts must be off.
pub(super) fn send_interrupt(apic_id: u32, vector: u8) {
    send(apic_id, u32::from(vector));
}

/// Sends another processor a non-maskable interrupt.
pub(super) fn send_nmi(apic_id: u32) {
    send(apic_id, DELIVER_NMI);
}

/// Resets another processor; it waits for [`send_startup`] (SDM volume 3, 9.4).
pub(super) fn send_init(apic_id: u32) {
    send(apic_id, DELIVER_INIT);
}

/// Lets a reset processor begin in real mode at physical address `page * 4096`.
pub(super) fn send_startup(apic_id: u32, page: u8) {
    send(apic_id, DELIVER_STARTUP | u32::from(page));
}

/// Whether the timer takes a TSC value rather than a count.
pub(super) fn has_tsc_deadline() -> bool {
    TSC_DEADLINE.load(Ordering::Relaxed)
}

/// Lets the timer's counter run down from its maximum, without an interrupt, to measure its rate.
pub(super) fn start_counting() {
    write(reg::LVT_TIMER, MASKED | u32::from(TIMER));
    write(reg::INITIAL_COUNT, u32::MAX);
}

/// Ticks since [`start_counting`].
pub(super) fn counted() -> u32 {
    u32::MAX - read(reg::CURRENT_COUNT)
}

/// Unmasks the calling processor's timer in the mode that [`arm`] uses.
pub(crate) fn enable_timer() {
    write(reg::INITIAL_COUNT, 0);
    let mode = if has_tsc_deadline() {
        LVT_TSC_DEADLINE
    } else {
        0
    };
    write(reg::LVT_TIMER, mode | u32::from(TIMER));
}

/// Makes the calling processor's timer fire once: when the TSC reaches `tsc`, or after `count`
/// ticks, depending on [`has_tsc_deadline`].
pub(crate) fn arm(tsc: u64, count: u32) {
    if has_tsc_deadline() {
        // SAFETY: CPUID announces the register; it causes one timer interrupt. The fence orders
        // the preceding register write before it (SDM volume 3, 11.5.4.1).
        unsafe {
            core::arch::x86_64::_mm_mfence();
            regs::wrmsr(MSR_TSC_DEADLINE, tsc.max(1));
        }
    } else {
        write(reg::INITIAL_COUNT, count.max(1));
    }
}
