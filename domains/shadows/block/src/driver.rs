//! The present instance of the driver, and how the next one is asked for.
//!
//! States, guarded by the lock of [`Driver::state`]: no instance, an instance, or one thread is
//! asking for another. While one asks, the others wait; nobody holds the lock during a call.

use alloc::sync::Arc;
use domain_rt::log;
use domain_rt::sync::{Condvar, Mutex, MutexGuard, Wait};
use interfaces::{Block, BlockError, Gate, Handle, Respawn, RespawnError, RpcError, RpcResult};

/// One instance of the driver.
pub struct Instance {
    /// Its number.
    pub id: u32,
    /// What it offers.
    pub device: Handle<dyn Block>,
}

struct State {
    current: Option<Arc<Instance>>,
    asking: bool,
}

/// The way to the driver.
pub struct Driver {
    respawn: Handle<dyn Respawn>,
    state: Mutex<State>,
    answered: Condvar,
}

impl Driver {
    /// A way with no instance yet.
    pub fn new(respawn: Handle<dyn Respawn>) -> Self {
        let state = Mutex::new(State {
            current: None,
            asking: false,
        });
        Driver {
            respawn,
            state,
            answered: Condvar::new(),
        }
    }

    /// Tells who restarts the driver where calls to it can be made to wait.
    ///
    /// # Errors
    /// Those of the call.
    pub fn attach(&self, gate: Handle<dyn Gate>) -> RpcResult<()> {
        self.respawn.attach(gate)
    }

    /// Gives the present instance up, because another one is about to serve.
    pub fn forget(&self) {
        let old = self.state.lock().current.take();
        drop(old);
    }

    /// An instance other than `failed` (0: any); a new one is asked for if there is none.
    ///
    /// # Errors
    /// [`BlockError::Gone`] if there is none to be had.
    pub fn instance(&self, failed: u32) -> Result<Arc<Instance>, BlockError> {
        let mut state = self.state.lock();
        loop {
            match &state.current {
                Some(current) if current.id != failed => return Ok(current.clone()),
                _ if !state.asking => return self.ask(state, failed),
                _ => {}
            }
            let wait;
            (state, wait) = self.answered.wait(state);
            if wait == Wait::Interrupted {
                return Err(BlockError::Rpc(RpcError::Interrupted));
            }
        }
    }

    /// Asks for an instance, on behalf of all threads that wait.
    fn ask(
        &self,
        mut state: MutexGuard<'_, State>,
        failed: u32,
    ) -> Result<Arc<Instance>, BlockError> {
        state.asking = true;
        // The handle to the dead instance is given up outside of the lock.
        let old = state.current.take();
        drop(state);
        drop(old);
        let answer = self.fetch(failed);
        let mut state = self.state.lock();
        state.asking = false;
        state.current = answer.as_ref().ok().cloned();
        drop(state);
        self.answered.notify_all();
        answer
    }

    fn fetch(&self, failed: u32) -> Result<Arc<Instance>, BlockError> {
        match self.respawn.instance(failed) {
            Ok(incarnation) => match incarnation.service.downcast::<dyn Block>() {
                Ok(device) => Ok(Arc::new(Instance {
                    id: incarnation.id,
                    device,
                })),
                Err(other) => {
                    log!(
                        "instance {} offers {other:?}, not a block device",
                        incarnation.id
                    );
                    Err(BlockError::Gone)
                }
            },
            Err(RespawnError::Rpc(RpcError::DomainCrashed)) => Err(BlockError::Gone),
            Err(RespawnError::Rpc(error)) => Err(BlockError::Rpc(error)),
            Err(RespawnError::GaveUp) => Err(BlockError::Gone),
            Err(RespawnError::CannotStart(why)) => {
                log!("the driver does not start: {why}");
                Err(BlockError::Gone)
            }
        }
    }
}
