//! Where the calls that a shadow passes on can be made to wait while the domain behind it is
//! replaced.
//!
//! Every call takes a [`Pass`] first and keeps it until it has its answer, repeats included. `init`
//! closes the gate through the interface [`Gate`]: new calls wait for a pass, and `init` waits
//! until all passes are back. The gate is open again when the handle that came of closing it is
//! dropped, so also when `init` dies.
//!
//! A call must not take a pass while it has one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::time;
use interfaces::{Closed, Gate, Handle, RpcError, RpcResult};

#[derive(Default)]
struct State {
    /// Who wants it to be closed.
    closers: u32,
    /// Passes that are out.
    inside: u32,
}

/// The way through a shadow.
#[derive(Default)]
pub struct Passage {
    state: Mutex<State>,
    opened: Condvar,
    returned: Condvar,
}

/// The right to call the domain behind. Dropping it gives it back.
pub struct Pass<'a>(&'a Passage);

/// As [`Pass`], to be handed to another thread.
pub struct OwnPass(Arc<Passage>);

impl Passage {
    /// A pass; waits while the gate is closed.
    ///
    /// # Errors
    /// [`RpcError::Interrupted`] if the caller is ended meanwhile.
    pub fn enter(&self) -> RpcResult<Pass<'_>> {
        let mut state = self.state.lock();
        while state.closers > 0 {
            let wait;
            (state, wait) = self.opened.wait(state);
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted);
            }
        }
        state.inside += 1;
        Ok(Pass(self))
    }

    /// A pass, if the gate is open.
    pub fn try_enter(&self) -> Option<Pass<'_>> {
        let mut state = self.state.lock();
        if state.closers > 0 {
            return None;
        }
        state.inside += 1;
        Some(Pass(self))
    }

    /// As [`try_enter`](Self::try_enter), to be handed to another thread.
    pub fn try_enter_for_another(self: &Arc<Self>) -> Option<OwnPass> {
        // Given back by what is made of it.
        core::mem::forget(self.try_enter()?);
        Some(OwnPass(self.clone()))
    }

    fn open(&self) {
        let mut state = self.state.lock();
        state.closers -= 1;
        if state.closers == 0 {
            drop(state);
            self.opened.notify_all();
        }
    }

    /// Waits until all passes are back; whether they are. Interrupted, it looks once more and says
    /// what it saw.
    fn drained(&self, deadline: u64) -> bool {
        let mut state = self.state.lock();
        while state.inside > 0 {
            let wait;
            (state, wait) = self.returned.wait_until(state, deadline);
            if wait != Wait::Woken {
                return state.inside == 0;
            }
        }
        true
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.inside -= 1;
        if state.inside == 0 && state.closers > 0 {
            drop(state);
            self.0.returned.notify_all();
        }
    }
}

impl Drop for OwnPass {
    fn drop(&mut self) {
        drop(Pass(&self.0));
    }
}

/// A gate in front of `passage`. `settle` is run when nobody is inside, to bring to safety what the
/// domain behind holds back.
///
/// # Errors
/// No memory.
pub fn gate(
    passage: &Arc<Passage>,
    settle: impl Fn() + Send + Sync + 'static,
) -> RpcResult<Handle<dyn Gate>> {
    Handle::<dyn Gate>::new(Keeper {
        passage: passage.clone(),
        settle,
    })
}

struct Keeper<S> {
    passage: Arc<Passage>,
    settle: S,
}

impl<S: Fn() + Send + Sync + 'static> Gate for Keeper<S> {
    fn close(&self, patience: u64) -> RpcResult<Handle<dyn Closed>> {
        let deadline = time::now().saturating_add(patience);
        self.passage.state.lock().closers += 1;
        // From here on dropping it opens the gate.
        let closed = Shut(self.passage.clone());
        if self.passage.drained(deadline) {
            (self.settle)();
        }
        Handle::<dyn Closed>::new(closed)
    }
}

struct Shut(Arc<Passage>);

impl Closed for Shut {
    fn under_way(&self) -> RpcResult<u32> {
        Ok(self.0.state.lock().inside)
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        self.0.open();
    }
}
