//! `kill-domain NAME...`: ends domains from outside.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{DomainControl, Monitor};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: kill-domain NAME...
Ends the domains with these names (or numbers; see `domains`) at once. What is supervised is started again.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let operands = env.options(USAGE, "")?.operands;
    if operands.is_empty() {
        return Err(Stop::usage(
            "a name is needed; `kill-domain --help` says more",
        ));
    }
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let control = env.service::<dyn DomainControl>("control")?;
    // All are looked up first: the end of one may be the end of this program's way to the others.
    let mut victims = Vec::new();
    for name in &operands {
        let info = ulib::find_domain(&monitor, name)?;
        let gone = || Stop::about(name, Error::text("it has just ended"));
        victims.push(control.domain(info.id)?.ok_or_else(gone)?);
    }
    for victim in victims {
        victim.kill()?;
    }
    Ok(0)
}
