//! Services of the system that programs may ask for by name.
//!
//! `init` knows where each comes from: this domain only checks who may have it. A service of the
//! kernel outlives `init`, so the last handle to each is kept for the time in which `init` is not
//! there: `poweroff` must work then, too.

use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use interfaces::{AnyHandle, Errno, Handle, RespawnError, RpcError, Services, Text};

/// The services.
pub struct Named {
    granted: Option<Handle<dyn Services>>,
    /// The last handle to each. Names come from the manifest, so they are not many.
    kept: Mutex<Vec<(Text<32>, AnyHandle)>>,
}

impl Named {
    /// Those that `granted` hands out; without it, none.
    pub fn new(granted: Option<Handle<dyn Services>>) -> Self {
        Named {
            granted,
            kept: Mutex::default(),
        }
    }

    /// A handle to the service `name`, which the asker may have.
    ///
    /// # Errors
    /// `NotGranted` if there is none of this name, or why the domain that offers it does not serve.
    pub fn get(&self, name: Text<32>) -> Result<AnyHandle, Errno> {
        let granted = self.granted.as_ref().ok_or(Errno::NotGranted)?;
        match granted.service(name) {
            Ok(None) => Err(Errno::NotGranted),
            Ok(Some(service)) => {
                let answer = service.duplicate()?;
                self.keep(name, service);
                Ok(answer)
            }
            Err(RespawnError::Rpc(RpcError::DomainCrashed)) => {
                self.last(name).ok_or(Errno::Rpc(RpcError::DomainCrashed))
            }
            Err(RespawnError::Rpc(error)) => Err(Errno::Rpc(error)),
            Err(_) => Err(Errno::Rpc(RpcError::DomainCrashed)),
        }
    }

    /// Asks for the service `name`, unless that was done before.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn prepare(&self, name: Text<32>) -> Result<(), Errno> {
        let is_known = self.kept.lock().iter().any(|(other, _)| *other == name);
        if is_known {
            Ok(())
        } else {
            self.get(name).map(drop)
        }
    }

    fn keep(&self, name: Text<32>, service: AnyHandle) {
        let mut kept = self.kept.lock();
        let former = kept.iter().position(|(other, _)| *other == name);
        let former = former.map(|at| kept.swap_remove(at));
        kept.push((name, service));
        drop(kept);
        drop(former);
    }

    fn last(&self, name: Text<32>) -> Option<AnyHandle> {
        let kept = self.kept.lock();
        let (_, service) = kept.iter().find(|(other, _)| *other == name)?;
        service.duplicate().ok()
    }
}
