//! PCI Express as far as the kernel itself needs it: where configuration space is, and stopping a
//! device whose driver has died. Everything else is the PCI domain's.

pub use crate::acpi::PciSegment;

use crate::acpi::platform;
use crate::kprintln;
use crate::mem::kspace::{Cache, Window};

/// Offset of the command register (PCI 3.0, 6.2.2) and its bus-master bit.
const COMMAND: usize = 4;
const BUS_MASTER: u16 = 1 << 2;
/// What reads of an absent function return.
const ABSENT: u16 = 0xffff;

/// The configuration windows, from the MCFG table.
pub fn ecam() -> &'static [PciSegment] {
    &platform().pci
}

/// Why a device could not be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuiesceError {
    /// No configuration window covers the bus, or the numbers are impossible.
    NoWindow,
    /// No function answers there.
    Absent,
    /// No memory to map its configuration space.
    NoMemory,
}

/// Stops all DMA and interrupt messages of a function in segment 0, by clearing its bus-master bit,
/// and waits until the write has reached it.
pub fn quiesce(bus: u8, device: u8, function: u8) -> Result<(), QuiesceError> {
    let segment = ecam()
        .iter()
        .find(|s| s.segment == 0 && (s.first_bus..=s.last_bus).contains(&bus));
    let Some(segment) = segment.filter(|_| device < 32 && function < 8) else {
        return Err(QuiesceError::NoWindow);
    };
    let number = u64::from(bus) << 8 | u64::from(device) << 3 | u64::from(function);
    let window = Window::map(segment.base + (number << 12), 4096, Cache::Device)
        .map_err(|_| QuiesceError::NoMemory)?;
    let vendor = window.address() as *const u16;
    let command = (window.address() + COMMAND) as *mut u16;
    // SAFETY: the window maps the function's configuration space while it lives. Clearing the
    // bus-master bit only takes rights away; the read afterwards flushes the posted write.
    unsafe {
        if vendor.read_volatile() == ABSENT {
            return Err(QuiesceError::Absent);
        }
        command.write_volatile(command.read_volatile() & !BUS_MASTER);
        let now = command.read_volatile();
        if now & BUS_MASTER != 0 {
            kprintln!("pci: {bus:02x}:{device:02x}.{function} ignores its bus-master bit");
        }
    }
    Ok(())
}
