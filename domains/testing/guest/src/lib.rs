//! `guest SERVICE LINE`: has the personality that the manifest calls SERVICE run a line in the
//! shell of its Linux programs. For tests of several personalities side by side.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{Errno, ExitStatus, Personality, RVec, RpcError};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: guest SERVICE LINE
Has the personality SERVICE run LINE in its shell, and says how that ended.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let operands = env.options(USAGE, "")?.operands;
    let [name, line] = operands.as_slice() else {
        return Err(Stop::usage("a service and a line are needed"));
    };
    let text = core::str::from_utf8(name).map_err(|_| Stop::about(name, Error::text("no name")))?;
    let personality = env.service::<dyn Personality>(text)?;
    let words: Vec<u8> = [b"sh\0-c\0", &line[..], b"\0"].concat();
    let failed = |error: RpcError| Stop::about(name, error);
    let path = RVec::from_slice(b"/bin/sh").map_err(failed)?;
    let words = RVec::from_slice(&words).map_err(failed)?;
    match personality.run(path, words) {
        Ok(ExitStatus::Exited(status)) => println!(env, "{text}: exited with {status}")?,
        Ok(status) => println!(env, "{text}: {status:?}")?,
        Err(Errno::Rpc(RpcError::DomainCrashed)) => println!(env, "{text}: the personality ended")?,
        Err(error) => return Err(Stop::about(name, error)),
    }
    Ok(0)
}
