//! A claimed function: regions, interrupts, DMA.
//!
//! A claim starts and ends with a stop: bus mastering and MSI-X off. So a driver never gets a
//! function that is still at work for a former driver, and a function that nobody has can neither
//! write memory nor raise an interrupt. Bus mastering is switched on by the kernel, when the driver
//! has said that the function is reset.

use crate::bus::{self, Bus};
use alloc::sync::Arc;
use domain_rt::io::IoMem;
use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{DmaAllocator, Handle, Interrupt, Mmio, PciDevice, PciError, PciInfo};
use pci_config::msix::{self, Msix};
use pci_config::region::{self, Region};
use pci_config::{
    COMMAND_MASTER, COMMAND_MEMORY, COMMAND_NO_LINE, Configuration, Function, change_command,
};

/// Offset of the mask bit's word in an MSI-X table entry.
const ENTRY_CONTROL: usize = 12;

/// A claimed function. Dropping it gives the function back.
pub struct Claimed {
    bus: Arc<Bus>,
    function: Function,
    regions: [Option<Region>; region::COUNT],
    msix: Option<Msix>,
    /// The pages with the MSI-X table, once a vector was asked for. The lock is held while
    /// configuration registers are changed, too.
    table: Mutex<Option<IoMem>>,
}

impl Claimed {
    /// Stops the function and finds its regions; those without an address get one. Then it answers
    /// at them.
    pub fn new(bus: Arc<Bus>, function: Function) -> Self {
        let address = function.address;
        let msix = msix::find(&bus.space, address);
        let mut claimed = Claimed {
            bus,
            function,
            regions: [None; region::COUNT],
            msix,
            table: Mutex::new(None),
        };
        claimed.stop();
        claimed.find_regions();
        change_command(
            &claimed.bus.space,
            address,
            COMMAND_MEMORY | COMMAND_NO_LINE,
            0,
        );
        claimed
    }

    /// What this domain has placed, also in an earlier life, it leaves alone: registers that go
    /// away and come back change the memory map of the whole machine while other processors run,
    /// which emulators bear less well than machines (decision 0027).
    fn find_regions(&mut self) {
        let (space, address) = (&self.bus.space, self.function.address);
        let window = self.bus.window_of(address);
        let known = window.and_then(|window| region::known(space, address, window));
        if let Some(known) = known {
            self.regions = known;
            return;
        }
        self.regions = region::size(space, address);
        if let Some(window) = window {
            self.place(window);
        }
    }

    /// Gives the regions without an address one.
    fn place(&mut self, window: (u64, u64)) {
        let (space, address) = (&self.bus.space, self.function.address);
        if self.regions.iter().flatten().all(|region| region.base != 0) {
            return;
        }
        change_command(space, address, 0, COMMAND_MEMORY);
        let homeless = region::place(space, address, &mut self.regions, window);
        if homeless > 0 {
            log!("{homeless} regions of {address:?} found no room in the window");
        }
    }

    fn stop(&self) {
        change_command(&self.bus.space, self.function.address, 0, COMMAND_MASTER);
        if let Some(msix) = &self.msix {
            msix.switch(&self.bus.space, self.function.address, false);
        }
    }

    /// A region that has an address.
    fn placed(&self, bar: u8) -> Result<Region, PciError> {
        let region = self.regions.get(usize::from(bar)).copied().flatten();
        region
            .filter(|region| region.base != 0)
            .ok_or(PciError::NoSuchDevice)
    }

    fn mmio(&self, physical: u64, length: u64) -> Result<Handle<dyn Mmio>, PciError> {
        self.bus
            .hardware
            .mmio(physical, length)
            .map_err(PciError::Resource)
    }

    /// Maps the MSI-X table and masks every vector: a former driver may have left them live.
    fn map_table(&self, msix: &Msix) -> Result<IoMem, PciError> {
        let (start, length) = msix.table_pages();
        let region = self.placed(msix.bar)?;
        if msix.offset + msix.table_bytes() > region.length {
            return Err(PciError::NoSuchDevice);
        }
        let length = length.min(region.length - start);
        let table = IoMem::new(self.mmio(region.base + start, length)?)?;
        for vector in 0..msix.vectors {
            table.write32(entry_offset(msix, vector) + ENTRY_CONTROL, 1);
        }
        Ok(table)
    }
}

/// Offset of an entry in the pages with the table.
fn entry_offset(msix: &Msix, vector: u16) -> usize {
    let in_region = msix.offset + u64::from(vector) * msix::ENTRY;
    (in_region - msix.table_pages().0) as usize
}

impl PciDevice for Claimed {
    fn info(&self) -> Result<PciInfo, PciError> {
        Ok(bus::info(&self.function))
    }

    fn configuration(&self, offset: u16) -> Result<u32, PciError> {
        if offset >= 4096 || !offset.is_multiple_of(4) {
            return Err(PciError::NoSuchDevice);
        }
        Ok(self.bus.space.read(self.function.address, offset))
    }

    fn region(&self, bar: u8) -> Result<Handle<dyn Mmio>, PciError> {
        let region = self.placed(bar)?;
        let length = msix::before_table(self.msix.as_ref(), bar, region.length);
        self.mmio(region.base, length.ok_or(PciError::NoSuchDevice)?)
    }

    fn interrupt(&self, vector: u16, processor: u32) -> Result<Handle<dyn Interrupt>, PciError> {
        let msix = self.msix.as_ref().filter(|msix| vector < msix.vectors);
        let msix = msix.ok_or(PciError::NoSuchDevice)?;
        let mut table = self.table.lock();
        if table.is_none() {
            *table = Some(self.map_table(msix)?);
        }
        let entries = table.as_ref().expect("mapped just now");
        let entry = (self.function.address, vector, processor);
        let interrupt = self.bus.interrupt(entry)?;
        let message = interrupt.message().map_err(PciError::Resource)?;
        // Masked while it changes (PCI 3.0, section 6.8.2.9); the last word unmasks it.
        let offset = entry_offset(msix, vector);
        entries.write32(offset + ENTRY_CONTROL, 1);
        for (number, word) in msix::entry(message.address, message.data)
            .into_iter()
            .enumerate()
        {
            entries.write32(offset + 4 * number, word);
        }
        msix.switch(&self.bus.space, self.function.address, true);
        Ok(interrupt)
    }

    fn dma(&self) -> Result<Handle<dyn DmaAllocator>, PciError> {
        let address = bus::address(self.function.address);
        self.bus.hardware.dma(address).map_err(PciError::Resource)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.stop();
        self.bus.release(self.function.address);
    }
}
