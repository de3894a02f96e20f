//! The two serial lines of a PC, 16550s (National Semiconductor data sheet).

use core::ops::RangeInclusive;

use super::regs;

/// A serial line by its first register.
#[derive(Clone, Copy)]
pub(crate) struct Uart(u16);

/// The console's line, COM1.
pub(crate) const CONSOLE: Uart = Uart(0x3f8);
/// The log's line, COM2.
pub(crate) const MIRROR: Uart = Uart(0x2f8);

impl Uart {
    /// Sets it to 115200 8N1 without interrupts. Returns whether there is one.
    pub(crate) fn init(self) -> bool {
        let port = self.0;
        // SAFETY: these are the standard ports of the two serial lines; a 16550 cannot reach
        // memory.
        unsafe {
            regs::outb(port + 7, 0x5a);
            if regs::inb(port + 7) != 0x5a {
                return false;
            }
            for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3)] {
                regs::outb(port + register, value);
            }
        }
        true
    }

    /// How many bytes it takes: 16 if the transmitter is empty and the FIFO works that
    /// [`init`](Self::init) switched on (bits 6 and 7 of the interrupt identification register),
    /// one if it does not.
    pub(crate) fn room(self) -> usize {
        // SAFETY: as in `init`.
        unsafe {
            if regs::inb(self.0 + 5) & 0x20 == 0 {
                return 0;
            }
            match regs::inb(self.0 + 2) & 0xc0 == 0xc0 {
                true => 16,
                false => 1,
            }
        }
    }

    /// Gives it a byte to send.
    pub(crate) fn put(self, byte: u8) {
        // SAFETY: as in `init`.
        unsafe { regs::outb(self.0, byte) };
    }

    /// Its ports.
    pub(crate) const fn ports(self) -> RangeInclusive<u16> {
        self.0..=self.0 + 7
    }
}
