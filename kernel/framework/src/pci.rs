//! PCI Express as far as the kernel itself needs it: where configuration space is, and whether a
//! device may use memory by itself. Everything else is the PCI domain's.
//!
//! Configuration space is no range that a driver could be given: a region register of a device may
//! have been programmed, by firmware or by mistake, with an address inside of it. Who is to have it
//! asks for it by name.

pub use crate::acpi::PciSegment;

use crate::acpi::platform;
use crate::io::{IoError, IoMem};
use crate::kprintln;
use crate::mem::kspace::{Cache, Window};
use crate::sync::SpinLock;
use alloc::vec::Vec;

/// Offset of the command register (PCI 3.0, 6.2.2) and its bus-master bit.
const COMMAND: usize = 4;
const BUS_MASTER: u16 = 1 << 2;
/// Bytes of configuration space of a bus (PCI Express, 7.2.2).
const BUS_BYTES: u64 = 1 << 20;
/// What reads of an absent function return.
const ABSENT: u16 = 0xffff;

/// The configuration windows, from the MCFG table.
pub fn ecam() -> &'static [PciSegment] {
    &platform().pci
}

/// The configuration space of a bus of segment 0, for whoever is to have power over all devices on
/// it. One at a time has it.
///
/// # Errors
/// As for [`IoMem::acquire`]; [`IoError::BadRange`] if no configuration window covers the bus.
pub fn configuration(bus: u8) -> Result<IoMem, IoError> {
    let segment = segment_of(bus).ok_or(IoError::BadRange)?;
    let start = segment.base + u64::from(bus) * BUS_BYTES;
    IoMem::acquire_configuration(start, BUS_BYTES as usize)
}

/// The physical ranges (start, bytes) of all configuration windows.
pub(crate) fn configuration_ranges() -> impl Iterator<Item = (u64, u64)> {
    ecam().iter().map(|segment| {
        let buses = u64::from(segment.last_bus.saturating_sub(segment.first_bus)) + 1;
        let start = segment.base + u64::from(segment.first_bus) * BUS_BYTES;
        (start, buses * BUS_BYTES)
    })
}

/// The window of segment 0 that covers the bus.
fn segment_of(bus: u8) -> Option<&'static PciSegment> {
    ecam()
        .iter()
        .find(|s| s.segment == 0 && (s.first_bus..=s.last_bus).contains(&bus))
}

/// Why a device could not be stopped or started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopError {
    /// No configuration window covers the bus, or the numbers are impossible.
    NoWindow,
    /// No function answers there.
    Absent,
    /// No memory to map its configuration space.
    NoMemory,
}

/// Whether a function answers there, in segment 0.
///
/// # Errors
/// See [`StopError`].
pub fn answers(bus: u8, device: u8, function: u8) -> Result<(), StopError> {
    with_window(bus, device, function, |_| ())
}

/// Configuration spaces that stay mapped, by address: a device whose driver crashes again and again
/// is stopped and started each time, and to map and unmap costs more than that.
static MAPPED: SpinLock<Vec<(u64, Window)>> = SpinLock::new(Vec::new());
/// Most of them.
const MOST_MAPPED: usize = 64;

/// Has `work` done with the address of the configuration space of a function of segment 0 that
/// answers.
fn with_window<R>(
    bus: u8,
    device: u8,
    function: u8,
    work: impl FnOnce(usize) -> R,
) -> Result<R, StopError> {
    let segment = segment_of(bus).filter(|_| device < 32 && function < 8);
    let segment = segment.ok_or(StopError::NoWindow)?;
    let number = u64::from(bus) << 8 | u64::from(device) << 3 | u64::from(function);
    let place = segment.base + (number << 12);
    let mut mapped = MAPPED.lock();
    if let Some((_, window)) = mapped.iter().find(|(other, _)| *other == place) {
        return answered(window.address()).map(work);
    }
    let window = Window::map(place, 4096, Cache::Device).map_err(|_| StopError::NoMemory)?;
    let result = answered(window.address()).map(work);
    if result.is_ok() && mapped.len() < MOST_MAPPED && mapped.try_reserve(1).is_ok() {
        mapped.push((place, window));
    }
    result
}

/// The configuration space that is mapped at `address`, if a function answers there.
fn answered(address: usize) -> Result<usize, StopError> {
    // SAFETY: both callers have a window that maps a function's configuration space there.
    match unsafe { (address as *const u16).read_volatile() } {
        ABSENT => Err(StopError::Absent),
        _ => Ok(address),
    }
}

/// Stops all DMA and interrupt messages of a function in segment 0, by clearing its bus-master bit,
/// and waits until the write has reached it.
///
/// # Errors
/// See [`StopError`].
pub fn quiesce(bus: u8, device: u8, function: u8) -> Result<(), StopError> {
    if set_master(bus, device, function, false)? {
        kprintln!("pci: {bus:02x}:{device:02x}.{function} ignores its bus-master bit");
    }
    Ok(())
}

/// Lets a function of segment 0 use memory by itself, by setting its bus-master bit. What it may
/// know of memory must be memory that is its own.
///
/// # Errors
/// See [`StopError`].
pub fn start(bus: u8, device: u8, function: u8) -> Result<(), StopError> {
    set_master(bus, device, function, true).map(|_| ())
}

/// Sets or clears the bus-master bit; whether it is set afterwards.
fn set_master(bus: u8, device: u8, function: u8, on: bool) -> Result<bool, StopError> {
    let master = if on { BUS_MASTER } else { 0 };
    with_window(bus, device, function, |address| {
        let command = (address + COMMAND) as *mut u16;
        // SAFETY: the function's configuration space is mapped there meanwhile. Clearing the
        // bus-master bit only takes rights away; setting it lets the device reach all memory, as
        // long as there is no IOMMU: that is its driver's business. The read afterwards flushes the
        // posted write.
        unsafe {
            command.write_volatile(command.read_volatile() & !BUS_MASTER | master);
            command.read_volatile() & BUS_MASTER != 0
        }
    })
}
