//! MSI-X (PCI 3.0, section 6.8.2): one message for each vector, in a table in a memory region.
//!
//! Whoever can write the table can make the device write anywhere, so the pages with the table are
//! kept from drivers: [`before_table`] says what is left of a region.

use crate::{Address, Configuration, capability, region};

/// The number of the MSI-X capability.
const CAPABILITY: u8 = 0x11;
/// Message control bit, as it stands in the upper half of the capability's first word: on.
const ENABLE: u32 = 1 << 31;
/// Message control bit: all vectors masked.
const MASK_ALL: u32 = 1 << 30;
/// Bytes of a table entry.
pub const ENTRY: u64 = 16;
/// Bytes of a page, the unit in which memory is mapped.
const PAGE: u64 = 4096;

/// Where a function's MSI-X structures lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msix {
    /// Offset of the capability in the configuration space.
    pub capability: u16,
    /// Number of vectors.
    pub vectors: u16,
    /// The region with the table.
    pub bar: u8,
    /// The table's offset in that region.
    pub offset: u64,
}

/// Finds the MSI-X structures of a function.
pub fn find(space: &impl Configuration, address: Address) -> Option<Msix> {
    let capability = capability(space, address, CAPABILITY)?;
    let control = space.read(address, capability) >> 16;
    let table = space.read(address, capability + 4);
    let (bar, offset) = ((table & 7) as u8, u64::from(table & !7));
    let vectors = (control & 0x7ff) as u16 + 1;
    (usize::from(bar) < region::COUNT).then_some(Msix {
        capability,
        vectors,
        bar,
        offset,
    })
}

impl Msix {
    /// The table's length in bytes.
    pub fn table_bytes(&self) -> u64 {
        u64::from(self.vectors) * ENTRY
    }

    /// The pages with the table, as offset in the region and length, both multiples of the page
    /// size.
    pub fn table_pages(&self) -> (u64, u64) {
        let start = self.offset & !(PAGE - 1);
        (
            start,
            (self.offset + self.table_bytes()).next_multiple_of(PAGE) - start,
        )
    }

    /// Switches MSI-X on, with all vectors that are not masked one by one live; or off.
    pub fn switch(&self, space: &impl Configuration, address: Address, on: bool) {
        let control = space.read(address, self.capability) & !(ENABLE | MASK_ALL);
        let control = if on { control | ENABLE } else { control };
        space.write(address, self.capability, control);
    }
}

/// What a table entry holds for a message: four words to be written at [`ENTRY`] times the vector,
/// the last of them last. The vector is not masked.
pub fn entry(address: u64, data: u32) -> [u32; 4] {
    [address as u32, (address >> 32) as u32, data, 0]
}

/// The part of region `bar`, of `length` bytes, that a driver may have: what comes before the pages
/// with the table, or all of it if they are elsewhere. `None` if nothing is left.
pub fn before_table(msix: Option<&Msix>, bar: u8, length: u64) -> Option<u64> {
    let left = match msix {
        Some(msix) if msix.bar == bar => length.min(msix.table_pages().0),
        _ => length,
    };
    (left > 0).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Space, at};

    const DEVICE: Address = at(0, 1, 0);

    fn space(control: u32, table: u32) -> Space {
        let space = Space::default();
        space.add(DEVICE, 0);
        space.set(DEVICE, 4, 1 << 20);
        space.set(DEVICE, 0x34, 0x98);
        space.set(DEVICE, 0x98, control << 16 | u32::from(CAPABILITY));
        space.set(DEVICE, 0x9c, table);
        space
    }

    #[test]
    fn finds_and_switches() {
        let space = space(0x4001, 0x2003);
        let msix = find(&space, DEVICE).expect("there");
        assert_eq!(
            msix,
            Msix {
                capability: 0x98,
                vectors: 2,
                bar: 3,
                offset: 0x2000
            }
        );
        msix.switch(&space, DEVICE, true);
        assert_eq!(space.read(DEVICE, 0x98), 0x8001_0011);
        msix.switch(&space, DEVICE, false);
        assert_eq!(space.read(DEVICE, 0x98), 0x0001_0011);
    }

    #[test]
    fn a_table_in_a_region_that_does_not_exist_is_not_found() {
        assert_eq!(find(&space(1, 6), DEVICE), None);
        assert_eq!(find(&Space::default(), DEVICE), None);
    }

    #[test]
    fn drivers_do_not_get_the_table() {
        let msix = Msix {
            capability: 0x98,
            vectors: 64,
            bar: 0,
            offset: 0x2c10,
        };
        assert_eq!(msix.table_pages(), (0x2000, 0x2000));
        assert_eq!(before_table(Some(&msix), 0, 0x4000), Some(0x2000));
        assert_eq!(before_table(Some(&msix), 4, 0x4000), Some(0x4000));
        assert_eq!(
            before_table(
                Some(&Msix {
                    offset: 0x800,
                    ..msix
                }),
                0,
                0x4000
            ),
            None
        );
        assert_eq!(before_table(None, 0, 0x4000), Some(0x4000));
    }

    #[test]
    fn entries_are_not_masked() {
        assert_eq!(entry(0xfee0_1000, 0x41), [0xfee0_1000, 0, 0x41, 0]);
    }
}
