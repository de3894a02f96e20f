//! `guest SERVICE LINE`: has the personality that the manifest calls SERVICE run a line in the
//! shell of its Linux programs. `guest memory`: what is in use once nothing changes any more. For
//! tests of several personalities side by side.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{Errno, ExitStatus, HeapAudit, Monitor, Personality, RVec, RpcError};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: guest SERVICE LINE
       guest memory
Has the personality SERVICE run LINE in its shell, and says how that ended. Or says what memory is in use: pages, but for those
of private heaps, of the kernel's small objects and of tables of kernel space; bytes of small objects; pages of private heaps.";

const PAGE: u64 = 4096;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let operands = env.options(USAGE, "")?.operands;
    if operands.as_slice() == [b"memory"] {
        return tell_memory(env);
    }
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

/// Pages in use, but for what grows and stays by itself; bytes of the kernel's small objects; pages
/// of private heaps.
type Used = [u64; 3];

fn used(monitor: &Handle<dyn Monitor>, auditor: &Handle<dyn HeapAudit>) -> RpcResult<Used> {
    let (memory, keeps) = (monitor.memory()?, auditor.keeps()?);
    let domains = ulib::domains(monitor)?;
    let heaps = domains.iter().map(|it| it.heap_bytes).sum::<u64>() / PAGE;
    let all = (memory.total - memory.free) / PAGE;
    Ok([all - heaps - keeps.pages - keeps.tables, keeps.bytes, heaps])
}

/// Says what is in use, once that has been the same for longer than threads of a personality wait
/// for work.
fn tell_memory(env: &Env) -> Result<i32, Stop> {
    const LOOKS: u32 = 15;
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let auditor = env.service::<dyn HeapAudit>("auditor")?;
    let failed = |error: RpcError| Stop::about(b"memory", error);
    let (mut last, mut same) = ([0; 3], 0);
    while same < LOOKS {
        env.process().sleep(100_000_000)?;
        let now = used(&monitor, &auditor).map_err(failed)?;
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    let [pages, bytes, heaps] = last;
    println!(env, "in use: {pages} {bytes} {heaps}")?;
    Ok(0)
}
