//! What `init` itself offers to those to whom the manifest grants it.

use crate::disks::DiskList;
use crate::instances::Respawner;
use crate::programs::ServiceList;
use crate::supervise::Overview;
use crate::system::System;
use crate::update::Replacer;
use alloc::string::String;
use alloc::sync::Arc;
use interfaces::{
    AnyHandle, Disks, Handle, Mandate, Office, Respawn, RpcError, RpcResult, Services, Supervisor,
    Text, Updater,
};

/// What the mandate says, good for this life of `init`.
///
/// # Errors
/// No memory. [`RpcError::Refused`] if the manifest has no such domain.
pub fn make(system: &Arc<System>, mandate: &Mandate) -> RpcResult<AnyHandle> {
    let named = |name: &Text<32>| {
        let index = system.manifest.index_of(name.as_str());
        index.ok_or(RpcError::Refused)
    };
    let (system, holder) = (system.clone(), named(&mandate.holder)?);
    Ok(match mandate.office {
        Office::Respawn => {
            let index = named(&mandate.domain)?;
            let port = mandate.port.as_str();
            let port = (!port.is_empty()).then(|| String::from(port));
            let respawner = Respawner {
                system,
                index,
                holder,
                port,
            };
            Handle::<dyn Respawn>::new(respawner)?.into_any()
        }
        Office::Supervisor => Handle::<dyn Supervisor>::new(Overview(system))?.into_any(),
        Office::Updater => Handle::<dyn Updater>::new(Replacer(system))?.into_any(),
        Office::Disks => Handle::<dyn Disks>::new(DiskList { system, holder })?.into_any(),
        Office::Services => Handle::<dyn Services>::new(ServiceList { system, holder })?.into_any(),
    })
}
