//! Parsers of the ACPI tables that a kernel needs, over byte slices.
//!
//! Covers the root pointer, RSDT/XSDT, MADT, MCFG, FADT, HPET and, from the DSDT, the one name that
//! turns the machine off (`\_S5`). References are to the ACPI specification 6.5. Tables come from
//! firmware and are not trusted: every length is checked, and what does not parse is left out.

#![no_std]
#![forbid(unsafe_code)]

mod aml;
mod bytes;
mod fadt;
mod madt;
mod root;
#[cfg(test)]
mod testing;

pub use aml::find_s5;
pub use fadt::{Fadt, GenericAddress, SPACE_IO, SPACE_MEMORY};
pub use madt::{Cpu, IoApic, Madt, MadtEntry, Override, Polarity, Trigger};
pub use root::{Header, RootPointer, entries, validate};

use bytes::{u8_at, u16_at, u64_at};

/// A PCI Express configuration window (PCI firmware specification 3.3, 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciSegment {
    /// Physical address of bus 0's configuration space, even if `first_bus` is not 0.
    pub base: u64,
    /// Segment group number.
    pub segment: u16,
    /// First bus that the window decodes.
    pub first_bus: u8,
    /// Last bus that the window decodes.
    pub last_bus: u8,
}

/// The windows that an MCFG table lists. `table` is the whole table.
pub fn pci_segments(table: &[u8]) -> impl Iterator<Item = PciSegment> + '_ {
    let body = table.get(44..).unwrap_or(&[]);
    body.chunks_exact(16).filter_map(|entry| {
        let segment = PciSegment {
            base: u64_at(entry, 0)?,
            segment: u16_at(entry, 8)?,
            first_bus: u8_at(entry, 10)?,
            last_bus: u8_at(entry, 11)?,
        };
        (segment.first_bus <= segment.last_bus).then_some(segment)
    })
}

/// The physical address of the registers that an HPET table names (IA-PC HPET 1.0a, 3.2.4).
pub fn hpet_address(table: &[u8]) -> Option<u64> {
    let space = u8_at(table, 40)?;
    let address = u64_at(table, 44)?;
    (space == SPACE_MEMORY && address != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testing::table;
    use std::vec::Vec;

    #[test]
    fn segments_are_read_and_a_cut_one_is_left_out() {
        let mut body = Vec::from([0; 8]);
        body.extend(0xb000_0000_u64.to_le_bytes());
        body.extend([0, 0, 0, 255, 0, 0, 0, 0]);
        body.extend([1, 2, 3]);
        let mcfg = table(b"MCFG", &body);
        let found: Vec<_> = pci_segments(&mcfg).collect();
        let expected = PciSegment {
            base: 0xb000_0000,
            segment: 0,
            first_bus: 0,
            last_bus: 255,
        };
        assert_eq!(found, [expected]);
        assert_eq!(pci_segments(&mcfg[..40]).count(), 0);
    }

    #[test]
    fn a_segment_that_ends_before_it_begins_is_left_out() {
        let mut body = Vec::from([0; 16]);
        body.extend([0, 0, 9, 3, 0, 0, 0, 0]);
        assert_eq!(pci_segments(&table(b"MCFG", &body)).count(), 0);
    }

    #[test]
    fn hpet_must_be_in_memory() {
        let mut body = Vec::from([0; 20]);
        body[8..16].copy_from_slice(&0xfed0_0000_u64.to_le_bytes());
        assert_eq!(hpet_address(&table(b"HPET", &body)), Some(0xfed0_0000));
        body[4] = SPACE_IO;
        assert_eq!(hpet_address(&table(b"HPET", &body)), None);
        assert_eq!(hpet_address(&[]), None);
    }
}
