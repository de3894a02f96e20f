//! `free`: shows how the machine's memory is used.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::Monitor;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: free [-b | -k | -m | -c]
Shows how much memory the machine has, how much of it is in use and free, and how much of what is in use is
the shared heap: in KiB, or in bytes (-b) or MiB (-m). Or (-c) how many bytes the kernel has copied
since boot: straight between pages and programs in ring 3, between pages and domains, and between such
programs and domains.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_alone(USAGE, "bkmc")?;
    if options.has('c') {
        let of = env.service::<dyn Monitor>("monitor")?.copied()?;
        let (direct, pages, programs) = (of.direct, of.pages, of.programs);
        println!(env, "Copied: {direct} {pages} {programs}")?;
        return Ok(0);
    }
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
