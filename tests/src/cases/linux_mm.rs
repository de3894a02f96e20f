//! The memory of Debian's programs: a program in C that prints the same on every Linux.

use std::process::Command;

use anyhow::Result;
use trefoil_gate::tool;

use super::linux::{compiled, debian_disk, machine, put};
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[case("linux-memory-as-on-linux", memory)];

/// Pages that are given back, mappings behind the end of a file and in place of others, forks
/// meanwhile, and words that are only read.
fn memory(bench: &Bench<'_>) -> Result<()> {
    let program = compiled(bench, "linux-memory/memory.c")?;
    let mut there = Command::new(&program);
    there.current_dir(&bench.folder);
    let right = tool::output(&mut there)?;
    let disk = debian_disk(bench)?;
    let content = std::fs::read(&program)?;
    put(bench, &disk, "memory", &content, "0100755")?;
    for processors in [1, 4] {
        let mut machine = machine(bench, &disk)?;
        machine.processors = processors;
        bench
            .exec_on(machine, "cd /tmp && /memory")?
            .status(0)?
            .prints(&right)?;
    }
    Ok(())
}
