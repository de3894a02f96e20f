//! The state of a domain on its way to its successor.
//!
//! Until the successor has agreed to it, the state belongs to `init`, which only lends it; so a
//! successor that crashes over it takes nothing along, and the old instance gets it back.

use crate::limit;
use crate::service::Running;
use alloc::format;
use alloc::string::{String, ToString};
use interfaces::{Domain, Estate, HandOver, HandOverError, Handle, RRef, RpcError};

/// How long giving, looking at, and taking may take, each, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;

/// An instance that hands its state over.
pub struct Keeper {
    service: Handle<dyn HandOver>,
    control: Handle<dyn Domain>,
}

impl Keeper {
    /// That of an instance, if it is one.
    pub fn of(running: &Running) -> Option<Self> {
        let mut offers = running.offers.iter().flatten();
        let service = offers.find_map(|offer| offer.duplicate().ok()?.downcast().ok())?;
        let control = running.control.duplicate().ok()?;
        Some(Keeper { service, control })
    }

    /// Its state.
    ///
    /// # Errors
    /// Why it keeps it, in words.
    pub fn give(&self) -> Result<RRef<Estate>, String> {
        self.bounded("gives no state", |service| service.give())
    }

    /// Whether it could go on with this state.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn check(&self, estate: &RRef<Estate>) -> Result<(), String> {
        self.bounded("does not want the state", |service| service.check(estate))
    }

    /// Has it go on with this state.
    ///
    /// # Errors
    /// Why it does not; then the state is lost.
    pub fn take(&self, estate: RRef<Estate>) -> Result<(), String> {
        self.bounded("did not take the state", |service| service.take(estate))
    }

    fn bounded<R>(
        &self,
        what: &str,
        call: impl FnOnce(&Handle<dyn HandOver>) -> Result<R, HandOverError>,
    ) -> Result<R, String> {
        let rpc = |error: RpcError| format!("it {what}: {error}");
        let victim = self.control.duplicate().map_err(rpc)?;
        let end = move || {
            // It fails only if it is dead already.
            let _ = victim.kill();
        };
        let called = limit::within(PATIENCE, end, || call(&self.service));
        let (result, in_time) = called.map_err(rpc)?;
        result.map_err(|error| match in_time {
            true => format!("it {what}: {}", text(&error)),
            false => format!(
                "it {what}: it took longer than {} s",
                PATIENCE / 1_000_000_000
            ),
        })
    }
}

fn text(error: &HandOverError) -> String {
    match error {
        HandOverError::Rpc(RpcError::DomainCrashed) => String::from("it crashed over it"),
        HandOverError::Rpc(error) => error.to_string(),
        HandOverError::Refused(why) => why.to_string(),
    }
}
