//! A shadow of `Whole`: hides that the domain behind it crashes.
//!
//! Calls go to the instance that serves now. If it crashes in a call, a new one is asked for, and the
//! call is made again where that is right.
//!
//! Its entry, in `whole-shadow.idl` beside `Cargo.toml`:
//! ```text
//! //! The shadow of `Whole`.
//! /// Hides crashes of a domain that serves `Whole`.
//! #[domain]
//! pub trait WholeShadow {
//!     fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn Whole>>;
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]

use domain_rt::sync::Mutex;
use interfaces::{Handle, Measure, Parcel, Part, RRef, RVec, RpcError, RpcResult, Sample, SampleError, State, Whole};

/// How often one call is made at most before its caller gets the error.
const TRIES: u32 = 3;

/// Starts the shadow in front of what `driver` restarts.
///
/// # Errors
/// If there is no memory.
pub fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn Whole>> {
    Handle::new(Shadow { driver, current: Mutex::new(None) })
}

/// The instance that serves now.
struct Current {
    id: u32,
    service: Handle<dyn Whole>,
}

struct Shadow {
    driver: Handle<dyn Respawn>,
    current: Mutex<Option<Current>>,
}

impl Shadow {
    /// The instance that serves now; another one if `failed` is it (0: none failed).
    fn instance(&self, failed: u32) -> RpcResult<(u32, Handle<dyn Whole>)> {
        let mut current = self.current.lock();
        if let Some(it) = current.as_ref().filter(|it| it.id != failed) {
            return Ok((it.id, it.service.duplicate()?));
        }
        let incarnation = self.driver.instance(failed).map_err(|_| RpcError::DomainCrashed)?;
        let service = incarnation.service.downcast().map_err(|_| RpcError::Refused)?;
        // A new instance knows nothing: set it up here as the old one was, before anybody calls it.
        let result = (incarnation.id, Handle::duplicate(&service)?);
        *current = Some(Current { id: incarnation.id, service });
        Ok(result)
    }

    /// Makes a call that may be made twice, until an instance lives through it.
    fn retry<T, E: Failure>(&self, call: impl Fn(&dyn Whole) -> Result<T, E>) -> Result<T, E> {
        let mut failed = 0;
        for _ in 1..TRIES {
            let (id, service) = self.instance(failed)?;
            match call(&*service) {
                Err(error) if error.crashed() => failed = id,
                result => return result,
            }
        }
        call(&*self.instance(failed)?.1)
    }
}

/// Errors that can say that the domain behind the handle crashed.
trait Failure: From<RpcError> {
    /// Whether it did.
    fn crashed(&self) -> bool;
}

impl Failure for RpcError {
    fn crashed(&self) -> bool {
        matches!(self, RpcError::DomainCrashed)
    }
}

impl Failure for SampleError {
    fn crashed(&self) -> bool {
        matches!(self, SampleError::Rpc(RpcError::DomainCrashed))
    }
}

impl Whole for Shadow {
    fn nothing(&self) -> RpcResult<()> {
        self.retry(|it| it.nothing())
    }
    fn plain(&self, measure: Measure, state: State, flag: bool) -> Result<State, SampleError> {
        self.retry(|it| it.plain(measure, state, flag))
    }
    fn work(
        &self,
        lent: &RRef<Sample>,
        bytes: &RVec<Measure>,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), SampleError> {
        self.retry(|it| it.work(lent, bytes, RVec::from_slice(&buffer)?))
    }
    fn link(
        &self,
        part: Handle<dyn Part>,
        more: Option<Handle<dyn Part>>,
        parcel: Parcel,
        number: u128,
    ) -> Result<Handle<dyn Whole>, SampleError> {
        // An argument is gone with the instance that crashes, so this is tried only once.
        self.instance(0)?.1.link(part, more, parcel, number)
    }
}
