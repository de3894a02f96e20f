//! The PCI configuration space: finding functions, sizing and placing their memory regions, MSI-X.
//!
//! Pure logic over [`Configuration`], which reads and writes the space. The layout of the header is
//! that of the PCI Local Bus Specification 3.0, chapter 6; MSI-X is section 6.8.2; the flat address
//! of a register is that of the PCI Express Base Specification, section 7.2.2 (ECAM).
//!
//! Finding functions only reads, so that it can be done again while drivers run. Sizing writes; it
//! is done for a function only when a driver claims it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod msix;
pub mod region;

use alloc::vec;
use alloc::vec::Vec;

/// Where a function sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Bus number.
    pub bus: u8,
    /// Device number, 0 to 31.
    pub device: u8,
    /// Function number, 0 to 7.
    pub function: u8,
}

impl Address {
    /// The offset of a register of this function in the configuration space of its bus.
    pub fn offset_in_bus(&self, register: u16) -> usize {
        usize::from(self.device & 31) << 15
            | usize::from(self.function & 7) << 12
            | usize::from(register & 0xfff)
    }
}

/// Bytes of configuration space of one bus.
pub const BUS_BYTES: u64 = 1 << 20;

/// Access to the configuration space. `offset` is a multiple of 4 below 4,096. What is not there
/// reads as all ones.
pub trait Configuration {
    /// Reads 32 bits.
    fn read(&self, address: Address, offset: u16) -> u32;
    /// Writes 32 bits.
    fn write(&self, address: Address, offset: u16, value: u32);
}

/// What the header says of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Where it sits.
    pub address: Address,
    /// Vendor number.
    pub vendor: u16,
    /// Device number given by the vendor.
    pub device: u16,
    /// Class, subclass and programming interface, as one number of 24 bits.
    pub class: u32,
    /// Revision.
    pub revision: u8,
}

/// Offset of the command (low half) and status (high half) registers.
const COMMAND: u16 = 0x04;
/// Command bit: the function answers at its I/O regions.
pub const COMMAND_IO: u32 = 1 << 0;
/// Command bit: the function answers at its memory regions.
pub const COMMAND_MEMORY: u32 = 1 << 1;
/// Command bit: the function may access memory by itself.
pub const COMMAND_MASTER: u32 = 1 << 2;
/// Command bit: the function does not raise its interrupt line.
pub const COMMAND_NO_LINE: u32 = 1 << 10;

/// Header type of a bridge to another PCI bus.
const BRIDGE: u8 = 1;

/// All functions that can be reached from bus `first` through bridges, in the order of their
/// addresses. Buses outside `first..=last` are left out, and so are bridges that firmware has not
/// given a bus.
pub fn functions(space: &impl Configuration, first: u8, last: u8) -> Vec<Function> {
    let mut found = Vec::new();
    let mut buses = vec![first];
    let mut next = 0;
    while let Some(&bus) = buses.get(next) {
        next += 1;
        for device in 0..32 {
            let bridges = device_functions(space, bus, device, &mut found);
            buses.extend(
                bridges
                    .into_iter()
                    .filter(|behind| (first..=last).contains(behind)),
            );
        }
        // A bus that is behind two bridges is visited once, so that misconfigured bridges cannot
        // make a circle.
        let mut known = Vec::with_capacity(buses.len());
        buses.retain(|bus| {
            if known.contains(bus) {
                false
            } else {
                known.push(*bus);
                true
            }
        });
    }
    found.sort_unstable_by_key(|function| function.address);
    found
}

/// Adds the functions of one device to `found`; the buses behind those that are bridges.
fn device_functions(
    space: &impl Configuration,
    bus: u8,
    device: u8,
    found: &mut Vec<Function>,
) -> Vec<u8> {
    let mut bridges = Vec::new();
    let mut count = 1;
    let mut function = 0;
    while function < count {
        let address = Address {
            bus,
            device,
            function,
        };
        function += 1;
        let Some(there) = function_at(space, address) else {
            if address.function == 0 {
                return bridges;
            }
            continue;
        };
        found.push(there);
        let header = (space.read(address, 0x0c) >> 16) as u8;
        if header & 0x80 != 0 {
            count = 8;
        }
        if header & 0x7f == BRIDGE {
            bridges.push((space.read(address, 0x18) >> 8) as u8);
        }
    }
    bridges
}

/// The function at an address, if there is one.
pub fn function_at(space: &impl Configuration, address: Address) -> Option<Function> {
    let numbers = space.read(address, 0);
    if matches!(numbers as u16, 0 | 0xffff) {
        return None;
    }
    let class = space.read(address, 8);
    Some(Function {
        address,
        vendor: numbers as u16,
        device: (numbers >> 16) as u16,
        class: class >> 8,
        revision: class as u8,
    })
}

/// Reads the command register.
pub fn command(space: &impl Configuration, address: Address) -> u32 {
    space.read(address, COMMAND) & 0xffff
}

/// Switches bits of the command register on and off. The status register beside it is cleared by
/// ones, so it is written with zeros.
pub fn change_command(space: &impl Configuration, address: Address, on: u32, off: u32) {
    let value = (command(space, address) | on) & !off;
    space.write(address, COMMAND, value & 0xffff);
}

/// Offset of the first capability with this number.
pub fn capability(space: &impl Configuration, address: Address, number: u8) -> Option<u16> {
    if space.read(address, COMMAND) & (1 << 20) == 0 {
        return None;
    }
    let mut at = (space.read(address, 0x34) & 0xfc) as u16;
    // A list with more entries than fit behind the header goes in a circle.
    for _ in 0..48 {
        if at < 0x40 {
            return None;
        }
        let head = space.read(address, at);
        if head as u8 == number {
            return Some(at);
        }
        at = (head >> 8 & 0xfc) as u16;
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use core::cell::RefCell;

    /// A configuration space of words; what is not there reads as all ones. `sizes` are those of
    /// memory regions, by address and offset of the register.
    #[derive(Default)]
    pub struct Space {
        pub words: RefCell<BTreeMap<(Address, u16), u32>>,
        pub sizes: BTreeMap<(Address, u16), u64>,
    }

    pub const fn at(bus: u8, device: u8, function: u8) -> Address {
        Address {
            bus,
            device,
            function,
        }
    }

    impl Space {
        pub fn set(&self, address: Address, offset: u16, value: u32) {
            self.words.borrow_mut().insert((address, offset), value);
        }

        pub fn add(&self, address: Address, header: u8) {
            self.set(address, 0, 0x1042_1af4);
            for offset in (4..0x100).step_by(4) {
                self.set(address, offset, 0);
            }
            self.set(address, 8, 0x0100_0001);
            self.set(address, 0x0c, u32::from(header) << 16);
        }
    }

    impl Configuration for Space {
        fn read(&self, address: Address, offset: u16) -> u32 {
            self.words
                .borrow()
                .get(&(address, offset))
                .copied()
                .unwrap_or(u32::MAX)
        }
        fn write(&self, address: Address, offset: u16, value: u32) {
            let fixed = match self.sizes.get(&(address, offset)) {
                // The upper half of a wide register: every bit can be written.
                Some(1) => value,
                Some(size) => {
                    value & !(*size as u32).wrapping_sub(1) | self.read(address, offset) & 0xf
                }
                None => value,
            };
            self.set(address, offset, fixed);
        }
    }

    fn addresses(space: &Space) -> Vec<Address> {
        functions(space, 0, 255)
            .iter()
            .map(|function| function.address)
            .collect()
    }

    #[test]
    fn finds_functions_and_what_is_behind_bridges() {
        let space = Space::default();
        space.add(at(0, 0, 0), 0);
        space.add(at(0, 31, 0), 0x80);
        space.add(at(0, 31, 3), 0);
        space.add(at(0, 2, 0), 1);
        space.set(at(0, 2, 0), 0x18, 0x0001_0100);
        space.add(at(1, 0, 0), 0);
        assert_eq!(
            addresses(&space),
            [
                at(0, 0, 0),
                at(0, 2, 0),
                at(0, 31, 0),
                at(0, 31, 3),
                at(1, 0, 0)
            ]
        );
        let first = functions(&space, 0, 0)[0];
        assert_eq!(
            (first.vendor, first.device, first.class, first.revision),
            (0x1af4, 0x1042, 0x01_0000, 1)
        );
    }

    #[test]
    fn a_single_function_device_is_not_asked_for_others() {
        let space = Space::default();
        space.add(at(0, 1, 0), 0);
        space.add(at(0, 1, 1), 0);
        assert_eq!(addresses(&space), [at(0, 1, 0)]);
    }

    #[test]
    fn bridges_in_a_circle_end() {
        let space = Space::default();
        for (bus, behind) in [(0, 1), (1, 0)] {
            space.add(at(bus, 0, 0), 1);
            space.set(at(bus, 0, 0), 0x18, behind << 8);
        }
        assert_eq!(addresses(&space), [at(0, 0, 0), at(1, 0, 0)]);
    }

    #[test]
    fn a_bridge_without_a_bus_is_no_way() {
        let space = Space::default();
        space.add(at(0, 0, 0), 1);
        space.set(at(0, 0, 0), 0x18, 0);
        assert_eq!(addresses(&space), [at(0, 0, 0)]);
        assert!(functions(&Space::default(), 0, 255).is_empty());
    }

    #[test]
    fn the_command_register_changes_without_the_status() {
        let space = Space::default();
        space.add(at(0, 1, 0), 0);
        space.set(at(0, 1, 0), 4, 0xf900_0003);
        change_command(&space, at(0, 1, 0), COMMAND_MASTER, COMMAND_IO);
        assert_eq!(space.read(at(0, 1, 0), 4), 0x0000_0006);
    }

    #[test]
    fn capabilities_are_found_and_circles_left() {
        let space = Space::default();
        let address = at(0, 1, 0);
        space.add(address, 0);
        assert_eq!(capability(&space, address, 5), None);
        space.set(address, 4, 1 << 20);
        space.set(address, 0x34, 0x40);
        space.set(address, 0x40, 0x5001);
        space.set(address, 0x50, 0x4005);
        assert_eq!(capability(&space, address, 5), Some(0x50));
        assert_eq!(capability(&space, address, 0x11), None);
        assert_eq!(capability(&space, at(0, 9, 0), 5), None);
    }

    #[test]
    fn registers_have_flat_addresses() {
        assert_eq!(at(3, 31, 7).offset_in_bus(0xffc), 0xf_fffc);
        assert_eq!(at(0, 1, 0).offset_in_bus(0), 0x8000);
    }
}
