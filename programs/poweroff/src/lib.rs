//! `poweroff [-f]`: brings everything written to the disk and switches the machine off.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::Power;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: poweroff [-f]
Brings everything that was written to the disk and switches the machine off. -f: also if that fails.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "f")?;
    let power = env.service::<dyn Power>("power")?;
    if let Err(errno) = env.process().sync() {
        env.fail(b"sync", &Error::from(errno));
        if !options.has('f') {
            let text = "the machine stays on, so that nothing is lost; -f switches it off";
            return Err(Error::text(text).into());
        }
    }
    env.flush()?;
    power.off(0)?;
    Ok(0)
}
