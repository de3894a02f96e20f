//! The console device: its present instance, and how it is replaced when it crashes, so that
//! programs do not notice.
//!
//! Text that was on its way when the console crashed is written again, so some of it may be seen
//! twice; keys that were typed at that moment may be lost.

use interfaces::{Console, Handle, Respawn, RpcResult};
use respawn::Client;

/// The console, over its restarts.
pub struct Device(Client<dyn Console>);

impl Device {
    /// Not asked for before it is needed.
    pub fn new(respawn: Handle<dyn Respawn>) -> Self {
        Device(Client::new(respawn, "console"))
    }

    /// Calls the console, and calls again on the next instance if it crashes.
    ///
    /// # Errors
    /// `DomainCrashed` if it stays down; others of the call.
    pub fn call<T>(&self, operation: impl Fn(&dyn Console) -> RpcResult<T>) -> RpcResult<T> {
        self.0.call(|console| operation(&**console))
    }

    /// Asks for the console, if that was not done yet.
    ///
    /// # Errors
    /// `DomainCrashed` if there is none; others of the call to who starts it.
    pub fn prepare(&self) -> RpcResult<()> {
        self.0.live(0).map(drop)
    }
}
