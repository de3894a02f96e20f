//! Restarts the driver behind a shadow, as `init` does in the booted system, but without patience
//! or budget.

use super::launch;
use abi::{Handle, RpcError, Text};
use alloc::string::String;
use alloc::sync::Arc;
use interfaces::{Gate, Incarnation, Interface, Respawn, RespawnError, RpcResult};
use isolation::Reason;
use isolation::death::kill::kill;
use isolation::domain::ControlBlock;
use isolation::load::loader::Prepared;
use isolation::lock::Lock;

/// A driver through all its instances.
pub struct Driver<I: Interface + ?Sized> {
    image: Prepared,
    options: &'static str,
    current: Lock<Option<Current<I>>>,
}

struct Current<I: Interface + ?Sized> {
    block: Arc<ControlBlock>,
    service: Arc<Handle<I>>,
}

impl<I: Interface + ?Sized> Driver<I> {
    /// A driver that is not started yet.
    pub fn new(image: Prepared, options: &'static str) -> Arc<Self> {
        Arc::new(Driver {
            image,
            options,
            current: Lock::new(None),
        })
    }

    /// Ends the driver, and waits until it is cleared away.
    pub fn end(&self) {
        let last = self.current.lock().take();
        if let Some(Current { block, service }) = last {
            kill(&block, Reason::Exited);
            drop(service);
            // The core's own threads are never interrupted.
            let _ = block.wait_gone();
        }
    }

    /// The instance that serves, unless it is `failed` or dead.
    fn serving(&self, failed: u32) -> Option<(u32, Arc<Handle<I>>)> {
        let current = self.current.lock();
        let current = current.as_ref()?;
        let serves = current.block.id != failed && current.block.is_alive();
        serves.then(|| (current.block.id, current.service.clone()))
    }

    fn replace(&self) -> Result<(u32, Arc<Handle<I>>), String> {
        let old = self.current.lock().take();
        if let Some(old) = old {
            kill(&old.block, Reason::Exited);
        }
        let (instance, service) = launch::<I>(&self.image, None, Some(self.options))?;
        let (id, service) = (instance.block.id, Arc::new(service));
        *self.current.lock() = Some(Current {
            block: instance.block,
            service: service.clone(),
        });
        Ok((id, service))
    }
}

/// What a shadow is granted. One thread at a time asks, by the shadow's lock.
pub struct Respawner<I: Interface + ?Sized>(pub Arc<Driver<I>>);

impl<I: Interface + ?Sized> Respawn for Respawner<I> {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        let serving = self.0.serving(failed).map_or_else(|| self.0.replace(), Ok);
        let (id, service) = serving.map_err(|why| RespawnError::CannotStart(Text::new(&why)))?;
        let service = service.duplicate().map_err(RespawnError::Rpc)?.into_any();
        Ok(Incarnation { id, service })
    }

    /// Nothing is replaced by another image here.
    fn attach(&self, _: Handle<dyn Gate>) -> RpcResult<()> {
        Ok(())
    }
}

/// A grant of the right to have `driver` restarted.
///
/// # Errors
/// [`RpcError::NoMemory`].
pub fn respawner<I: Interface + ?Sized>(
    driver: &Arc<Driver<I>>,
) -> Result<abi::AnyHandle, RpcError> {
    Ok(Handle::<dyn Respawn>::new(Respawner(driver.clone()))?.into_any())
}
