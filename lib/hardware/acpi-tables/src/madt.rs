//! The MADT: processors and interrupt controllers (5.2.12).

use crate::bytes::{u8_at, u16_at, u32_at, u64_at};

/// Offset of the first entry.
const ENTRIES: usize = 44;

/// A processor that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its local APIC's id.
    pub apic_id: u32,
}

/// An I/O APIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoApic {
    /// Its id.
    pub id: u8,
    /// Physical address of its registers.
    pub address: u32,
    /// Global system interrupt of its first input.
    pub gsi_base: u32,
}

/// When an interrupt input counts as raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// As the bus does: ISA edge, PCI level.
    Bus,
    /// On an edge.
    Edge,
    /// While the level is active.
    Level,
}

/// Which level is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polarity {
    /// As the bus does: ISA high, PCI low.
    Bus,
    /// High.
    High,
    /// Low.
    Low,
}

/// An ISA interrupt that arrives somewhere else than at the input of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// ISA interrupt number.
    pub isa: u8,
    /// Global system interrupt it arrives at.
    pub gsi: u32,
    /// Its trigger mode.
    pub trigger: Trigger,
    /// Its polarity.
    pub polarity: Polarity,
}

/// One thing the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadtEntry {
    /// A processor.
    Cpu(Cpu),
    /// An I/O APIC.
    IoApic(IoApic),
    /// An interrupt source override.
    Override(Override),
    /// The local APICs' registers are at this address instead.
    LocalApicAddress(u64),
}

/// A MADT.
#[derive(Clone, Copy, Debug)]
pub struct Madt<'a>(&'a [u8]);

impl<'a> Madt<'a> {
    /// Wraps a whole table, header included.
    pub fn new(table: &'a [u8]) -> Self {
        Self(table)
    }

    /// Physical address of the local APICs' registers, as the table's fixed part says.
    pub fn local_apic(&self) -> u64 {
        u64::from(u32_at(self.0, 36).unwrap_or(0))
    }

    /// The entries of the kinds we know; others are skipped.
    pub fn entries(&self) -> impl Iterator<Item = MadtEntry> + 'a {
        let mut rest = self.0.get(ENTRIES..).unwrap_or(&[]);
        core::iter::from_fn(move || {
            let length = usize::from(u8_at(rest, 1)?);
            if length < 2 || length > rest.len() {
                return None;
            }
            let (entry, after) = rest.split_at(length);
            rest = after;
            Some(parse(entry))
        })
        .flatten()
    }
}

/// Reads one entry; `None` if it is of no interest.
fn parse(entry: &[u8]) -> Option<MadtEntry> {
    match u8_at(entry, 0)? {
        0 => cpu(u8_at(entry, 3)?.into(), u32_at(entry, 4)?),
        1 => Some(MadtEntry::IoApic(IoApic {
            id: u8_at(entry, 2)?,
            address: u32_at(entry, 4)?,
            gsi_base: u32_at(entry, 8)?,
        })),
        2 => source_override(entry),
        5 => u64_at(entry, 4).map(MadtEntry::LocalApicAddress),
        9 => cpu(u32_at(entry, 4)?, u32_at(entry, 8)?),
        _ => None,
    }
}

/// A processor, if it is enabled (flag bit 0).
fn cpu(apic_id: u32, flags: u32) -> Option<MadtEntry> {
    (flags & 1 != 0).then_some(MadtEntry::Cpu(Cpu { apic_id }))
}

/// An interrupt source override (5.2.12.5).
fn source_override(entry: &[u8]) -> Option<MadtEntry> {
    let flags = u16_at(entry, 8)?;
    let polarity = match flags & 3 {
        1 => Polarity::High,
        3 => Polarity::Low,
        _ => Polarity::Bus,
    };
    let trigger = match flags >> 2 & 3 {
        1 => Trigger::Edge,
        3 => Trigger::Level,
        _ => Trigger::Bus,
    };
    Some(MadtEntry::Override(Override {
        isa: u8_at(entry, 3)?,
        gsi: u32_at(entry, 4)?,
        trigger,
        polarity,
    }))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testing::table;
    use std::vec::Vec;

    fn entries(body: &[u8]) -> Vec<MadtEntry> {
        let mut all = Vec::from([0, 0, 0xe0, 0xfe, 1, 0, 0, 0]);
        all.extend(body);
        let bytes = table(b"APIC", &all);
        assert_eq!(Madt::new(&bytes).local_apic(), 0xfee0_0000);
        Madt::new(&bytes).entries().collect()
    }

    #[test]
    fn processors_that_are_off_are_left_out() {
        let body = [0, 8, 0, 5, 1, 0, 0, 0, 0, 8, 1, 6, 0, 0, 0, 0];
        assert_eq!(entries(&body), [MadtEntry::Cpu(Cpu { apic_id: 5 })]);
    }

    #[test]
    fn an_override_with_its_flags() {
        let body = [2, 10, 0, 9, 9, 0, 0, 0, 0x0d, 0];
        let expected = Override {
            isa: 9,
            gsi: 9,
            trigger: Trigger::Level,
            polarity: Polarity::High,
        };
        assert_eq!(entries(&body), [MadtEntry::Override(expected)]);
    }

    #[test]
    fn unknown_entries_are_skipped() {
        let body = [0x80, 4, 1, 2, 1, 12, 2, 0, 0, 0, 0xc0, 0xfe, 24, 0, 0, 0];
        let expected = IoApic {
            id: 2,
            address: 0xfec0_0000,
            gsi_base: 24,
        };
        assert_eq!(entries(&body), [MadtEntry::IoApic(expected)]);
    }

    #[test]
    fn broken_lengths_end_the_list() {
        assert_eq!(entries(&[0, 0, 0, 0]), []);
        assert_eq!(entries(&[0, 1, 0, 0]), []);
        assert_eq!(entries(&[0, 200, 0, 0]), []);
        assert_eq!(entries(&[1, 4, 0, 0]), []);
        assert_eq!(Madt::new(&[]).entries().count(), 0);
    }
}
