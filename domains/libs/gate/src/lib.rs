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
use core::sync::atomic::{AtomicU64, Ordering};
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::time;
use interfaces::{Closed, Gate, Handle, RpcError, RpcResult};

/// Somebody who wants the gate to be closed, in [`Passage::state`].
const CLOSER: u64 = 1 << 32;

/// The way through a shadow.
///
/// Its state is one word, so that who passes takes no lock. The lock is for those who wait: they
/// look at the word with it, and who has changed what they wait for takes it for a moment before he
/// wakes them. So nobody looks too early and then waits for ever.
#[derive(Default)]
pub struct Passage {
    /// Passes that are out, and how many [`CLOSER`]s there are.
    state: AtomicU64,
    lock: Mutex<()>,
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
    #[inline]
    pub fn enter(&self) -> RpcResult<Pass<'_>> {
        match self.try_enter() {
            Some(pass) => Ok(pass),
            None => self.wait_to_enter(),
        }
    }

    #[cold]
    fn wait_to_enter(&self) -> RpcResult<Pass<'_>> {
        let mut guard = self.lock.lock();
        loop {
            if let Some(pass) = self.try_enter() {
                return Ok(pass);
            }
            let wait;
            (guard, wait) = self.opened.wait(guard);
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted);
            }
        }
    }

    /// A pass, if the gate is open.
    #[inline]
    pub fn try_enter(&self) -> Option<Pass<'_>> {
        let mut state = self.state.load(Ordering::Relaxed);
        while state < CLOSER {
            let more = self.state.compare_exchange_weak(
                state,
                state + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match more {
                Ok(_) => return Some(Pass(self)),
                Err(now) => state = now,
            }
        }
        None
    }

    /// As [`try_enter`](Self::try_enter), to be handed to another thread.
    pub fn try_enter_for_another(self: &Arc<Self>) -> Option<OwnPass> {
        // Given back by what is made of it.
        core::mem::forget(self.try_enter()?);
        Some(OwnPass(self.clone()))
    }

    fn open(&self) {
        if self.state.fetch_sub(CLOSER, Ordering::Release) < 2 * CLOSER {
            self.tell(&self.opened);
        }
    }

    /// Wakes who waits for what has just changed.
    #[cold]
    fn tell(&self, waiters: &Condvar) {
        drop(self.lock.lock());
        waiters.notify_all();
    }

    /// Passes that are out.
    pub fn inside(&self) -> u64 {
        self.state.load(Ordering::Acquire) % CLOSER
    }

    /// Waits until all passes are back; whether they are. Interrupted, it looks once more and says
    /// what it saw.
    fn drained(&self, deadline: u64) -> bool {
        let mut guard = self.lock.lock();
        while self.inside() > 0 {
            let wait;
            (guard, wait) = self.returned.wait_until(guard, deadline);
            if wait != Wait::Woken {
                return self.inside() == 0;
            }
        }
        true
    }
}

impl Drop for Pass<'_> {
    #[inline]
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(1, Ordering::Release);
        if before >= CLOSER && before % CLOSER == 1 {
            self.0.tell(&self.0.returned);
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
        self.passage.state.fetch_add(CLOSER, Ordering::Acquire);
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
        Ok(self.0.inside() as u32)
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        self.0.open();
    }
}
