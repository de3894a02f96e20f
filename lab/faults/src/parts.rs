//! Domains of a campaign that are started again when they are dead, by whoever needs them.

use crate::engine::{Ground, prepare};
use crate::store::pause;
use abi::{AnyHandle, Handle, RVec, RpcError, RpcResult, Text};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use interfaces::{Gate, Incarnation, Respawn, RespawnError};
use isolation::death::kill::kill;
use isolation::domain::{ControlBlock, Limits};
use isolation::load::loader::{MOST_GRANTS, Prepared, StartError};
use isolation::lock::Lock;
use isolation::platform::{WaitResult, platform, wait};
use isolation::{Reason, State};

/// Nanoseconds that a dead domain may take to be cleared away.
const PATIENCE: u64 = 20_000_000_000;
/// Budget of a call, in milliseconds on a fast machine.
const CALL_MS: u32 = 20;
/// Starts of a domain in a row before it is given up.
const ATTEMPTS: u32 = 4;

/// What a domain is granted.
pub type Grants = [Option<AnyHandle>; MOST_GRANTS];

/// How a domain is started.
pub struct Plan {
    /// Its image.
    pub name: &'static str,
    /// Its options.
    pub options: &'static str,
    /// Makes its grants.
    pub grants: fn(&'static Parts) -> RpcResult<Grants>,
    /// What is done with its service before others have it.
    pub ready: fn(&'static Parts, &AnyHandle) -> RpcResult<()>,
    /// It lives through all runs.
    pub stays: bool,
}

/// A domain that is started again when it is dead.
pub struct Part {
    image: Prepared,
    /// How it is started.
    pub plan: Plan,
    call_ms: u32,
    /// The instance that serves, and those that did.
    state: Lock<(Option<Serving>, Vec<Arc<ControlBlock>>)>,
    /// 1 while somebody starts one; waited for.
    busy: AtomicU32,
}

struct Serving {
    block: Arc<ControlBlock>,
    service: AnyHandle,
}

/// What there is to start.
pub struct Parts {
    /// From what all others stand on to the file system.
    pub all: Vec<Part>,
    /// What the platform has.
    pub ground: Ground,
}

/// The right to have one of them started.
struct Restart(&'static Parts, &'static Part);

impl Parts {
    /// The domain of this name.
    pub fn named(&'static self, name: &str) -> Option<&'static Part> {
        self.all.iter().find(|part| part.plan.name == name)
    }

    /// The service of the instance of a domain that serves now.
    ///
    /// # Errors
    /// It cannot be started, or there is no such domain.
    pub fn service(&'static self, name: &str) -> RpcResult<AnyHandle> {
        let part = self.named(name).ok_or(RpcError::Refused)?;
        match part.instance(self, 0) {
            Ok(incarnation) => Ok(incarnation.service),
            Err(RespawnError::Rpc(error)) => Err(error),
            Err(_) => Err(RpcError::Refused),
        }
    }
}

/// The right to have one of them started, for a domain.
///
/// # Errors
/// There is no memory for it, or no such domain.
pub fn respawn(parts: &'static Parts, name: &str) -> RpcResult<AnyHandle> {
    let part = parts.named(name).ok_or(RpcError::Refused)?;
    Ok(Handle::<dyn Respawn>::new(Restart(parts, part))?.into_any())
}

impl Respawn for Restart {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        self.1.instance(self.0, failed)
    }

    /// The campaign updates nothing.
    fn attach(&self, _gate: Handle<dyn Gate>) -> RpcResult<()> {
        Ok(())
    }
}

impl Part {
    /// A domain by this plan; it is not started yet.
    ///
    /// # Errors
    /// There is no such image.
    pub fn new(ground: &Ground, plan: Plan) -> Result<Self, String> {
        Ok(Part {
            image: prepare(ground, &format!("domains/{}", plan.name))?,
            plan,
            call_ms: CALL_MS * ground.stretch.clamp(1, 10) as u32,
            state: Lock::new((None, Vec::with_capacity(64))),
            busy: AtomicU32::new(0),
        })
    }

    /// An instance that serves, other than `failed`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn instance(
        &self,
        parts: &'static Parts,
        failed: u32,
    ) -> Result<Incarnation, RespawnError> {
        while self.busy.swap(1, Ordering::Acquire) != 0 {
            if wait(&self.busy, 1, None) == WaitResult::Interrupted {
                return Err(RpcError::Interrupted.into());
            }
        }
        let result = self.serve(parts, failed);
        self.busy.store(0, Ordering::Release);
        platform().wake(&self.busy, 1);
        result
    }

    fn serve(&self, parts: &'static Parts, failed: u32) -> Result<Incarnation, RespawnError> {
        if let Some((id, service)) = self.serving(failed)? {
            return Ok(Incarnation { id, service });
        }
        self.end_one();
        let mut last = RespawnError::GaveUp;
        for _ in 0..ATTEMPTS {
            match self.start(parts) {
                Ok(serving) => {
                    let (id, service) = (serving.block.id, serving.service.duplicate());
                    self.state.lock().0 = Some(serving);
                    return Ok(Incarnation {
                        id,
                        service: service?,
                    });
                }
                Err(error) => last = RespawnError::CannotStart(Text::new(&format!("{error:?}"))),
            }
        }
        Err(last)
    }

    fn serving(&self, failed: u32) -> RpcResult<Option<(u32, AnyHandle)>> {
        let state = self.state.lock();
        match &state.0 {
            Some(one) if one.block.id != failed && one.block.is_alive() => {
                Ok(Some((one.block.id, one.service.duplicate()?)))
            }
            _ => Ok(None),
        }
    }

    fn start(&self, parts: &'static Parts) -> Result<Serving, StartError> {
        let Plan { name, options, .. } = self.plan;
        let grants = (self.plan.grants)(parts).map_err(StartError::Failed)?;
        let options = RVec::from_slice(options.as_bytes()).map_err(StartError::Failed)?;
        let limits = Limits {
            call_ms: self.call_ms,
            ..Limits::default()
        };
        let mut instance = self.image.start(name, limits, grants, options)?;
        let service = instance.offers[0].take();
        let service = service.ok_or(StartError::Failed(RpcError::Refused))?;
        (self.plan.ready)(parts, &service).map_err(StartError::Failed)?;
        Ok(Serving {
            block: instance.block,
            service,
        })
    }

    /// The instance that serves, or did last.
    pub fn block(&self) -> Option<Arc<ControlBlock>> {
        let state = self.state.lock();
        state.0.as_ref().map(|one| one.block.clone())
    }

    /// Ends the instance that serves, and waits until it is gone, so that what it paid for is free.
    fn end_one(&self) {
        let Some(Serving { block, service }) = self.state.lock().0.take() else {
            return;
        };
        kill(&block, Reason::Exited);
        drop(service);
        let deadline = platform().now() + PATIENCE;
        while block.state() != State::Gone && platform().now() < deadline {
            pause(50_000);
        }
        self.state.lock().1.push(block);
    }

    /// Ends it; all that were ended since the last time.
    pub fn end(&self) -> Vec<Arc<ControlBlock>> {
        self.end_one();
        let more = Vec::with_capacity(64);
        core::mem::replace(&mut self.state.lock().1, more)
    }
}
