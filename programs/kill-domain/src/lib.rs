//! `kill-domain NAME`: ends a domain from outside.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{DomainControl, Monitor};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: kill-domain NAME
Ends the domain with this name (or number; see `domains`) at once. What is supervised is started again.";

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
        return Err(Stop::usage(
            "one name is needed; `kill-domain --help` says more",
        ));
    };
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let control = env.service::<dyn DomainControl>("control")?;
    let info = ulib::find_domain(&monitor, name)?;
    match control.domain(info.id)? {
        Some(domain) => domain.kill()?,
        None => return Err(Stop::about(name, Error::text("it has just ended"))),
    }
    Ok(0)
}
