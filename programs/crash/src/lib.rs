//! `crash NAME`: makes a domain panic inside its next call.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{DomainControl, Monitor};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: crash NAME
Makes the domain with this name (or number; see `domains`) panic inside the next call that reaches it,
and nothing before that: `kill-domain NAME` ends it at once.";

/// Set for what is started from a prompt. Scripts have nobody who wants to be told.
const LEVEL: &str = "SHLVL";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let operands = env.options(USAGE, "")?.operands;
    let [name] = operands.as_slice() else {
        return Err(Stop::usage("one name is needed; `crash --help` says more"));
    };
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let control = env.service::<dyn DomainControl>("control")?;
    let info = ulib::find_domain(&monitor, name)?;
    match control.domain(info.id)? {
        Some(domain) => domain.crash_next_call()?,
        None => return Err(Stop::about(name, Error::text("it has just ended"))),
    }
    if env.environment()?.iter().any(|(name, _)| name == LEVEL) {
        println!(
            env,
            "{} (domain {}) will crash in its next call", info.name, info.id
        )?;
    }
    Ok(0)
}
