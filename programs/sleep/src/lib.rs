//! `sleep TIME...`: waits for the sum of the times.
#![no_std]
#![forbid(unsafe_code)]

use textutil::decimal::duration;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: sleep TIME...
Waits for TIME seconds, which may be a fraction; units s, m, h, d. Several are added.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let times = env.options(USAGE, "")?.operands;
    if times.is_empty() {
        return Err(Stop::usage("a time is missing; `sleep --help` says more"));
    }
    let mut total = 0_u64;
    for time in &times {
        let more = duration(time);
        let more = more.ok_or_else(|| Stop::about(time, Error::text("invalid time interval")))?;
        total = total.saturating_add(more);
    }
    env.process().sleep(total)?;
    Ok(0)
}
