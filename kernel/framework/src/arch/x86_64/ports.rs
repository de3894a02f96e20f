//! I/O ports: the instructions, and which ports could break the kernel.

use super::regs;
use crate::arch::upcalls::{Word, firmware};

/// Ports that could break the kernel (first, last): each could corrupt memory by DMA, lose or
/// forge interrupts, or take the machine down.
const SENSITIVE: [(u16, u16); 14] = [
    (0x00, 0x1f),   // ISA DMA controller 1
    (0x20, 0x21),   // interrupt controller 1
    (0x40, 0x43),   // interval timer
    (0x61, 0x61),   // its gate, and NMI sources
    (0x70, 0x71),   // clock and NMI mask
    (0x80, 0x8f),   // ISA DMA pages
    (0x92, 0x92),   // fast reset and A20
    (0xa0, 0xa1),   // interrupt controller 2
    (0xb2, 0xb3),   // system-management interrupts
    (0xc0, 0xdf),   // ISA DMA controller 2
    (0xf4, 0xf7),   // QEMU debug exit
    (0x4d0, 0x4d1), // interrupt trigger modes
    (0x510, 0x51b), // QEMU firmware configuration, which has DMA
    (0xcf8, 0xcff), // PCI configuration and reset control
];
/// Power-management registers extend this far from the PM timer's or PM1 control's 128-byte block.
const POWER_BLOCK: u16 = 0x80;

/// Whether any of the ports could break the kernel.
pub(crate) fn could_break(first: u16, last: u16) -> bool {
    let overlaps = |start: u16, end: u16| first <= end && start <= last;
    let fadt = firmware().fadt;
    let power = fadt.into_iter().flat_map(|fadt| {
        let reset = fadt.reset.and_then(|(register, _)| register.port());
        [fadt.pm_timer, fadt.pm1a_control, fadt.pm1b_control, reset]
    });
    SENSITIVE.iter().any(|&(start, end)| overlaps(start, end))
        || power.flatten().any(|port| {
            let start = port & !(POWER_BLOCK - 1);
            overlaps(start, start + (POWER_BLOCK - 1))
        })
}

/// A number that ports are read and written as: 8, 16 or 32 bits.
pub trait PortWord: Word {
    /// Reads a port.
    ///
    /// # Safety
    /// Reading the port must not have an effect that breaks memory safety.
    #[doc(hidden)]
    unsafe fn input(port: u16) -> Self;
    /// Writes a port.
    ///
    /// # Safety
    /// The device behind the port must not be made to break memory safety.
    #[doc(hidden)]
    unsafe fn output(self, port: u16);
}

impl PortWord for u8 {
    unsafe fn input(port: u16) -> Self {
        // SAFETY: passed on to the caller.
        unsafe { regs::inb(port) }
    }

    unsafe fn output(self, port: u16) {
        // SAFETY: passed on to the caller.
        unsafe { regs::outb(port, self) }
    }
}

impl PortWord for u16 {
    unsafe fn input(port: u16) -> Self {
        // SAFETY: passed on to the caller.
        unsafe { regs::inw(port) }
    }

    unsafe fn output(self, port: u16) {
        // SAFETY: passed on to the caller.
        unsafe { regs::outw(port, self) }
    }
}

impl PortWord for u32 {
    unsafe fn input(port: u16) -> Self {
        // SAFETY: passed on to the caller.
        unsafe { regs::inl(port) }
    }

    unsafe fn output(self, port: u16) {
        // SAFETY: passed on to the caller.
        unsafe { regs::outl(port, self) }
    }
}
