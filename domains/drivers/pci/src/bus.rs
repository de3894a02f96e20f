//! The list of functions, and who has claimed which.

use crate::function::Claimed;
use crate::space::Ecam;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{
    Handle, Hardware, HardwareError, Interrupt, PciAddress, PciBus, PciDevice, PciError, PciInfo,
    RpcResult,
};
use pci_config::{Address, Function, msix};

/// Bytes of the window that each function may use for its regions. A function's part follows from
/// its place in the list, so a restarted instance, which does not remember, gives out no address
/// twice, and finds what the one before has placed.
const WINDOW_PART: u64 = 4 << 20;

/// Interrupts that all functions may have together, of those that the machine has (192 on this one,
/// 16 of which old devices may want), and one function at most.
const INTERRUPTS: usize = 128;
const INTERRUPTS_OF_ONE: usize = 16;

/// An entry of a function's MSI-X table, and the processor that handles it.
type Entry = (Address, u16, u32);

/// The bus.
pub struct Bus {
    /// The kernel's resources.
    pub hardware: Handle<dyn Hardware>,
    /// The configuration space.
    pub space: Ecam,
    window: Option<(u64, u64)>,
    functions: Vec<Function>,
    claimed: Mutex<BTreeSet<Address>>,
    /// Functions with MSI-X.
    raising: usize,
    /// What was given out, also to drivers that are dead: their successors get the same.
    interrupts: Mutex<BTreeMap<Entry, Handle<dyn Interrupt>>>,
}

impl Bus {
    /// Finds the functions on buses `first` to `last`. Reads only.
    pub fn new(
        hardware: Handle<dyn Hardware>,
        space: Ecam,
        window: Option<(u64, u64)>,
        first: u8,
        last: u8,
    ) -> Self {
        let functions = pci_config::functions(&space, first, last);
        let raises = |function: &&Function| msix::find(&space, function.address).is_some();
        let raising = functions.iter().filter(raises).count();
        Bus {
            hardware,
            space,
            window,
            functions,
            claimed: Mutex::new(BTreeSet::new()),
            raising,
            interrupts: Mutex::default(),
        }
    }

    /// Lists the functions in the log.
    pub fn announce(&self) {
        for function in &self.functions {
            let Address {
                bus,
                device,
                function: number,
            } = function.address;
            let (vendor, id, class) = (function.vendor, function.device, function.class);
            log!("{bus:02x}:{device:02x}.{number} {vendor:04x}:{id:04x} class {class:06x}");
        }
    }

    /// The part of the window for the regions of this function.
    pub fn window_of(&self, address: Address) -> Option<(u64, u64)> {
        let (start, length) = self.window?;
        let number = self
            .functions
            .iter()
            .position(|function| function.address == address)? as u64;
        let end = (number + 1).checked_mul(WINDOW_PART)?;
        (end <= length).then_some((start + end - WINDOW_PART, WINDOW_PART))
    }

    /// The interrupt of an entry. Each has one, which is made when it is first asked for and kept,
    /// so no driver takes those of others, and one that is started again finds its own.
    ///
    /// # Errors
    /// That of the kernel; that there is no such resource if the function has its part already.
    pub fn interrupt(&self, entry: Entry) -> Result<Handle<dyn Interrupt>, PciError> {
        let mut interrupts = self.interrupts.lock();
        if let Some(interrupt) = interrupts.get(&entry) {
            return Ok(interrupt.duplicate()?);
        }
        let (address, _, processor) = entry;
        let of_this = interrupts.keys().filter(|(other, ..)| *other == address);
        let part = (INTERRUPTS / self.raising.max(1)).clamp(1, INTERRUPTS_OF_ONE);
        if of_this.count() >= part {
            return Err(PciError::Resource(HardwareError::NoSuchResource));
        }
        let interrupt = self.hardware.message_interrupt(processor);
        let interrupt = interrupt.map_err(PciError::Resource)?;
        let own = interrupt.duplicate()?;
        interrupts.insert(entry, own);
        Ok(interrupt)
    }

    /// Notes that a function is free again.
    pub fn release(&self, address: Address) {
        self.claimed.lock().remove(&address);
    }
}

/// The bus as an object that others call.
pub struct SharedBus(pub Arc<Bus>);

impl PciBus for SharedBus {
    fn function(&self, index: u32) -> RpcResult<Option<PciInfo>> {
        Ok(self.0.functions.get(index as usize).map(info))
    }

    fn claim(&self, address: PciAddress) -> Result<Handle<dyn PciDevice>, PciError> {
        let address = Address {
            bus: address.bus,
            device: address.device,
            function: address.function,
        };
        let function = self
            .0
            .functions
            .iter()
            .find(|function| function.address == address);
        let function = *function.ok_or(PciError::NoSuchDevice)?;
        // It may have been pulled out since.
        if pci_config::function_at(&self.0.space, address) != Some(function) {
            return Err(PciError::NoSuchDevice);
        }
        if !self.0.claimed.lock().insert(address) {
            return Err(PciError::InUse);
        }
        // From here on, dropping the object gives the function back.
        Ok(Handle::new(Claimed::new(self.0.clone(), function))?)
    }
}

/// What the header says of a function, as it crosses to others.
pub fn info(function: &Function) -> PciInfo {
    PciInfo {
        address: address(function.address),
        vendor: function.vendor,
        device: function.device,
        class: function.class,
        revision: function.revision,
    }
}

/// An address as it crosses to others.
pub fn address(address: Address) -> PciAddress {
    PciAddress {
        bus: address.bus,
        device: address.device,
        function: address.function,
    }
}
