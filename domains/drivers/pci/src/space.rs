//! The configuration space, memory-mapped (PCI Express Base Specification, section 7.2.2).

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use domain_rt::io::IoMem;
use domain_rt::sync::Mutex;
use interfaces::{Handle, Hardware};
use pci_config::{Address, Configuration};

/// The configuration space. A bus is mapped when it is first looked at: 256 of them would be 256
/// MiB.
pub struct Ecam {
    hardware: Handle<dyn Hardware>,
    buses: core::ops::RangeInclusive<u8>,
    mapped: Mutex<BTreeMap<u8, Option<Arc<IoMem>>>>,
}

impl Ecam {
    /// The space of the buses `first` to `last`.
    pub fn new(hardware: Handle<dyn Hardware>, first: u8, last: u8) -> Self {
        Ecam {
            hardware,
            buses: first..=last,
            mapped: Mutex::new(BTreeMap::new()),
        }
    }

    fn bus(&self, number: u8) -> Option<Arc<IoMem>> {
        if !self.buses.contains(&number) {
            return None;
        }
        let mut mapped = self.mapped.lock();
        mapped
            .entry(number)
            .or_insert_with(|| self.map(number))
            .clone()
    }

    fn map(&self, number: u8) -> Option<Arc<IoMem>> {
        let memory = self.hardware.configuration(number);
        let memory = memory
            .map_err(|error| domain_rt::log!("bus {number} is not to be had: {error:?}"))
            .ok()?;
        IoMem::new(memory).ok().map(Arc::new)
    }
}

impl Configuration for Ecam {
    fn read(&self, address: Address, offset: u16) -> u32 {
        match self.bus(address.bus) {
            Some(memory) => memory.read32(address.offset_in_bus(offset)),
            None => u32::MAX,
        }
    }

    fn write(&self, address: Address, offset: u16, value: u32) {
        if let Some(memory) = self.bus(address.bus) {
            memory.write32(address.offset_in_bus(offset), value);
        }
    }
}
