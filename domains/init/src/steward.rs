//! What is left to the next life of `init`, and objects that outlive this one.
//!
//! If the manifest has a domain that offers to be the steward, `init` keeps there what it could not
//! find out again: what its domains offer, how often they crashed, who has which PCI function. The
//! kernel keeps the way to the steward. What `init` hands out are stand-ins of the steward's then,
//! which lead to the life of `init` that serves.
//!
//! Who has a stand-in cannot go on without the steward: when that dies, they are started anew.

use crate::claims;
use crate::failure::Failure;
use crate::instances::grants::{self, Granted};
use crate::service::Running;
use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use domain_rt::log;
use interfaces::{
    AnyHandle, Handle, Household, Kept, Mandate, Office, RpcError, RpcResult, Serving, Steward,
    Text,
};
use manifest::DomainIndex;

/// The number of the steward's instance, and the way to it.
pub type Found = (u32, Handle<dyn Steward>);

/// What is kept under this key says whether a disk is only read.
pub fn read_only_key(disk: &str) -> String {
    format!("read-only {disk}")
}

/// This life of `init`.
struct Head(Arc<System>);

impl Household for Head {
    fn fulfil(&self, mandate: Mandate) -> RpcResult<AnyHandle> {
        (self.0.own)(&self.0, &mandate)
    }

    fn present(&self) -> RpcResult<()> {
        Ok(())
    }
}

impl System {
    /// One of `init`'s own objects for the domain `holder`; one that outlives `init` if there is a
    /// steward.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn lasting(
        self: &Arc<Self>,
        office: Office,
        holder: DomainIndex,
        about: Option<DomainIndex>,
        port: Option<&str>,
    ) -> Result<Granted, Failure> {
        let name = &self.manifest[holder].name;
        let rpc = |error| Failure::of_call(name, error, "");
        let mandate = Mandate {
            office,
            holder: Text::new(name),
            domain: about.map_or(Text::empty(), |index| Text::new(&self.manifest[index].name)),
            port: Text::new(port.unwrap_or_default()),
        };
        let Some((id, steward)) = self.steward()? else {
            return (self.own)(self, &mandate).map(Granted::free).map_err(rpc);
        };
        Ok(Granted {
            handle: steward.stand_in(mandate).map_err(rpc)?,
            served_by: self.steward.map(|index| (index, id)),
        })
    }

    /// The steward, started if need be, and its number; `None` if the manifest has none.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn steward(self: &Arc<Self>) -> Result<Option<Found>, Failure> {
        let Some(index) = self.steward else {
            return Ok(None);
        };
        let (id, handle) = grants::instance_offer(self, index, None, None)?;
        let handle = handle.downcast();
        let name = &self.manifest[index].name;
        let handle = handle.map_err(|_| Failure::of_call(name, RpcError::Refused, ""))?;
        Ok(Some((id, handle)))
    }

    /// Leaves to the next life what there is of an instance that serves from now on.
    pub fn leave(self: &Arc<Self>, index: DomainIndex, running: &Running) {
        if let Err(failure) = self.try_leave(index, running) {
            log!(
                "{}: cannot be left to a next life: {}",
                self.manifest[index].name,
                failure.text()
            );
        }
    }

    /// Leaves to the next life that no instance of this domain serves.
    pub fn leave_nobody(self: &Arc<Self>, index: DomainIndex) {
        let name = &self.manifest[index].name;
        let kept = Kept {
            serving: Serving {
                id: 0,
                ..self.serving(index)
            },
            offers: [const { None }; 4],
        };
        let rpc = |error| Failure::of_call(name, error, "");
        let left = self.steward().and_then(|steward| match steward {
            Some((_, steward)) => steward.keep(Text::new(name), kept).map_err(rpc),
            None => Ok(()),
        });
        if let Err(failure) = left {
            log!("{name}: cannot be left to a next life: {}", failure.text());
        }
    }

    /// Leaves everything to a new steward, which knows nothing yet.
    pub fn leave_all(self: &Arc<Self>) {
        for &index in &self.order {
            if self.services[index].status().is_wanted() {
                // Why it is down has been said.
                let _ = self.with_instance(index, None, |running| self.leave(index, running));
            }
        }
        for (address, (owner, grant)) in self.claims.all() {
            let key = claims::key(&self.manifest[owner].name, grant);
            self.note(&key, claims::pack(address));
        }
        let read_only = self.read_only_disks.lock().clone();
        for disk in read_only {
            self.note(&read_only_key(&disk), 1);
        }
    }

    fn try_leave(self: &Arc<Self>, index: DomainIndex, running: &Running) -> Result<(), Failure> {
        let name = Text::new(&self.manifest[index].name);
        let rpc = |error| Failure::of_call(name.as_str(), error, "");
        if self.steward == Some(index) {
            return self.inaugurate(index, running).map_err(rpc);
        }
        let Some((_, steward)) = self.steward()? else {
            return Ok(());
        };
        let mut offers = [const { None }; 4];
        for (copy, offer) in offers.iter_mut().zip(&running.offers) {
            let offer = offer.as_ref().map(AnyHandle::duplicate);
            *copy = offer.transpose().map_err(rpc)?;
        }
        let kept = Kept {
            serving: self.serving(index),
            offers,
        };
        steward.keep(name, kept).map_err(rpc)
    }

    /// What is counted of a domain.
    fn serving(&self, index: DomainIndex) -> Serving {
        let status = self.services[index].status();
        Serving {
            id: status.id,
            crashes: status.crashes,
            starts: status.starts,
            updates: status.updates,
            by_update: status.by_update,
            image: status.image,
        }
    }

    /// Begins with a new steward: the kernel keeps the way to it.
    fn inaugurate(self: &Arc<Self>, index: DomainIndex, running: &Running) -> RpcResult<()> {
        let offer = running.offers[0].as_ref().ok_or(RpcError::Refused)?;
        let steward: Handle<dyn Steward> = match offer.duplicate()?.downcast() {
            Ok(steward) => steward,
            Err(_) => return Err(RpcError::Refused),
        };
        let kept = Kept {
            serving: self.serving(index),
            offers: [const { None }; 4],
        };
        steward.keep(Text::new(&self.manifest[index].name), kept)?;
        if let Some(legacy) = &self.kernel.legacy {
            legacy.leave(offer.duplicate()?)?;
        }
        self.take_office(&steward)
    }

    /// From now on the stand-ins lead to this life.
    ///
    /// # Errors
    /// Those of the call.
    pub fn take_office(self: &Arc<Self>, steward: &Handle<dyn Steward>) -> RpcResult<()> {
        steward.serve(Handle::<dyn Household>::new(Head(self.clone()))?)
    }

    /// Leaves a number to the next life.
    pub fn note(self: &Arc<Self>, key: &str, value: u64) {
        let rpc = |error| Failure::of_call(key, error, "");
        let noted = self.steward().and_then(|steward| match steward {
            Some((_, steward)) => steward.note(Text::new(key), value).map_err(rpc),
            None => Ok(()),
        });
        if let Err(failure) = noted {
            log!("`{key}` cannot be left to a next life: {}", failure.text());
        }
    }
}
