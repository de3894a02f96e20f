//! `Respawn`: the right to ask for instances of one domain, for those who call it.

use super::grants;
use crate::service::Complaint;
use crate::system::System;
use alloc::string::String;
use alloc::sync::Arc;
use interfaces::{Gate, Handle, Incarnation, Respawn, RespawnError, RpcResult};
use manifest::DomainIndex;

/// Authority to have one domain restarted.
pub struct Respawner {
    /// The system.
    pub system: Arc<System>,
    /// The number of the domain.
    pub index: DomainIndex,
    /// The number of the domain that has this authority.
    pub holder: DomainIndex,
    /// The name of the offer that comes with it; the first if there is none.
    pub port: Option<String>,
}

impl Respawn for Respawner {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        let complaint = Complaint {
            of: failed,
            by: self.holder,
        };
        let port = self.port.as_deref();
        let (id, service) =
            grants::instance_offer(&self.system, self.index, Some(complaint), port)?;
        Ok(Incarnation { id, service })
    }

    fn attach(&self, gate: Handle<dyn Gate>) -> RpcResult<()> {
        self.system.services[self.index].attach(self.holder, gate);
        Ok(())
    }
}
