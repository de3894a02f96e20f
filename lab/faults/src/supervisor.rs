//! Starts drivers, one at a time, and offers `Respawn` to the shadow in front of them.

use crate::store::{Store, pause};
use abi::{AnyHandle, Handle, RVec, RpcError, RpcResult, Text};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use interfaces::{Gate, Incarnation, Medium, Respawn, RespawnError};
use isolation::Reason;
use isolation::death::kill::kill;
use isolation::domain::{ControlBlock, Limits};
use isolation::load::loader::{MOST_GRANTS, Prepared, StartError};
use isolation::lock::Lock;
use isolation::platform::{WaitResult, platform, wait};

/// Starts of one driver in a row before it is given up.
const ATTEMPTS: u32 = 4;
/// Budget of a call into a driver, and patience of a driver with its device, in milliseconds.
const CALL_MS: u32 = 20;
const DEVICE_MS: u64 = 60;
/// On slow machines they are longer, but not more than so many times.
const MOST_STRETCH: u64 = 10;
/// Pages that a driver with too little memory may have: what its runtime takes at once.
const FEW_PAGES: usize = 16;

/// The kernel's own supervisor of one driver.
pub struct Supervisor {
    image: Prepared,
    store: &'static Store,
    state: Lock<State>,
    /// 1 while somebody starts a driver; waited for.
    busy: AtomicU32,
    stretch: u64,
    /// When the first driver of this run was found dead; 0: none was.
    pub asked: AtomicU64,
}

struct State {
    current: Option<Instance>,
    /// Those that were replaced.
    ended: Vec<Arc<ControlBlock>>,
    /// KiB that the next driver lacks.
    missing: Option<u32>,
    failed_starts: u32,
}

struct Instance {
    block: Arc<ControlBlock>,
    device: AnyHandle,
}

impl Supervisor {
    /// A supervisor with no driver yet, on a machine that is slower by `stretch`.
    pub fn new(image: Prepared, store: &'static Store, stretch: u64) -> Self {
        let state = State {
            current: None,
            ended: Vec::with_capacity(64),
            missing: None,
            failed_starts: 0,
        };
        Supervisor {
            image,
            store,
            state: Lock::new(state),
            busy: AtomicU32::new(0),
            stretch: stretch.clamp(1, MOST_STRETCH),
            asked: AtomicU64::new(0),
        }
    }

    /// The medium behind it.
    pub fn store(&self) -> &'static Store {
        self.store
    }

    /// Forgets the former run. The next driver lacks as many KiB.
    pub fn begin(&self, missing: Option<u32>) {
        let mut state = self.state.lock();
        (state.missing, state.failed_starts) = (missing, 0);
        self.asked.store(0, Ordering::Relaxed);
    }

    /// The driver that serves now.
    pub fn current(&self) -> Option<Arc<ControlBlock>> {
        let state = self.state.lock();
        state.current.as_ref().map(|current| current.block.clone())
    }

    /// Drivers that did not even start since [`begin`](Self::begin).
    pub fn failed_starts(&self) -> u32 {
        self.state.lock().failed_starts
    }

    /// Ends the driver; all that were ended since the last time.
    pub fn end(&self) -> Vec<Arc<ControlBlock>> {
        let current = self.state.lock().current.take();
        if let Some(Instance { block, device }) = current {
            kill(&block, Reason::Exited);
            drop(device);
            self.state.lock().ended.push(block);
        }
        let mut state = self.state.lock();
        let replacement = Vec::with_capacity(64);
        core::mem::replace(&mut state.ended, replacement)
    }

    /// The driver that serves now, if it is another than `failed` and alive.
    fn serving(&self, failed: u32) -> Result<Option<Incarnation>, RespawnError> {
        let state = self.state.lock();
        match &state.current {
            Some(current) if current.block.id != failed && current.block.is_alive() => {
                let service = current.device.duplicate()?;
                let id = current.block.id;
                Ok(Some(Incarnation { id, service }))
            }
            _ => Ok(None),
        }
    }

    /// See [`Respawn::instance`].
    pub fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        self.take_turn()?;
        let result = match self.serving(failed) {
            Ok(Some(incarnation)) => Ok(incarnation),
            Ok(None) => self.replace(),
            Err(error) => Err(error),
        };
        self.busy.store(0, Ordering::Release);
        platform().wake(&self.busy, 1);
        result
    }

    fn take_turn(&self) -> Result<(), RpcError> {
        while self.busy.swap(1, Ordering::Acquire) != 0 {
            if wait(&self.busy, 1, None) == WaitResult::Interrupted {
                return Err(RpcError::Interrupted);
            }
        }
        Ok(())
    }

    fn replace(&self) -> Result<Incarnation, RespawnError> {
        let old = self.state.lock().current.take();
        if let Some(Instance { block, device }) = old {
            let now = platform().now();
            let _ = self
                .asked
                .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            kill(&block, Reason::Exited);
            drop(device);
            // One of its threads may still be writing to memory of a client, whose request the next
            // one is about to answer.
            while block.state() != isolation::State::Gone {
                pause(20_000);
            }
            self.state.lock().ended.push(block);
        }
        let mut last = RespawnError::GaveUp;
        for _ in 0..ATTEMPTS {
            match self.start() {
                Ok(instance) => {
                    let id = instance.block.id;
                    let service = instance.device.duplicate();
                    self.state.lock().current = Some(instance);
                    return Ok(Incarnation {
                        id,
                        service: service?,
                    });
                }
                Err(error) => {
                    self.state.lock().failed_starts += 1;
                    last = RespawnError::CannotStart(Text::new(&format!("{error:?}")));
                }
            }
        }
        Err(last)
    }

    fn start(&self) -> Result<Instance, StartError> {
        let missing = self.state.lock().missing.take();
        let medium = Handle::<dyn Medium>::new(self.store.reset()).map_err(StartError::Failed)?;
        let mut grants = [const { None }; MOST_GRANTS];
        grants[0] = Some(medium.into_any());
        let patience = DEVICE_MS * self.stretch;
        let options = format!("ballast={} patience={patience}", missing.unwrap_or(0));
        let options = RVec::from_slice(options.as_bytes()).map_err(StartError::Failed)?;
        let limits = Limits {
            pages: if missing.is_some() { FEW_PAGES } else { 0 },
            call_ms: CALL_MS * self.stretch as u32,
            ..Limits::default()
        };
        let mut instance = self.image.start("driver", limits, grants, options)?;
        let device = instance.offers[0].take();
        Ok(Instance {
            block: instance.block,
            device: device.ok_or(StartError::Failed(RpcError::Refused))?,
        })
    }
}

/// What the shadow is granted.
pub struct Respawner(pub &'static Supervisor);

impl Respawn for Respawner {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        self.0.instance(failed)
    }

    /// The campaign updates nothing.
    fn attach(&self, _gate: Handle<dyn Gate>) -> RpcResult<()> {
        Ok(())
    }
}
