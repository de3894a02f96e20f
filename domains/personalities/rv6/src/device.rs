//! The console device: its present instance, and how it is replaced when it crashes, so that programs do
//! not notice.
//!
//! Text that was on its way when the console crashed is written again, so some of it may be seen twice;
//! keys that were typed at that moment may be lost.

use alloc::sync::Arc;
use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{Console, Handle, Respawn, RpcError, RpcResult};

use crate::mount::describe;

/// How often a call is made again on the next instance before it fails.
const ATTEMPTS: usize = 8;

struct Live {
    id: u32,
    console: Handle<dyn Console>,
}

/// The console, over its restarts.
pub struct Device {
    respawn: Handle<dyn Respawn>,
    live: Mutex<Option<Arc<Live>>>,
}

impl Device {
    /// Not asked for before it is needed.
    pub fn new(respawn: Handle<dyn Respawn>) -> Self {
        Device {
            respawn,
            live: Mutex::new(None),
        }
    }

    /// Calls the console, and calls again on the next instance if it crashes.
    ///
    /// # Errors
    /// `DomainCrashed` if it stays down; others of the call.
    pub fn call<T>(&self, operation: impl Fn(&dyn Console) -> RpcResult<T>) -> RpcResult<T> {
        let mut failed = 0;
        for _ in 0..ATTEMPTS {
            let live = self.live(failed)?;
            match operation(&*live.console) {
                Err(RpcError::DomainCrashed) => failed = live.id,
                result => return result,
            }
        }
        Err(RpcError::DomainCrashed)
    }

    /// Asks for the console, if that was not done yet.
    ///
    /// # Errors
    /// `DomainCrashed` if there is none.
    pub fn prepare(&self) -> RpcResult<()> {
        self.live(0).map(drop)
    }

    /// The instance that serves now, if that is not `failed`; otherwise the next.
    fn live(&self, failed: u32) -> RpcResult<Arc<Live>> {
        if let Some(live) = &*self.live.lock()
            && live.id != failed
        {
            return Ok(live.clone());
        }
        let new = self.respawn.instance(failed).map_err(|error| {
            log!("no console: {}", describe(&error));
            RpcError::DomainCrashed
        })?;
        let console = new
            .service
            .downcast::<dyn Console>()
            .map_err(|_| RpcError::Refused)?;
        let new = Arc::new(Live {
            id: new.id,
            console,
        });
        let old = self.live.lock().replace(new.clone());
        drop(old);
        Ok(new)
    }
}
