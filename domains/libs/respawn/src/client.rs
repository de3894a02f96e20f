//! The present instance, shared by all threads of a domain.
//!
//! States, guarded by the lock: no instance, an instance, or one thread is asking for another.
//! While one asks, the others wait; nobody holds the lock during a call.

use alloc::boxed::Box;
use alloc::sync::Arc;
use domain_rt::sync::{Condvar, Mutex, MutexGuard, Wait};
use interfaces::{Failure, Gate, Handle, Interface, Respawn, RpcError, RpcResult};

use crate::fetch::{Live, fetch};
use crate::patience::Patience;
use crate::{exhausted, until_answered};

struct State<I: ?Sized + Interface> {
    current: Option<Arc<Live<I>>>,
    asking: bool,
    /// There was an instance.
    served: bool,
    /// Threads that wait for the one that asks.
    waiting: u32,
}

/// What is done with a new instance before it is called.
type SetUp<I> = Box<dyn Fn(&Handle<I>) -> RpcResult<()> + Send + Sync>;

/// The way to a domain that may be restarted.
pub struct Client<I: ?Sized + Interface> {
    respawn: Handle<dyn Respawn>,
    /// What it is called in the log.
    what: &'static str,
    set_up: SetUp<I>,
    patience: Patience,
    state: Mutex<State<I>>,
    answered: Condvar,
}

impl<I: ?Sized + Interface> Client<I> {
    /// A way with no instance yet. `what` is what the log calls the domain.
    pub fn new(respawn: Handle<dyn Respawn>, what: &'static str) -> Self {
        Client::with_set_up(respawn, what, |_| Ok(()))
    }

    /// As [`new`](Self::new). Each new instance is set up by `set_up` before anybody calls it.
    pub fn with_set_up(
        respawn: Handle<dyn Respawn>,
        what: &'static str,
        set_up: impl Fn(&Handle<I>) -> RpcResult<()> + Send + Sync + 'static,
    ) -> Self {
        let state = Mutex::new(State {
            current: None,
            asking: false,
            served: false,
            waiting: 0,
        });
        Client {
            respawn,
            what,
            set_up: Box::new(set_up),
            patience: Patience::default(),
            state,
            answered: Condvar::new(),
        }
    }

    /// Tells who restarts the domain where calls to it can be made to wait.
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
    /// [`Failure::gone`] if there is none to be had; the log says why. Or that of a call to who
    /// starts it; [`RpcError::Interrupted`] if the caller is ended.
    pub fn live<E: Failure>(&self, failed: u32) -> Result<Arc<Live<I>>, E> {
        let mut state = self.state.lock();
        loop {
            match &state.current {
                Some(current) if current.id != failed => return Ok(current.clone()),
                _ if !state.asking => return self.ask(state, failed),
                _ => {}
            }
            let wait;
            state.waiting += 1;
            (state, wait) = self.answered.wait(state);
            state.waiting -= 1;
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted.into());
            }
        }
    }

    /// Asks for an instance, on behalf of all threads that wait. Where there was one it is no
    /// answer that the next does not start just now.
    fn ask<E: Failure>(
        &self,
        mut state: MutexGuard<'_, State<I>>,
        failed: u32,
    ) -> Result<Arc<Live<I>>, E> {
        state.asking = true;
        // The handle to the dead instance is given up outside of the lock.
        let old = state.current.take();
        let served = state.served;
        drop(state);
        drop(old);
        let set_up = |service: &Handle<I>| (self.set_up)(service).map_err(E::from);
        let attempt = || fetch(&self.respawn, failed, set_up);
        let found = match served {
            true => self.patience.wait(attempt),
            false => attempt(),
        };
        let answer = found
            .map(Arc::new)
            .map_err(|why| why.tell(self.what, E::gone()));
        let mut state = self.state.lock();
        state.asking = false;
        state.served |= answer.is_ok();
        state.current = answer.as_ref().ok().cloned();
        let waiting = state.waiting;
        drop(state);
        if waiting > 0 {
            self.answered.notify_all();
        }
        answer
    }

    /// Makes a call that may be made twice, until an instance lives through it.
    ///
    /// # Errors
    /// Those of the call; as [`live`](Self::live).
    pub fn call<T, E: Failure>(
        &self,
        mut operation: impl FnMut(&Handle<I>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.call_checked(&mut operation, |_| false)
    }

    /// Makes a call that must not be made twice. After a crash the next instance is asked for, so
    /// that the next call finds it.
    ///
    /// # Errors
    /// Those of the call, also that the instance crashed; as [`live`](Self::live).
    pub fn call_once<T, E: Failure>(
        &self,
        operation: impl FnOnce(&Handle<I>) -> Result<T, E>,
    ) -> Result<T, E> {
        let live = self.live::<E>(0)?;
        let answer = operation(&live.service);
        if answer.as_ref().is_err_and(Failure::is_gone) {
            // If there is none, the next call asks again, and says so.
            let _ = self.live::<E>(live.id);
        }
        answer
    }

    /// As [`call`](Self::call). An error of an instance for which `is_dead` holds is no answer
    /// either.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn call_checked<T, E: Failure>(
        &self,
        mut operation: impl FnMut(&Handle<I>) -> Result<T, E>,
        is_dead: impl Fn(&Handle<I>) -> bool,
    ) -> Result<T, E> {
        let mut failed = 0;
        let answer = until_answered(|| {
            let live = match self.live(failed) {
                Ok(live) => live,
                Err(error) => return Some(Err(error)),
            };
            match operation(&live.service) {
                Err(error) if error.is_gone() || is_dead(&live.service) => {
                    failed = live.id;
                    None
                }
                answer => Some(answer),
            }
        });
        answer.unwrap_or_else(|| Err(exhausted(self.what)))
    }
}
