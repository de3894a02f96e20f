//! The root pointer, table headers, and the root tables (5.2.5 to 5.2.8).

use crate::bytes::{u8_at, u32_at, u64_at};

/// Bytes of the first version of the root pointer.
const RSDP_BYTES: usize = 20;
/// Bytes of a table header.
const HEADER_BYTES: usize = 36;

/// Whether all bytes sum to zero.
fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

/// Where the root table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootPointer {
    /// Physical address of the RSDT or XSDT.
    pub address: u64,
    /// It is an XSDT: its entries have 64 bits.
    pub wide: bool,
}

impl RootPointer {
    /// Bytes that [`parse`](Self::parse) wants to see.
    pub const BYTES: usize = 36;

    /// Reads an RSDP. `None` if signature or checksum are wrong.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let first = bytes.get(..RSDP_BYTES)?;
        if !first.starts_with(b"RSD PTR ") || !sums_to_zero(first) {
            return None;
        }
        let xsdt = u64_at(bytes, 24).unwrap_or(0);
        if first[15] >= 2 && xsdt != 0 && sums_to_zero(bytes.get(..Self::BYTES)?) {
            return Some(Self {
                address: xsdt,
                wide: true,
            });
        }
        let address = u64::from(u32_at(bytes, 16)?);
        (address != 0).then_some(Self {
            address,
            wide: false,
        })
    }
}

/// What every table starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The four letters that name the table.
    pub signature: [u8; 4],
    /// Bytes of the whole table.
    pub length: usize,
}

impl Header {
    /// Bytes that [`parse`](Self::parse) wants to see.
    pub const BYTES: usize = HEADER_BYTES;
    /// No sane table is longer.
    const LONGEST: usize = 16 << 20;

    /// Reads a header. `None` if the length is impossible.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let signature = bytes.get(..4)?.try_into().ok()?;
        let length = u32_at(bytes, 4)? as usize;
        let sane = (HEADER_BYTES..=Self::LONGEST).contains(&length);
        sane.then_some(Self { signature, length })
    }
}

/// Checks that `bytes` is a whole table with the signature and a right checksum.
pub fn validate(bytes: &[u8], signature: &[u8; 4]) -> bool {
    Header::parse(bytes).is_some_and(|header| {
        header.signature == *signature && header.length == bytes.len() && sums_to_zero(bytes)
    })
}

/// The table addresses in a root table.
pub fn entries(table: &[u8], wide: bool) -> impl Iterator<Item = u64> + '_ {
    let body = table.get(HEADER_BYTES..).unwrap_or(&[]);
    let size = if wide { 8 } else { 4 };
    body.chunks_exact(size).filter_map(move |entry| {
        let address = if wide {
            u64_at(entry, 0)?
        } else {
            u64::from(u32_at(entry, 0)?)
        };
        (address != 0 && u8_at(entry, 0).is_some()).then_some(address)
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testing::{fix_checksum, table};
    use std::vec::Vec;

    fn rsdp(revision: u8, rsdt: u32, xsdt: u64) -> Vec<u8> {
        let mut bytes = Vec::from(b"RSD PTR ");
        bytes.resize(36, 0);
        bytes[15] = revision;
        bytes[16..20].copy_from_slice(&rsdt.to_le_bytes());
        bytes[24..32].copy_from_slice(&xsdt.to_le_bytes());
        fix_checksum(&mut bytes[..20], 8);
        fix_checksum(&mut bytes, 32);
        bytes
    }

    #[test]
    fn both_revisions() {
        let old = RootPointer {
            address: 0x1000,
            wide: false,
        };
        let new = RootPointer {
            address: 0x2000,
            wide: true,
        };
        assert_eq!(RootPointer::parse(&rsdp(0, 0x1000, 0)[..20]), Some(old));
        assert_eq!(RootPointer::parse(&rsdp(2, 0x1000, 0x2000)), Some(new));
    }

    #[test]
    fn damaged_root_pointers_are_refused() {
        let good = rsdp(2, 0x1000, 0x2000);
        let mut wrong_name = good.clone();
        wrong_name[0] = b'X';
        let mut wrong_sum = good.clone();
        wrong_sum[17] ^= 1;
        for bytes in [&wrong_name[..], &wrong_sum, &good[..19], &[]] {
            assert_eq!(RootPointer::parse(bytes), None);
        }
    }

    #[test]
    fn tables_are_validated() {
        let good = table(b"APIC", &[1, 2, 3]);
        assert!(validate(&good, b"APIC"));
        assert!(!validate(&good, b"MCFG"));
        assert!(!validate(&good[..38], b"APIC"));
        let mut bad = good.clone();
        bad[37] ^= 4;
        assert!(!validate(&bad, b"APIC"));
    }

    #[test]
    fn impossible_lengths_are_refused() {
        let mut bytes = table(b"APIC", &[]);
        for length in [0_u32, 35, u32::MAX] {
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
            assert_eq!(Header::parse(&bytes), None);
        }
    }

    #[test]
    fn entries_of_both_widths() {
        let narrow = table(b"RSDT", &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9]);
        assert_eq!(entries(&narrow, false).collect::<Vec<_>>(), [1, 2]);
        let wide = table(b"XSDT", &[1, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(entries(&wide, true).collect::<Vec<_>>(), [0x1_0000_0001]);
    }
}
