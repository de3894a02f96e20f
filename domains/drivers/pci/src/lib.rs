//! The PCI bus: finds the functions, and lends each to one driver at a time.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`space`] | the configuration space, memory-mapped (ECAM) |
//! | [`bus`] | the list of functions, and who has claimed which |
//! | [`function`] | a claimed function: regions, interrupts, DMA |
//! | [`options`] | the text of options |
//!
//! What a driver gets - device memory, interrupts, DMA memory - are objects of the kernel. So a
//! driver goes on when this domain crashes; it only loses the way to ask for more. The next
//! instance finds the functions by reading alone and touches none before it is claimed: then it is
//! stopped first, because the driver that had it is dead (`init` sees to that).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bus;
mod function;
mod options;
mod space;

use alloc::sync::Arc;
use domain_rt::{log, memory};
use interfaces::{Handle, Hardware, PciBus, RVec, RpcError, RpcResult};

use bus::{Bus, SharedBus};
use options::Options;
use space::Ecam;

/// Finds the functions.
///
/// # Errors
/// [`RpcError::Refused`] if the machine has no memory-mapped configuration space, or an option is
/// wrong; the log says which.
pub fn start(hardware: Handle<dyn Hardware>, options: RVec<u8>) -> RpcResult<Handle<dyn PciBus>> {
    memory::reserve(memory::SERVICE)?;
    let options = Options::parse(&options).map_err(|message| {
        log!("options: {message}");
        RpcError::Refused
    })?;
    let Some((first, last)) = hardware.buses()? else {
        log!("this machine has no PCI configuration space in memory (no MCFG table)");
        return Err(RpcError::Refused);
    };
    let space = Ecam::new(hardware.duplicate()?, first, last);
    let bus = Arc::new(Bus::new(hardware, space, options.window, first, last));
    bus.announce();
    Handle::new(SharedBus(bus))
}
