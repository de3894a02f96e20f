//! `run-linux`: has the personality `first` run a Linux program; it belongs to
//! `docs/guide/write-a-personality.md`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{Errno, ExitStatus, Personality, RVec, RpcError};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let words = env.arguments();
    let Some(path) = words.first() else {
        return Err(Stop::usage("the path of a program is needed"));
    };
    let arguments: Vec<u8> = words
        .iter()
        .flat_map(|word| [word, &b"\0"[..]].concat())
        .collect();
    let failed = |error: Error| Stop::about(path, error);
    let shared = |bytes| RVec::from_slice(bytes).map_err(|error| failed(error.into()));
    let personality = env.service::<dyn Personality>("first")?;
    match personality.run(shared(path)?, shared(&arguments)?) {
        Ok(ExitStatus::Exited(status)) => Ok(status),
        Ok(_) | Err(Errno::Rpc(RpcError::DomainCrashed)) => {
            Err(failed(Error::text("the personality ended")))
        }
        Err(error) => Err(failed(error.into())),
    }
}
