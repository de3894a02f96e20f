//! Where a grant comes from.

use crate::check::offer_index;
use crate::claims;
use crate::failure::Failure;
use crate::service::Complaint;
use crate::system::System;
use alloc::format;
use alloc::sync::Arc;
use interfaces::{AnyHandle, Handle, HardwareError, Interface, Office, PciBus, RpcError};
use manifest::{DeviceMatch, DomainIndex, Grant, Source};

/// A grant that was found.
pub struct Granted {
    /// What the domain gets.
    pub handle: AnyHandle,
    /// The domain and instance that serve it, if it is dead when they are.
    pub served_by: Option<(DomainIndex, u32)>,
}

impl Granted {
    /// One that nobody but the kernel, or `init`, serves.
    pub fn free(handle: AnyHandle) -> Self {
        Granted {
            handle,
            served_by: None,
        }
    }
}

/// Finds what grant number `number` of the domain `index` leads to. Domains that it comes from
/// are started if they are not running.
///
/// # Errors
/// Why it is not to be had.
pub fn resolve(
    system: &Arc<System>,
    index: DomainIndex,
    number: usize,
) -> Result<Granted, Failure> {
    let grant = &system.manifest[index].grants[number];
    match &grant.source {
        Source::Claim { domain, devices } => claim(system, domain, devices, (index, number)),
        _ => find(system, index, grant),
    }
}

/// Finds what `grant` leads to, unless that is a claim, for the domain `holder`.
///
/// # Errors
/// Why it is not to be had.
pub fn find(system: &Arc<System>, holder: DomainIndex, grant: &Grant) -> Result<Granted, Failure> {
    let name = &system.manifest[holder].name;
    let what = format!("grant `{}`: ", grant.port);
    let rpc = |error: RpcError| Failure::of_call(name, error, &what);
    let handle = match &grant.source {
        Source::Offer { domain, port } => return offer(system, domain, port.as_deref()),
        Source::Respawn { domain, port } => {
            return respawn(system, holder, domain, port.as_deref());
        }
        Source::Kernel(service) => system.kernel.service(*service),
        Source::Supervisor => return system.lasting(Office::Supervisor, holder, None, None),
        Source::Updater => return system.lasting(Office::Updater, holder, None, None),
        Source::Disks => return system.lasting(Office::Disks, holder, None, None),
        Source::Services => return system.lasting(Office::Services, holder, None, None),
        _ => {
            let hardware = |error| Failure::of_hardware(name, &error, &what);
            return Ok(Granted::free(machine(system, grant).map_err(hardware)?));
        }
    };
    Ok(Granted::free(handle.map_err(rpc)?))
}

fn erase<I: ?Sized + Interface>(handle: Handle<I>) -> AnyHandle {
    handle.into_any()
}

/// A resource of the machine.
fn machine(system: &System, grant: &Grant) -> Result<AnyHandle, HardwareError> {
    let hardware = &system.kernel.hardware;
    match grant.source {
        Source::Ports { first, count } => hardware.ports(first, count).map(erase),
        Source::Interrupt(line) => hardware.interrupt(line).map(erase),
        Source::Mmio { physical, length } => hardware.mmio(physical, length).map(erase),
        _ => Err(HardwareError::NoSuchResource),
    }
}

/// The number of the domain that a grant names.
fn index_of(system: &System, name: &str) -> DomainIndex {
    system
        .manifest
        .index_of(name)
        .expect("checked when the manifest was read")
}

/// What a domain offers under a name, from its running instance.
fn offer(system: &Arc<System>, name: &str, port: Option<&str>) -> Result<Granted, Failure> {
    let index = index_of(system, name);
    let (id, handle) = instance_offer(system, index, None, port)?;
    Ok(Granted {
        handle,
        served_by: Some((index, id)),
    })
}

/// The instance of a domain, another than that of a `complaint` that is heard, and what it offers
/// under a name.
///
/// # Errors
/// Why there is none.
pub fn instance_offer(
    system: &Arc<System>,
    index: DomainIndex,
    complaint: Option<Complaint>,
    port: Option<&str>,
) -> Result<(u32, AnyHandle), Failure> {
    let name = &system.manifest[index].name;
    let image = system.services[index]
        .image
        .as_ref()
        .map_err(|text| Failure::Cause(format!("{name}: {text}")))?;
    let number = offer_index(&image.offers, port).expect("checked against the image");
    let (id, handle) = system.with_instance(index, complaint, |running| {
        let handle = running.offers.get(number).and_then(Option::as_ref);
        (running.id, handle.map(AnyHandle::duplicate))
    })?;
    match handle {
        Some(Ok(handle)) => Ok((id, handle)),
        Some(Err(error)) => Err(Failure::of_call(name, error, "")),
        None => Err(Failure::Cause(format!(
            "{name}: it did not make the offer that its image declares"
        ))),
    }
}

/// The right to ask for instances of a domain. Given only if there is one now, so that who cannot
/// do without it does not start.
fn respawn(
    system: &Arc<System>,
    holder: DomainIndex,
    name: &str,
    port: Option<&str>,
) -> Result<Granted, Failure> {
    let index = index_of(system, name);
    system.with_instance(index, None, |_| ())?;
    system.lasting(Office::Respawn, holder, Some(index), port)
}

/// A PCI function. What a driver gets from it are objects of the kernel, so it goes on when the PCI
/// domain dies.
fn claim(
    system: &Arc<System>,
    name: &str,
    devices: &[DeviceMatch],
    owner: (DomainIndex, usize),
) -> Result<Granted, Failure> {
    let rank = rank(system, devices, owner);
    let claimer = &system.manifest[owner.0].name;
    let mut failed = None;
    loop {
        let (id, bus) = instance_offer(system, index_of(system, name), failed, None)?;
        let bus = bus.downcast::<dyn PciBus>();
        let bus = bus
            .map_err(|_| Failure::Cause(format!("{claimer}: `{name}` does not offer a PCI bus")))?;
        match system.claims.claim(claimer, &bus, devices, owner, rank) {
            Ok((device, address)) => {
                system.note(&claims::key(claimer, owner.1), claims::pack(address));
                return Ok(Granted::free(device.into_any()));
            }
            // The bus itself crashed under the claim: ask its successor. Its restart budget ends
            // this, or that it is not heard any more.
            Err(_) if bus.function(0) == Err(RpcError::DomainCrashed) && !is_same(failed, id) => {
                failed = Some(Complaint {
                    of: id,
                    by: owner.0,
                });
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Whether instance `id` is the one that was complained about.
fn is_same(complaint: Option<Complaint>, id: u32) -> bool {
    complaint.is_some_and(|complaint| complaint.of == id)
}

/// How many claims of the same devices come before this one in the manifest. So each claim leads to
/// the same function, whichever is asked for first.
fn rank(system: &System, devices: &[DeviceMatch], (domain, number): (DomainIndex, usize)) -> usize {
    let claims = system.manifest.indices().flat_map(|index| {
        let grants = system.manifest[index].grants.iter().enumerate();
        grants.map(move |(number, grant)| ((index, number), &grant.source))
    });
    let before = claims.take_while(|(at, _)| *at < (domain, number));
    let same = |source: &Source| matches!(source, Source::Claim { devices: other, .. } if other == devices);
    before.filter(|(_, source)| same(source)).count()
}
