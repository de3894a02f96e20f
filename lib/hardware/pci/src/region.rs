//! Memory regions (base address registers, BARs): reading, sizing, placing (PCI 3.0, section
//! 6.2.5).
//!
//! The only way to learn how long a region is takes it away for a moment: the function is told not
//! to answer, and the register is overwritten. So a region is [placed](place) where its address
//! says it - at an odd multiple of its length - and whoever comes later [knows](known) it by
//! reading.

use crate::{Address, COMMAND_IO, COMMAND_MEMORY, Configuration, change_command, command};

/// Number of base address registers of an ordinary function.
pub const COUNT: usize = 6;
/// Offset of the first one.
const FIRST: u16 = 0x10;

/// A memory region of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its physical address; 0 if it has none.
    pub base: u64,
    /// Its length in bytes, a power of two.
    pub length: u64,
    /// It has a 64-bit address, which takes the next register as well.
    pub wide: bool,
}

/// Finds the memory regions of a function and their lengths. While this runs, the function does not
/// answer at its regions; registers are left as they were. I/O regions are not listed.
pub fn size(space: &impl Configuration, address: Address) -> [Option<Region>; COUNT] {
    let before = command(space, address);
    change_command(space, address, 0, COMMAND_IO | COMMAND_MEMORY);
    let mut regions = [None; COUNT];
    let mut number = 0;
    while number < COUNT {
        regions[number] = size_one(space, address, number);
        let wide = matches!(regions[number], Some(Region { wide: true, .. }));
        number += if wide { 2 } else { 1 };
    }
    change_command(space, address, before & (COMMAND_IO | COMMAND_MEMORY), 0);
    regions
}

fn register(number: usize) -> u16 {
    FIRST + 4 * number as u16
}

/// The address in register `number`, and whether it is a wide one; `None` if the register is not
/// that of a memory region.
fn base(space: &impl Configuration, address: Address, number: usize) -> Option<(u64, bool)> {
    let low = space.read(address, register(number));
    let wide = low & 0b110 == 0b100;
    if low & 1 != 0 || (wide && number + 1 == COUNT) {
        return None;
    }
    let high = match wide {
        true => space.read(address, register(number + 1)),
        false => 0,
    };
    Some((u64::from(high) << 32 | u64::from(low & !0xf), wide))
}

/// The memory regions of a function that answers at them, if they were placed inside `window` (as
/// by [`place`]) and nothing else was. Nothing is written.
pub fn known(
    space: &impl Configuration,
    address: Address,
    window: (u64, u64),
) -> Option<[Option<Region>; COUNT]> {
    if command(space, address) & COMMAND_MEMORY == 0 {
        return None;
    }
    let end = window.0.saturating_add(window.1);
    let mut regions = [None; COUNT];
    let mut number = 0;
    while number < COUNT {
        let found = base(space, address, number);
        if let Some((base, wide)) = found.filter(|(base, _)| *base != 0) {
            let length = 1 << base.trailing_zeros();
            if base < window.0 || base.checked_add(length)? > end {
                return None;
            }
            regions[number] = Some(Region { base, length, wide });
        }
        number += if found.is_some_and(|it| it.1) { 2 } else { 1 };
    }
    regions.iter().any(Option::is_some).then_some(regions)
}

fn size_one(space: &impl Configuration, address: Address, number: usize) -> Option<Region> {
    let (base, wide) = base(space, address, number)?;
    let low_mask = probe(space, address, number);
    let high_mask = match wide {
        true => probe(space, address, number + 1),
        false => u32::MAX,
    };
    let mask = u64::from(high_mask) << 32 | u64::from(low_mask & !0xf);
    if low_mask & !0xf == 0 && (!wide || high_mask == 0) {
        return None;
    }
    let length = (!mask).wrapping_add(1);
    length
        .is_power_of_two()
        .then_some(Region { base, length, wide })
}

/// Writes ones to a register and reads which of them stay; puts the old value back.
fn probe(space: &impl Configuration, address: Address, number: usize) -> u32 {
    let before = space.read(address, register(number));
    space.write(address, register(number), u32::MAX);
    let mask = space.read(address, register(number));
    space.write(address, register(number), before);
    mask
}

/// Gives every region without an address one inside `window` (physical start, length), largest
/// first, each at an odd multiple of its length, so that the address says the length. The function
/// must not answer at its regions meanwhile. How many regions found no room.
pub fn place(
    space: &impl Configuration,
    address: Address,
    regions: &mut [Option<Region>; COUNT],
    window: (u64, u64),
) -> usize {
    let mut order: [usize; COUNT] = core::array::from_fn(|number| number);
    order.sort_unstable_by_key(|&number| {
        core::cmp::Reverse(regions[number].map_or(0, |region| region.length))
    });
    let (mut next, end) = (window.0, window.0.saturating_add(window.1));
    let mut homeless = 0;
    for number in order {
        let Some(region) = regions[number].as_mut().filter(|region| region.base == 0) else {
            continue;
        };
        let last = if region.wide { end } else { end.min(1 << 32) };
        let Some(base) = odd_multiple(next, last, region.length) else {
            homeless += 1;
            continue;
        };
        write_base(space, address, number, base, region.wide);
        region.base = base;
        next = base + region.length;
    }
    homeless
}

/// The first odd multiple of `length` from `start` on behind which there is so much room up to
/// `end`.
fn odd_multiple(start: u64, end: u64, length: u64) -> Option<u64> {
    let base = (start.div_ceil(length) | 1).checked_mul(length)?;
    (base.checked_add(length)? <= end).then_some(base)
}

fn write_base(space: &impl Configuration, address: Address, number: usize, base: u64, wide: bool) {
    space.write(address, register(number), base as u32);
    if wide {
        space.write(address, register(number + 1), (base >> 32) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Space, at};

    const DEVICE: Address = at(0, 1, 0);

    /// A function with an I/O region, a 4 KiB region in register 1 and a wide 16 KiB region in
    /// registers 4 and 5.
    fn space(bases: [u32; 2]) -> Space {
        let mut space = Space::default();
        space.add(DEVICE, 0);
        space.set(DEVICE, 0x10, 0xc001);
        space.set(DEVICE, 0x14, bases[0]);
        space.set(DEVICE, 0x20, bases[1] | 0b1100);
        space.set(DEVICE, 0x24, 0);
        space.set(DEVICE, 4, 7);
        space.sizes.insert((DEVICE, 0x14), 4096);
        space.sizes.insert((DEVICE, 0x20), 0x4000);
        space.sizes.insert((DEVICE, 0x24), 1);
        for empty in [0x18, 0x1c] {
            space.sizes.insert((DEVICE, empty), 1 << 32);
        }
        space
    }

    #[test]
    fn sizes_are_found_and_nothing_changes() {
        let space = space([0xfebd_0000, 0xfe00_0000]);
        let before = space.words.borrow().clone();
        let regions = size(&space, DEVICE);
        assert_eq!(
            regions[1],
            Some(Region {
                base: 0xfebd_0000,
                length: 4096,
                wide: false
            })
        );
        assert_eq!(
            regions[4],
            Some(Region {
                base: 0xfe00_0000,
                length: 0x4000,
                wide: true
            })
        );
        assert_eq!([regions[0], regions[2], regions[3], regions[5]], [None; 4]);
        assert_eq!(*space.words.borrow(), before);
    }

    #[test]
    fn regions_without_an_address_get_one() {
        let space = space([0, 0]);
        let mut regions = size(&space, DEVICE);
        assert_eq!(
            place(&space, DEVICE, &mut regions, (0xc000_1000, 0x10_0000)),
            0
        );
        assert_eq!(regions[4].map(|region| region.base), Some(0xc000_4000));
        assert_eq!(regions[1].map(|region| region.base), Some(0xc000_9000));
        assert_eq!(space.read(DEVICE, 0x20), 0xc000_400c);
        assert_eq!(size(&space, DEVICE), regions);
    }

    #[test]
    fn what_has_an_address_stays() {
        let space = space([0xfebd_0000, 0]);
        let mut regions = size(&space, DEVICE);
        place(&space, DEVICE, &mut regions, (0xc000_0000, 0x10_0000));
        assert_eq!(regions[1].map(|region| region.base), Some(0xfebd_0000));
    }

    #[test]
    fn a_window_that_is_too_small_is_noticed() {
        let space = space([0, 0]);
        let mut regions = size(&space, DEVICE);
        assert_eq!(
            place(&space, DEVICE, &mut regions, (0xc000_0000, 0x2000)),
            1
        );
        assert_eq!(regions[4].map(|region| region.base), Some(0));
        assert_eq!(regions[1].map(|region| region.base), Some(0xc000_1000));
    }

    const WINDOW: (u64, u64) = (0xc000_0000, 0x10_0000);

    #[test]
    fn what_was_placed_is_known_by_reading() {
        let space = space([0, 0]);
        change_command(&space, DEVICE, 0, COMMAND_MEMORY);
        let mut regions = size(&space, DEVICE);
        assert_eq!(place(&space, DEVICE, &mut regions, WINDOW), 0);
        assert_eq!(known(&space, DEVICE, WINDOW), None, "it does not answer");
        change_command(&space, DEVICE, COMMAND_MEMORY, 0);
        let before = space.words.borrow().clone();
        assert_eq!(known(&space, DEVICE, WINDOW), Some(regions));
        assert_eq!(*space.words.borrow(), before);
    }

    #[test]
    fn what_firmware_placed_is_not_known() {
        for bases in [
            [0xfebd_1000, 0],
            [0xfebd_1000, 0xc000_4000],
            [0xc000_1000, 0xc00f_8000],
            [0, 0],
        ] {
            let space = space(bases);
            let inside = (WINDOW.0, 0xf_a000);
            assert_eq!(known(&space, DEVICE, inside), None, "{bases:x?}");
        }
        assert_eq!(known(&Space::default(), DEVICE, WINDOW), None);
    }

    #[test]
    fn a_region_longer_than_all_memory_finds_no_room() {
        assert_eq!(odd_multiple(0xc000_0000, u64::MAX, 1 << 63), None);
        assert_eq!(odd_multiple(u64::MAX - 5, u64::MAX, 4096), None);
        assert_eq!(odd_multiple(0x5000, 0x6000, 0x1000), Some(0x5000));
        assert_eq!(odd_multiple(0x5001, 0x8000, 0x1000), Some(0x7000));
    }

    #[test]
    fn a_narrow_region_stays_below_four_gigabytes() {
        let space = space([0, 0]);
        let mut regions = size(&space, DEVICE);
        assert_eq!(place(&space, DEVICE, &mut regions, (1 << 32, 0x10_0000)), 1);
        assert_eq!(regions[1].map(|region| region.base), Some(0));
    }

    #[test]
    fn a_function_that_is_not_there_has_no_regions() {
        assert_eq!(size(&Space::default(), DEVICE), [None; COUNT]);
    }
}
