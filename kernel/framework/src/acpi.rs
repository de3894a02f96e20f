//! What the firmware says about the machine: read once at boot from the ACPI tables.

use alloc::vec::Vec;

pub use acpi_tables::{Cpu, Fadt, IoApic, Override, PciSegment, Polarity, Trigger};
use acpi_tables::{Header, Madt, MadtEntry, RootPointer, SPACE_MEMORY};

use crate::kprintln;
use crate::mem::kspace::{Cache, Window};
use crate::sync::Once;

/// The machine.
#[derive(Debug, Default)]
pub struct Platform {
    /// Processors that can be used, in the firmware's order.
    pub cpus: Vec<Cpu>,
    /// Physical address of the local APICs' registers; 0 if unknown.
    pub local_apic: u64,
    /// The I/O APICs.
    pub io_apics: Vec<IoApic>,
    /// ISA interrupts that arrive elsewhere than at the input of their number.
    pub overrides: Vec<Override>,
    /// PCI Express configuration windows.
    pub pci: Vec<PciSegment>,
    /// Power-management registers.
    pub fadt: Option<Fadt>,
    /// Physical address of the HPET's registers.
    pub hpet: Option<u64>,
    /// Sleep types that turn the machine off.
    pub s5: Option<(u8, u8)>,
}

static PLATFORM: Once<Platform> = Once::new();

/// The machine, as read at boot; empty on a machine without ACPI.
pub fn platform() -> &'static Platform {
    PLATFORM.get().expect("ACPI tables are read at boot")
}

/// Reads the tables. Runs once, at boot, when memory works.
pub(crate) fn init() {
    let mut platform = Platform::default();
    let root = crate::boot::start_info::rsdp();
    if root == 0 || read_all(root, &mut platform).is_none() {
        kprintln!("acpi: WARNING: no tables found");
    }
    kprintln!(
        "acpi: {} processors, {} I/O APICs, {} PCI segments",
        platform.cpus.len(),
        platform.io_apics.len(),
        platform.pci.len()
    );
    PLATFORM.call_once(|| platform);
}

/// Physical memory as bytes, while mapped.
struct Mapped(Window);

impl Mapped {
    fn new(physical: u64, bytes: usize) -> Option<Self> {
        Window::map(physical, bytes, Cache::FirmwareTable)
            .ok()
            .map(Self)
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the window maps exactly these bytes while `self` lives; firmware tables are
        // written by nobody while the kernel runs.
        unsafe { core::slice::from_raw_parts(self.0.address() as *const u8, self.0.bytes()) }
    }

    /// A whole table, if its checksum is right.
    fn table(physical: u64) -> Option<(Header, Self)> {
        let header = Header::parse(Self::new(physical, Header::BYTES)?.bytes())?;
        let table = Self::new(physical, header.length)?;
        if !acpi_tables::validate(table.bytes(), &header.signature) {
            kprintln!("acpi: WARNING: damaged table at {physical:#x} ignored");
            return None;
        }
        Some((header, table))
    }
}

/// Reads all tables below the root pointer.
fn read_all(root: u64, platform: &mut Platform) -> Option<()> {
    let pointer = RootPointer::parse(Mapped::new(root, RootPointer::BYTES)?.bytes())?;
    let (_, table) = Mapped::table(pointer.address)?;
    for address in acpi_tables::entries(table.bytes(), pointer.wide) {
        if let Some((header, table)) = Mapped::table(address) {
            read_table(header, table.bytes(), platform);
        }
    }
    let dsdt = platform.fadt.map_or(0, |fadt| fadt.dsdt);
    if dsdt != 0 {
        platform.s5 = Mapped::table(dsdt).and_then(|(_, aml)| acpi_tables::find_s5(aml.bytes()));
    }
    Some(())
}

/// Takes what the kernel uses from one table.
fn read_table(header: Header, table: &[u8], platform: &mut Platform) {
    match &header.signature {
        b"APIC" => read_madt(Madt::new(table), platform),
        b"MCFG" => platform.pci.extend(acpi_tables::pci_segments(table)),
        b"FACP" => platform.fadt = Fadt::parse(table),
        b"HPET" => platform.hpet = acpi_tables::hpet_address(table),
        _ => {}
    }
}

/// Takes processors and interrupt controllers from the MADT.
fn read_madt(madt: Madt, platform: &mut Platform) {
    platform.local_apic = madt.local_apic();
    for entry in madt.entries() {
        match entry {
            MadtEntry::Cpu(cpu) => platform.cpus.push(cpu),
            MadtEntry::IoApic(io_apic) => platform.io_apics.push(io_apic),
            MadtEntry::Override(source) => platform.overrides.push(source),
            MadtEntry::LocalApicAddress(address) => platform.local_apic = address,
        }
    }
}

/// The physical ranges (start, bytes) of registers that only the kernel may touch.
pub(crate) fn sensitive_memory() -> impl Iterator<Item = (u64, u64)> {
    let platform = platform();
    let io_apics = platform.io_apics.iter().map(|apic| u64::from(apic.address));
    let fadt = platform.fadt.iter();
    let registers = fadt.flat_map(|fadt| {
        let reset = fadt.reset.map(|(register, _)| register);
        [reset, fadt.sleep_control].into_iter().flatten()
    });
    let in_memory = registers.filter(|register| register.space == SPACE_MEMORY);
    io_apics
        .chain(platform.hpet)
        .chain([platform.local_apic].into_iter().filter(|&at| at != 0))
        .chain(in_memory.map(|register| register.address))
        .map(|address| (address & !0xfff, 0x1000))
        .chain(crate::pci::configuration_ranges())
}
