//! Objects that stand in for those of `init`.

use alloc::sync::Arc;
use domain_rt::sync::Mutex;
use interfaces::{
    AnyHandle, DiskError, DiskInfo, Disks, Failure, Gate, Handle, Household, Incarnation,
    Interface, Mandate, Office, RVec, Respawn, RespawnError, RpcError, RpcResult, ServiceInfo,
    Services, Supervisor, Text, UpdateError, Updated, Updater,
};

use crate::house::House;

/// The stand-in for what the mandate says.
///
/// # Errors
/// `NoMemory`.
pub fn make(house: &Arc<House>, mandate: Mandate) -> RpcResult<AnyHandle> {
    Ok(match mandate.office {
        Office::Respawn => Handle::<dyn Respawn>::new(StandIn::new(house, mandate))?.into_any(),
        Office::Supervisor => {
            Handle::<dyn Supervisor>::new(StandIn::new(house, mandate))?.into_any()
        }
        Office::Updater => Handle::<dyn Updater>::new(StandIn::new(house, mandate))?.into_any(),
        Office::Disks => Handle::<dyn Disks>::new(StandIn::new(house, mandate))?.into_any(),
        Office::Services => Handle::<dyn Services>::new(StandIn::new(house, mandate))?.into_any(),
    })
}

/// The object of the instance of `init` with this number.
struct Real<I: ?Sized + Interface> {
    life: u64,
    handle: Arc<Handle<I>>,
}

/// What stands in for an object of `init`.
struct StandIn<I: ?Sized + Interface> {
    house: Arc<House>,
    mandate: Mandate,
    real: Mutex<Option<Real<I>>>,
}

impl<I: ?Sized + Interface> StandIn<I> {
    fn new(house: &Arc<House>, mandate: Mandate) -> Self {
        StandIn {
            house: house.clone(),
            mandate,
            real: Mutex::new(None),
        }
    }

    /// The object of this instance of `init`.
    fn real(&self, life: u64, household: &Handle<dyn Household>) -> RpcResult<Arc<Handle<I>>> {
        let known = self.real.lock();
        if let Some(real) = known.as_ref().filter(|real| real.life == life) {
            return Ok(real.handle.clone());
        }
        drop(known);
        let handle = household.fulfil(self.mandate)?.downcast::<I>();
        let handle = Arc::new(handle.map_err(|_| RpcError::Refused)?);
        let real = Real {
            life,
            handle: handle.clone(),
        };
        let before = self.real.lock().replace(real);
        drop(before);
        Ok(handle)
    }

    /// Calls `init`, and again with its next instance if it dies meanwhile.
    fn call<R, E: Failure>(&self, work: impl Fn(&Handle<I>) -> Result<R, E>) -> Result<R, E> {
        let mut beyond = 0;
        loop {
            let (life, household) = self.house.serving(beyond)?;
            let real = self.real(life, &household).map_err(E::from);
            match real.and_then(|handle| work(&handle)) {
                // Otherwise it is an answer: another domain has crashed.
                Err(error) if error.is_gone() && is_dead(&household) => beyond = life,
                answer => return answer,
            }
        }
    }

    /// The object of an instance of `init` that is there now, for a call that is not made again.
    fn now(&self) -> RpcResult<Arc<Handle<I>>> {
        let mut beyond = 0;
        loop {
            let (life, household) = self.house.serving(beyond)?;
            if !is_dead(&household) {
                return self.real(life, &household);
            }
            beyond = life;
        }
    }
}

fn is_dead(household: &Handle<dyn Household>) -> bool {
    household.present() == Err(RpcError::DomainCrashed)
}

impl Respawn for StandIn<dyn Respawn> {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        self.call(|init| init.instance(failed))
    }

    fn attach(&self, gate: Handle<dyn Gate>) -> RpcResult<()> {
        let Mandate { domain, holder, .. } = self.mandate;
        self.house.attach(domain, holder, gate.duplicate()?)?;
        self.call(|init| init.attach(gate.duplicate()?))
    }
}

impl Supervisor for StandIn<dyn Supervisor> {
    fn service(&self, index: u32) -> RpcResult<Option<ServiceInfo>> {
        self.call(|init| init.service(index))
    }
}

impl Updater for StandIn<dyn Updater> {
    fn update(
        &self,
        name: Text<32>,
        file: RVec<u8>,
        options: Option<RVec<u8>>,
    ) -> Result<Updated, UpdateError> {
        self.now()?.update(name, file, options)
    }
}

impl Disks for StandIn<dyn Disks> {
    fn disk(&self, index: u32) -> RpcResult<Option<DiskInfo>> {
        self.call(|init| init.disk(index))
    }

    fn mount(&self, name: Text<32>, read_only: bool) -> Result<Handle<dyn Respawn>, DiskError> {
        self.call(|init| init.mount(name, read_only))
    }

    fn unmount(&self, name: Text<32>) -> Result<(), DiskError> {
        self.call(|init| init.unmount(name))
    }
}

impl Services for StandIn<dyn Services> {
    fn service(&self, name: Text<32>) -> Result<Option<AnyHandle>, RespawnError> {
        self.call(|init| init.service(name))
    }
}
