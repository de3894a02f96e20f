//! What `init` itself offers to those to whom the manifest grants it.

use crate::disks::DiskList;
use crate::programs::ServiceList;
use crate::supervise::Overview;
use crate::system::System;
use crate::update::Replacer;
use alloc::sync::Arc;
use interfaces::{AnyHandle, Disks, Handle, RpcError, RpcResult, Services, Supervisor, Updater};
use manifest::{DomainIndex, Source};

/// The service of `init`'s own that `source` names, for the domain `holder`.
///
/// # Errors
/// No memory. [`RpcError::Refused`] for what is not `init`'s.
pub fn service(system: &Arc<System>, holder: DomainIndex, source: &Source) -> RpcResult<AnyHandle> {
    let system = system.clone();
    match source {
        Source::Supervisor => Handle::<dyn Supervisor>::new(Overview(system)).map(Handle::into_any),
        Source::Updater => Handle::<dyn Updater>::new(Replacer(system)).map(Handle::into_any),
        Source::Disks => {
            Handle::<dyn Disks>::new(DiskList { system, holder }).map(Handle::into_any)
        }
        Source::Services => {
            Handle::<dyn Services>::new(ServiceList { system, holder }).map(Handle::into_any)
        }
        _ => Err(RpcError::Refused),
    }
}
