//! The steward: what outlives `init`, so that a crash of `init` costs nobody anything.
//!
//! It keeps the handles of the domains that `init` watches, and some numbers; the next instance of
//! `init` finds them here and goes on. What `init` hands out to others (`Respawn`, `Supervisor`,
//! and so on) are stand-ins that live here. A stand-in asks the instance of `init` that serves for
//! the real object, once for each instance, and passes calls on. A call that dies with `init` is
//! made again with the next instance, except an update, which is not to be begun twice.
//!
//! It calls the personality for `init`, too, on a thread of its own, so that the status of a shell
//! is not lost with who asked for it. Otherwise it calls nobody but `init`, and decides nothing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod house;
mod stand_in;

use alloc::sync::Arc;
use domain_rt::{memory, thread};
use interfaces::{
    AnyHandle, Attachment, Errno, ExitStatus, Handle, Household, Kept, Mandate, Personality, RVec,
    RpcError, RpcResult, Steward, Text,
};

use house::House;

/// Makes the steward.
///
/// # Errors
/// There is no memory.
pub fn start() -> RpcResult<Handle<dyn Steward>> {
    memory::reserve(memory::SERVICE)?;
    Handle::new(Door(Arc::new(House::default())))
}

/// What `init` calls.
struct Door(Arc<House>);

impl Steward for Door {
    fn serve(&self, household: Handle<dyn Household>) -> RpcResult<()> {
        self.0.serve(household);
        Ok(())
    }

    fn stand_in(&self, mandate: Mandate) -> RpcResult<AnyHandle> {
        stand_in::make(&self.0, mandate)
    }

    fn keep(&self, name: Text<32>, kept: Kept) -> RpcResult<()> {
        self.0.keep(name, kept)
    }

    fn kept(&self, name: Text<32>) -> RpcResult<Option<Kept>> {
        self.0.kept(name)
    }

    fn note(&self, key: Text<64>, value: u64) -> RpcResult<()> {
        self.0.note(key, value)
    }

    fn noted(&self, index: u32) -> RpcResult<Option<(Text<64>, u64)>> {
        Ok(self.0.noted(index))
    }

    fn run(
        &self,
        personality: Handle<dyn Personality>,
        path: RVec<u8>,
        arguments: RVec<u8>,
    ) -> Result<ExitStatus, Errno> {
        self.0.begin()?;
        let house = self.0.clone();
        let spawned = thread::spawn("line", move || house.end(personality.run(path, arguments)));
        if let Err(error) = spawned {
            self.0.end(Err(error.into()));
        }
        self.0.result()?.ok_or(Errno::Rpc(RpcError::Refused))?
    }

    fn ended(&self) -> RpcResult<Option<ExitStatus>> {
        Ok(self.0.result()?.and_then(Result::ok))
    }

    fn gate(&self, index: u32) -> RpcResult<Option<Attachment>> {
        self.0.gate(index)
    }
}
