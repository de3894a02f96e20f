//! `free`: shows how the machine's memory is used.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::Monitor;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: free [-b | -k | -m]
Shows how much memory the machine has, how much of it is in use and free, and how much of what is in use is
the shared heap: in KiB, or in bytes (-b) or MiB (-m).";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_alone(USAGE, "bkm")?;
    let unit = match (options.has('b'), options.has('m')) {
        (true, _) => 1,
        (_, true) => 1024 * 1024,
        _ => 1024,
    };
    let memory = env.service::<dyn Monitor>("monitor")?.memory()?;
    let used = memory.total.saturating_sub(memory.free);
    let [total, used, free, shared] =
        [memory.total, used, memory.free, memory.shared].map(|bytes| bytes / unit);
    println!(
        env,
        "{:>19} {:>11} {:>11} {:>11}", "total", "used", "free", "shared"
    )?;
    println!(
        env,
        "Mem:    {total:>11} {used:>11} {free:>11} {shared:>11}"
    )?;
    Ok(0)
}
