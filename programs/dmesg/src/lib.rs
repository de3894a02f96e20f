//! `dmesg [-w]`: prints the kernel's log, and with -w what comes.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{Monitor, RVec};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: dmesg [-w]
Prints what is kept of the kernel's log. -w: then waits for more, until Ctrl-C.";
/// How long to wait before more of the log is asked for, in nanoseconds.
const PAUSE: u64 = 200_000_000;
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
    let follow = env.options_alone(USAGE, "w")?.has('w');
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let mut from = 0;
    loop {
        let (text, next) = monitor.log(from, RVec::filled(0, CHUNK)?)?;
        from = next;
        if !text.is_empty() {
            env.write(&text)?;
        } else if follow {
            env.flush()?;
            env.process()
                .sleep(PAUSE)
                .map_err(|errno| Stop::about(b"sleep", errno))?;
        } else {
            return Ok(0);
        }
    }
}
