//! What programs may ask their personality for.
//!
//! The section `[services]` of the manifest gives names to sources, any number of them. A
//! personality that is granted `init.services` asks for them one by one, whenever a program wants
//! one, so that a domain that offers one can crash and come back in between.

use crate::instances::grants;
use crate::system::System;
use alloc::sync::Arc;
use interfaces::{AnyHandle, RespawnError, Services, Text};
use manifest::DomainIndex;

/// The services, as the domain `holder` has them.
pub struct ServiceList {
    /// The system.
    pub system: Arc<System>,
    /// Who holds this.
    pub holder: DomainIndex,
}

impl Services for ServiceList {
    fn service(&self, name: Text<32>) -> Result<Option<AnyHandle>, RespawnError> {
        let mut services = self.system.manifest.services.iter();
        let Some(service) = services.find(|it| it.port == name.as_str()) else {
            return Ok(None);
        };
        let granted = grants::find(&self.system, self.holder, service)?;
        Ok(Some(granted.handle))
    }
}
