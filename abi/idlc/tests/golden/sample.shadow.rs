//! A shadow of `Whole`: hides that the domain behind it crashes.
//!
//! Calls go to the instance that serves now. If it crashes in a call, a new one is asked for, and the
//! call is made again where that is right: see `domains/libs/respawn`, which `Cargo.toml` has to name.
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

use interfaces::{Handle, Measure, Parcel, Part, RRef, RVec, RpcResult, Sample, SampleError, State, Whole};
use respawn::Client;

/// Starts the shadow in front of what `driver` restarts.
///
/// # Errors
/// If there is no memory.
pub fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn Whole>> {
    // A new instance knows nothing: set it up here as the old one was, before anybody calls it.
    let set_up = |_: &Handle<dyn Whole>| Ok(());
    Handle::new(Shadow(Client::with_set_up(driver, "whole", set_up)))
}

struct Shadow(Client<dyn Whole>);

impl Whole for Shadow {
    fn nothing(&self) -> RpcResult<()> {
        self.0.call(|it| it.nothing())
    }
    fn plain(&self, measure: Measure, state: State, flag: bool) -> Result<State, SampleError> {
        self.0.call(|it| it.plain(measure, state, flag))
    }
    fn fill(&self, to: &UserBuf<'_>, byte: u8) -> Result<u64, SampleError> {
        self.0.call(|it| it.fill(to, byte))
    }
    fn work(
        &self,
        lent: &RRef<Sample>,
        bytes: &RVec<Measure>,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), SampleError> {
        self.0.call(|it| it.work(lent, bytes, RVec::from_slice(&buffer)?))
    }
    fn link(
        &self,
        part: Handle<dyn Part>,
        more: Option<Handle<dyn Part>>,
        parcel: Parcel,
        number: u128,
    ) -> Result<Handle<dyn Whole>, SampleError> {
        // An argument is gone with the instance that crashes, so this is tried only once.
        self.0.call_once(|it| it.link(part, more, parcel, number))
    }
}
