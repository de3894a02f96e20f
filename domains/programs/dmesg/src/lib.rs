//! `dmesg`: prints the kernel's log.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{Monitor, RVec};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: dmesg
Prints what is kept of the kernel's log.";
/// Bytes that are asked for at once.
const CHUNK: usize = 16 * 1024;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    env.options_alone(USAGE, "")?;
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let mut from = 0;
    loop {
        let (text, next) = monitor.log(from, RVec::filled(0, CHUNK)?)?;
        if text.is_empty() {
            return Ok(0);
        }
        env.write(&text)?;
        from = next;
    }
}
