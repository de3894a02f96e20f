//! `tally`: prints what a tally has counted; the program of `docs/guide/write-a-domain.md`.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{RpcError, Tally};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: tally
Prints how many sectors a block device has read and written.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    env.options_alone(USAGE, "")?;
    let tally = || env.service::<dyn Tally>("tally");
    let counts = match tally()?.counts() {
        // The domain crashed during the call. Who asks by name again gets its next instance.
        Err(RpcError::DomainCrashed) => tally()?.counts()?,
        counts => counts?,
    };
    println!(
        env,
        "{} sectors read, {} written", counts.read, counts.written
    )?;
    Ok(0)
}
