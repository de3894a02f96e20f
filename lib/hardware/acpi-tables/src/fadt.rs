//! The FADT: fixed power-management registers (5.2.9).

use crate::bytes::{u8_at, u16_at, u32_at, u64_at};

/// Address-space number of memory.
pub const SPACE_MEMORY: u8 = 0;
/// Address-space number of I/O ports.
pub const SPACE_IO: u8 = 1;

/// A register's address (5.2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenericAddress {
    /// Address space: [`SPACE_MEMORY`], [`SPACE_IO`] or another.
    pub space: u8,
    /// Address in that space; never 0.
    pub address: u64,
}

impl GenericAddress {
    /// Reads the 12-byte form at `offset`; `None` if it is absent or zero.
    fn parse(table: &[u8], offset: usize) -> Option<Self> {
        let space = u8_at(table, offset)?;
        let address = u64_at(table, offset + 4)?;
        (address != 0).then_some(Self { space, address })
    }

    /// The I/O port, if it is one.
    pub fn port(&self) -> Option<u16> {
        if self.space != SPACE_IO {
            return None;
        }
        u16::try_from(self.address).ok()
    }
}

/// What the kernel uses of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fadt {
    /// Physical address of the DSDT, 0 if none.
    pub dsdt: u64,
    /// Global system interrupt of power-management events.
    pub sci: u16,
    /// I/O port of the power-management timer (3.579545 MHz).
    pub pm_timer: Option<u16>,
    /// The timer has 32 bits, not 24.
    pub pm_timer_32: bool,
    /// I/O port of the first PM1 control register.
    pub pm1a_control: Option<u16>,
    /// I/O port of the second one.
    pub pm1b_control: Option<u16>,
    /// Register and value that reset the machine.
    pub reset: Option<(GenericAddress, u8)>,
    /// The machine has none of the fixed hardware (microvm).
    pub hardware_reduced: bool,
    /// Register of the sleep control of hardware-reduced machines.
    pub sleep_control: Option<GenericAddress>,
}

const FLAG_TIMER_32: u32 = 1 << 8;
const FLAG_RESET: u32 = 1 << 10;
const FLAG_HARDWARE_REDUCED: u32 = 1 << 20;

impl Fadt {
    /// Reads a whole table, header included. `None` if it is shorter than version 1 of it.
    pub fn parse(table: &[u8]) -> Option<Self> {
        let flags = u32_at(table, 112)?;
        let wide_dsdt = u64_at(table, 140).filter(|&address| address != 0);
        let reset = GenericAddress::parse(table, 116).zip(u8_at(table, 128));
        Some(Self {
            dsdt: wide_dsdt.unwrap_or(u64::from(u32_at(table, 40)?)),
            sci: u16_at(table, 46)?,
            pm_timer: port(table, 76, 208),
            pm_timer_32: flags & FLAG_TIMER_32 != 0,
            pm1a_control: port(table, 64, 172),
            pm1b_control: port(table, 68, 184),
            reset: reset.filter(|_| flags & FLAG_RESET != 0),
            hardware_reduced: flags & FLAG_HARDWARE_REDUCED != 0,
            sleep_control: GenericAddress::parse(table, 244),
        })
    }
}

/// An I/O port that the table names twice: as a generic address at `extended` in newer tables, and
/// as a number at `plain`.
fn port(table: &[u8], plain: usize, extended: usize) -> Option<u16> {
    if let Some(port) = GenericAddress::parse(table, extended).and_then(|gas| gas.port()) {
        return Some(port);
    }
    let number = u32_at(table, plain)?;
    u16::try_from(number).ok().filter(|&port| port != 0)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    #[test]
    fn an_old_table_gives_plain_ports() {
        let mut table = vec![0; 116];
        table[40..44].copy_from_slice(&0x1234_u32.to_le_bytes());
        table[64..68].copy_from_slice(&0x604_u32.to_le_bytes());
        table[76..80].copy_from_slice(&0x608_u32.to_le_bytes());
        let fadt = Fadt::parse(&table).unwrap();
        assert_eq!(fadt.dsdt, 0x1234);
        assert_eq!(fadt.pm1a_control, Some(0x604));
        assert_eq!(fadt.pm_timer, Some(0x608));
        assert_eq!(fadt.pm1b_control, None);
        assert_eq!(fadt.reset, None);
    }

    #[test]
    fn the_extended_fields_win() {
        let mut table = vec![0; 276];
        table[64..68].copy_from_slice(&0x604_u32.to_le_bytes());
        table[172] = SPACE_IO;
        table[176..184].copy_from_slice(&0x704_u64.to_le_bytes());
        table[112..116].copy_from_slice(&FLAG_RESET.to_le_bytes());
        table[116] = SPACE_IO;
        table[120..128].copy_from_slice(&0xcf9_u64.to_le_bytes());
        table[128] = 15;
        let fadt = Fadt::parse(&table).unwrap();
        assert_eq!(fadt.pm1a_control, Some(0x704));
        let (register, value) = fadt.reset.unwrap();
        assert_eq!((register.port(), value), (Some(0xcf9), 15));
    }

    #[test]
    fn short_tables_and_impossible_ports_are_refused() {
        assert_eq!(Fadt::parse(&[0; 115]), None);
        let mut table = vec![0; 116];
        table[76..80].copy_from_slice(&0x1_0000_u32.to_le_bytes());
        assert_eq!(Fadt::parse(&table).unwrap().pm_timer, None);
    }
}
