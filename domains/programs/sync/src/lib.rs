//! `sync`: returns when everything that was written is on the disk.
#![no_std]
#![forbid(unsafe_code)]

use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: sync
Returns when everything that was written is on the disk.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    env.options(USAGE, "")?;
    env.process().sync()?;
    Ok(0)
}
