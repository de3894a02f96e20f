//! Tests of device access: what is refused, what is checked, and that what is allowed works.

use alloc::format;
use alloc::string::String;

use super::{Test, gives_back};
use crate::acpi::platform;
use crate::check;
use crate::dma::DmaCoherent;
use crate::io::{IoError, IoMem, IoPort};
use crate::mem::setup::kernel_table;
use crate::mem::{PAGE_SIZE, paging};
use crate::pci::{self, StopError};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("io-memory-refuses-ram", memory_refuses_ram),
    ("io-memory-refuses-controllers", memory_refuses_controllers),
    ("io-memory-has-one-owner", memory_has_one_owner),
    ("io-memory-of-many-pages", memory_of_many_pages),
    (
        "io-memory-refuses-configuration",
        memory_refuses_configuration,
    ),
    ("io-memory-reads-configuration", memory_reads_configuration),
    ("io-ports-refuse-sensitive", ports_refuse_sensitive),
    ("io-ports-are-bounded", ports_are_bounded),
    ("dma-numbers-and-bytes", dma_numbers_and_bytes),
    ("dma-is-bounded", dma_is_bounded),
    ("dma-comes-back", dma_comes_back),
    ("pci-quiesce", quiesce),
    ("pci-quiesce-nothing", quiesce_nothing),
];

/// Whether a range of memory is refused with this error.
fn refused(physical: u64, bytes: usize, expected: IoError) -> Result<(), String> {
    match IoMem::acquire(physical, bytes) {
        Err(error) if error == expected => Ok(()),
        Err(other) => Err(format!("{physical:#x}: {other:?} instead of {expected:?}")),
        Ok(_) => Err(format!("{physical:#x}+{bytes:#x} was given away")),
    }
}

fn memory_refuses_ram() -> Result<(), String> {
    let memory = crate::boot::start_info::memory_map();
    for range in memory.ranges() {
        refused(range.start, 0x1000, IoError::Sensitive)?;
        refused(range.end - 8, 0x1000, IoError::Sensitive)?;
    }
    for physical in [0x1000, 0xe_0000, 0x10_0000, 0x20_0000] {
        refused(physical, 0x1000, IoError::Sensitive)?;
    }
    refused(0, 0xa_0000, IoError::Sensitive)?;
    refused(0xb000_0000, 0, IoError::BadRange)?;
    refused(u64::MAX - 7, 16, IoError::BadRange)?;
    refused(0xb000_0000, usize::MAX, IoError::BadRange)
}

fn memory_refuses_controllers() -> Result<(), String> {
    for (physical, _) in crate::acpi::sensitive_memory() {
        refused(physical, 8, IoError::Sensitive)?;
    }
    // Interrupt messages, a TPM, the chipset's registers, the firmware, its last bytes.
    for physical in [
        0xfee0_1000,
        0xfed4_0000,
        0xfed1_c000,
        0xffc0_0000,
        0xffff_f000,
    ] {
        refused(physical, 8, IoError::Sensitive)?;
    }
    // A range that merely contains one is refused too.
    refused(0xfe80_0000, 0x80_0000, IoError::Sensitive)
}

/// Where nothing is on the machines of the tests, and a device could be.
const NOTHING: u64 = 0xd000_0000;

fn memory_has_one_owner() -> Result<(), String> {
    let owner = IoMem::acquire(NOTHING, 0x2000).map_err(|why| format!("{why:?}"))?;
    refused(NOTHING, 8, IoError::Taken)?;
    refused(NOTHING + 0x1ff8, 0x1000, IoError::Taken)?;
    // A region that was placed over that of another device, around it or half over it.
    refused(NOTHING - 0x1000, 0x10_0000, IoError::Taken)?;
    refused(NOTHING - 0x1000, 0x1008, IoError::Taken)?;
    drop(owner);
    check!(IoMem::acquire(NOTHING, 8).is_ok(), "not free again");
    Ok(())
}

/// Windows that are longer than what is mapped in one go are there from the first register to the
/// last, and gone as a whole, in small pages and in large ones.
fn memory_of_many_pages() -> Result<(), String> {
    let physical =
        |address| paging::translate(kernel_table(), address).map(|(physical, _)| physical);
    const MIB: usize = 1 << 20;
    for (start, bytes) in [
        (NOTHING + 0x1000, 8 * MIB - 0x1000),
        (NOTHING + 0x1000, 2 * MIB),
        (NOTHING + 0x1000, 4 * MIB + 0x1000),
        (NOTHING, 64 * MIB),
    ] {
        let window = IoMem::acquire(start, bytes).map_err(|why| format!("{why:?}"))?;
        let address = window.address();
        for offset in (0..bytes).step_by(0x1000) {
            let known = physical(address + offset);
            let expected = start + offset as u64;
            check!(known == Some(expected), "{offset:#x}: {known:x?}");
        }
        drop(window);
        for offset in (0..bytes).step_by(0x1000) {
            let known = physical(address + offset);
            check!(known.is_none(), "{offset:#x} is still at {known:x?}");
        }
    }
    Ok(())
}

/// Whether there is PCI Express.
fn has_pci() -> bool {
    !pci::ecam().is_empty()
}

/// Wherever a region of a device was placed: no part of configuration space, of any bus, is given
/// as registers.
fn memory_refuses_configuration() -> Result<(), String> {
    let inside = [8, 0x1000, 1 << 20, 16 << 20];
    for (start, bytes) in pci::configuration_ranges() {
        for bus in (0..bytes >> 20).chain([0]) {
            for length in inside {
                refused(start + (bus << 20), length, IoError::Sensitive)?;
            }
        }
        refused(start + bytes - 8, 8, IoError::Sensitive)?;
        refused(start + bytes - 0x1000, 0x2000, IoError::Sensitive)?;
        refused(start - 0x1000, 0x2000, IoError::Sensitive)?;
        refused(start - 0x10_0000, 0x3000_0000, IoError::Sensitive)?;
    }
    Ok(())
}

/// By its own door it is given, once at a time.
fn memory_reads_configuration() -> Result<(), String> {
    if !has_pci() {
        check!(pci::configuration(0).is_err(), "there is none");
        return Ok(());
    }
    let bus = pci::configuration(0).map_err(|why| format!("{why:?}"))?;
    let again = pci::configuration(0).err();
    check!(again == Some(IoError::Taken), "given twice: {again:?}");
    let vendor: Result<u16, IoError> = bus.read(0);
    check!(vendor == Ok(0x8086), "vendor {vendor:x?}");
    check!(bus.read::<u32>(2) == Err(IoError::Misaligned), "misaligned");
    let end = bus.bytes();
    check!(end == 1 << 20, "{end:#x} bytes");
    check!(
        bus.read::<u8>(end) == Err(IoError::OutOfRange),
        "read at the end"
    );
    check!(bus.write(end - 2, 0_u32).is_err(), "wrote over the end");
    drop(bus);
    check!(pci::configuration(0).is_ok(), "not free again");
    Ok(())
}

fn ports_refuse_sensitive() -> Result<(), String> {
    let power = platform().fadt.and_then(|fadt| fadt.pm1a_control);
    let ports = [0, 0x20, 0x43, 0x70, 0xa1, 0xcf8, 0xcfc, 0x510, 0x92];
    for port in ports.into_iter().chain(power) {
        let error = IoPort::acquire(port, 1).err();
        check!(
            error == Some(IoError::Sensitive),
            "port {port:#x}: {error:?}"
        );
    }
    check!(
        IoPort::acquire(0x10, 0x100).is_err(),
        "a large range was given away"
    );
    check!(
        IoPort::acquire(0xffff, 2).is_err(),
        "ports beyond the end were given away"
    );
    check!(
        IoPort::acquire(0x300, 0).is_err(),
        "no ports were given away"
    );
    Ok(())
}

fn ports_are_bounded() -> Result<(), String> {
    let ports = IoPort::acquire(0x300, 4).map_err(|why| format!("{why:?}"))?;
    check!(ports.read::<u32>(0).is_ok(), "cannot read");
    check!(
        ports.read::<u8>(4) == Err(IoError::OutOfRange),
        "read beyond the end"
    );
    check!(
        ports.read::<u32>(2) == Err(IoError::OutOfRange),
        "read over the end"
    );
    check!(
        ports.write(1, 0_u16) == Err(IoError::Misaligned),
        "misaligned"
    );
    let taken = IoPort::acquire(0x303, 1).err();
    check!(
        taken == Some(IoError::Taken),
        "a port has two owners: {taken:?}"
    );
    Ok(())
}

/// DMA memory of `pages` pages.
fn dma(pages: usize) -> Result<DmaCoherent, String> {
    DmaCoherent::alloc(pages).map_err(|_| String::from("no memory"))
}

fn dma_numbers_and_bytes() -> Result<(), String> {
    let memory = dma(2)?;
    check!(memory.physical() % PAGE_SIZE as u64 == 0, "not aligned");
    let mut bytes = [1; 7];
    check!(
        memory.read_bytes(PAGE_SIZE - 3, &mut bytes).is_ok(),
        "cannot read"
    );
    check!(bytes == [0; 7], "not zeroed");
    check!(
        memory.write(PAGE_SIZE, 0x1122_3344_u32).is_ok(),
        "cannot write"
    );
    check!(
        memory.write_bytes(PAGE_SIZE + 1, b"ab").is_ok(),
        "cannot write"
    );
    let number: Result<u32, IoError> = memory.read(PAGE_SIZE);
    check!(number == Ok(0x1162_6144), "read {number:x?}");
    Ok(())
}

fn dma_is_bounded() -> Result<(), String> {
    let memory = dma(1)?;
    let mut bytes = [0; 2];
    check!(
        memory.read_bytes(PAGE_SIZE - 1, &mut bytes).is_err(),
        "read over the end"
    );
    check!(
        memory.read_bytes(usize::MAX, &mut bytes).is_err(),
        "read at the end of addresses"
    );
    check!(
        memory.write_bytes(PAGE_SIZE, b"x").is_err(),
        "wrote beyond the end"
    );
    check!(memory.read::<u64>(4).is_err(), "misaligned");
    check!(DmaCoherent::alloc(0).is_err(), "nothing was allocated");
    check!(
        DmaCoherent::alloc(1 << 40).is_err(),
        "everything was allocated"
    );
    Ok(())
}

fn dma_comes_back() -> Result<(), String> {
    gives_back(|| {
        [1, 3, 64, 700]
            .into_iter()
            .try_for_each(|pages| dma(pages).map(drop))
    })
}

fn quiesce() -> Result<(), String> {
    if !has_pci() {
        return Ok(());
    }
    // The ISA bridge at 00:1f.0 of a q35 keeps its bus-master bit, and says so in the log.
    let bus = pci::configuration(0).map_err(|why| format!("{why:?}"))?;
    let command = (0x1f << 15) + 4;
    let before: u16 = bus.read(command).map_err(|why| format!("{why:?}"))?;
    let result = pci::quiesce(0, 0x1f, 0);
    check!(result == Ok(()), "{result:?}");
    let after: u16 = bus.read(command).map_err(|why| format!("{why:?}"))?;
    check!(
        after & !4 == before & !4,
        "command was {before:#x}, is {after:#x}"
    );
    let started = pci::start(0, 0x1f, 0);
    let on: u16 = bus.read(command).map_err(|why| format!("{why:?}"))?;
    check!(started == Ok(()) && on & 4 != 0, "{started:?}: {on:#x}");
    check!(bus.write(command, before).is_ok(), "cannot restore");
    Ok(())
}

fn quiesce_nothing() -> Result<(), String> {
    let absent = pci::quiesce(0, 0x1d, 7);
    let expected = if has_pci() {
        StopError::Absent
    } else {
        StopError::NoWindow
    };
    check!(absent == Err(expected), "{absent:?}");
    check!(
        pci::quiesce(0, 32, 0) == Err(StopError::NoWindow),
        "device 32"
    );
    check!(
        pci::quiesce(0, 0, 8) == Err(StopError::NoWindow),
        "function 8"
    );
    Ok(())
}
