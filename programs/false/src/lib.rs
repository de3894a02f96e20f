//! `false`: does nothing, unsuccessfully.
#![no_std]
#![forbid(unsafe_code)]

use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(_env: &Env) -> Result<i32, Stop> {
    Ok(1)
}
