//! Which driver has which PCI function.
//!
//! `init` remembers it here, outside of the PCI domain, so that after a crash of that domain no
//! driver that is started anew gets a function with which another one is still at work; and so that
//! a restarted driver gets the same function again.

use crate::failure::Failure;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::time;
use interfaces::{Handle, PciAddress, PciBus, PciDevice, PciError, PciInfo};
use manifest::{DeviceMatch, DomainIndex};

/// How long a function that its former driver has just left is waited for, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
/// The pause between two tries, in nanoseconds.
const PAUSE: u64 = 1_000_000;

/// Number of a domain in the manifest, and of its grant.
pub type Owner = (DomainIndex, usize);

/// Who has what.
#[derive(Default)]
pub struct Claims(Mutex<Vec<(PciAddress, Owner)>>);

impl Claims {
    /// Claims for `owner`, the domain `name`, the function that it had before, or the first free
    /// one that fits behind the first `rank`.
    ///
    /// # Errors
    /// Why there is none for it.
    pub fn claim(
        &self,
        name: &str,
        bus: &Handle<dyn PciBus>,
        devices: &[DeviceMatch],
        owner: Owner,
        rank: usize,
    ) -> Result<(Handle<dyn PciDevice>, PciAddress), Failure> {
        let address = self
            .choose(&fitting(name, bus, devices)?, owner, rank)
            .ok_or_else(|| Failure::Cause(format!("{name}: {}", none(devices))))?;
        let deadline = time::now() + PATIENCE;
        loop {
            match bus.claim(address) {
                Ok(device) => return Ok((device, address)),
                Err(PciError::InUse) if time::now() < deadline => time::sleep(PAUSE),
                Err(error) => {
                    let what = format!("PCI function {}: ", place(address));
                    return Err(Failure::of_pci(name, &error, &what));
                }
            }
        }
    }

    /// Remembers what a former life of `init` gave to `owner`.
    pub fn restore(&self, address: PciAddress, owner: Owner) {
        self.0.lock().push((address, owner));
    }

    /// Who has what.
    pub fn all(&self) -> Vec<(PciAddress, Owner)> {
        self.0.lock().clone()
    }

    fn choose(&self, candidates: &[PciInfo], owner: Owner, rank: usize) -> Option<PciAddress> {
        let mut claims = self.0.lock();
        let holder = |address: PciAddress| {
            claims
                .iter()
                .find(|(taken, _)| *taken == address)
                .map(|(_, holder)| *holder)
        };
        let mine = candidates
            .iter()
            .find(|info| holder(info.address) == Some(owner));
        if let Some(info) = mine {
            return Some(info.address);
        }
        let address = candidates
            .iter()
            .skip(rank)
            .find(|info| holder(info.address).is_none())?
            .address;
        claims.retain(|(_, holder)| *holder != owner);
        claims.push((address, owner));
        Some(address)
    }
}

/// What the claim of grant number `grant` of a domain is kept under.
pub fn key(name: &str, grant: usize) -> String {
    format!("claim {name} {grant}")
}

/// An address as a number,
pub fn pack(address: PciAddress) -> u64 {
    u64::from_be_bytes([0, 0, 0, 0, 0, address.bus, address.device, address.function])
}

/// and back.
pub fn unpack(packed: u64) -> PciAddress {
    let [.., bus, device, function] = packed.to_be_bytes();
    PciAddress {
        bus,
        device,
        function,
    }
}

fn fitting(
    name: &str,
    bus: &Handle<dyn PciBus>,
    devices: &[DeviceMatch],
) -> Result<Vec<PciInfo>, Failure> {
    let fits = |info: &PciInfo| {
        devices.iter().any(|device| match *device {
            DeviceMatch::Id(vendor, number) => info.vendor == vendor && info.device == number,
            DeviceMatch::Class(class) => info.class == class,
        })
    };
    let mut found = Vec::new();
    let mut index = 0;
    let failed = |error| Failure::of_call(name, error, "");
    while let Some(info) = bus.function(index).map_err(failed)? {
        found.extend(Some(info).filter(fits));
        index += 1;
    }
    Ok(found)
}

fn none(devices: &[DeviceMatch]) -> String {
    let names = devices.iter().map(|device| match device {
        DeviceMatch::Id(vendor, number) => format!("{vendor:04x}:{number:04x}"),
        DeviceMatch::Class(class) => format!("class {class:06x}"),
    });
    format!(
        "no free PCI device {}",
        names.collect::<Vec<_>>().join(" or ")
    )
}

fn place(address: PciAddress) -> String {
    format!(
        "{:02x}:{:02x}.{}",
        address.bus, address.device, address.function
    )
}
