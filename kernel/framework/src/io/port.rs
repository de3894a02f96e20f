//! Device registers in I/O space.

use super::claim::{Claim, Claims};
use super::{IoError, Word, check_access};
use crate::arch::regs;
use crate::log;

static CLAIMS: Claims = Claims::new();

/// The ports of the first serial line.
const COM1: core::ops::RangeInclusive<u16> = 0x3f8..=0x3ff;

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

/// A range of ports. Dropping it lets others acquire it.
pub struct IoPort {
    first: u16,
    count: u16,
    _claim: Claim,
}

impl IoPort {
    /// Acquires `count` ports from `first` on. Acquiring COM1 silences the kernel's console there
    /// until it is dropped.
    pub fn acquire(first: u16, count: u16) -> Result<Self, IoError> {
        let last = first
            .checked_add(count.wrapping_sub(1))
            .ok_or(IoError::BadRange)?;
        if count == 0 {
            return Err(IoError::BadRange);
        }
        if sensitive(first, last) {
            return Err(IoError::Sensitive);
        }
        let claim = CLAIMS.claim(first.into(), count.into())?;
        let port = Self {
            first,
            count,
            _claim: claim,
        };
        if port.is_console() {
            log::use_console(false);
        }
        Ok(port)
    }

    /// Whether the range has a port of COM1.
    fn is_console(&self) -> bool {
        self.first <= *COM1.end() && self.first + (self.count - 1) >= *COM1.start()
    }

    /// The first port.
    pub fn first(&self) -> u16 {
        self.first
    }

    /// The number of ports.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Reads the port at `offset` from the first as 8, 16 or 32 bits.
    pub fn read<T: PortWord>(&self, offset: u16) -> Result<T, IoError> {
        check_access::<T>(offset.into(), self.count.into())?;
        // SAFETY: the range is claimed, not sensitive, and the access is inside it.
        Ok(unsafe { T::input(self.first + offset) })
    }

    /// Writes the port at `offset` from the first as 8, 16 or 32 bits.
    pub fn write<T: PortWord>(&self, offset: u16, value: T) -> Result<(), IoError> {
        check_access::<T>(offset.into(), self.count.into())?;
        // SAFETY: as in `read`.
        unsafe { value.output(self.first + offset) };
        Ok(())
    }
}

impl Drop for IoPort {
    fn drop(&mut self) {
        if self.is_console() {
            log::init_console();
        }
    }
}

/// Whether any of the ports could break the kernel.
fn sensitive(first: u16, last: u16) -> bool {
    let overlaps = |start: u16, end: u16| first <= end && start <= last;
    let fadt = crate::acpi::platform().fadt;
    let power = fadt.into_iter().flat_map(|fadt| {
        let reset = fadt.reset.and_then(|(register, _)| register.port());
        [fadt.pm_timer, fadt.pm1a_control, fadt.pm1b_control, reset]
    });
    SENSITIVE.iter().any(|&(start, end)| overlaps(start, end))
        || log::mirror_port().is_some_and(|port| overlaps(port, port + 7))
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
    /// As for [`regs::inb`].
    #[doc(hidden)]
    unsafe fn input(port: u16) -> Self;
    /// Writes a port.
    ///
    /// # Safety
    /// As for [`regs::outb`].
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
