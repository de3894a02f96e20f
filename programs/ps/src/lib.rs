//! `ps`: lists the processes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::ToString;
use alloc::vec::Vec;
use textutil::table::{Side, Table, processor_time};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: ps
Lists the processes: number, parent, domain, state, processor time (with that of others on its behalf), name.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    env.options_alone(USAGE, "aefux")?;
    let mut table = Table::new(&[
        ("PID", Side::Right),
        ("PPID", Side::Right),
        ("DOMAIN", Side::Right),
        ("STATE", Side::Left),
        ("TIME", Side::Right),
        ("NAME", Side::Left),
    ]);
    let mut index = 0;
    while let Some(info) = env.process().process(index)? {
        index += 1;
        let state = if info.ended { "ended" } else { "running" };
        let (pid, parent, domain) = (info.pid, info.parent, info.domain);
        table.row(Vec::from([
            pid.to_string(),
            parent.to_string(),
            domain.to_string(),
            state.to_string(),
            processor_time(info.user_ns + info.system_ns),
            info.name.to_string(),
        ]));
    }
    for line in table.lines() {
        println!(env, "{line}")?;
    }
    Ok(0)
}
