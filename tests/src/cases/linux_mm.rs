//! The memory of Debian's programs: programs in C that print the same on every Linux.

use std::process::Command;

use anyhow::Result;
use trefoil_gate::tool;

use super::linux::{compiled, debian_disk, machine, put};
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("linux-memory-as-on-linux", memory),
    case("linux-memory-shared-as-on-linux", shared),
];

/// Pages that are given back, mappings behind the end of a file and in place of others, forks
/// meanwhile, and words that are only read.
fn memory(bench: &Bench<'_>) -> Result<()> {
    as_on_linux(bench, "memory")
}

/// Pages that processes share, and locks and words in them.
fn shared(bench: &Bench<'_>) -> Result<()> {
    as_on_linux(bench, "shared")
}

fn as_on_linux(bench: &Bench<'_>, name: &str) -> Result<()> {
    let program = compiled(bench, &format!("linux-memory/{name}.c"))?;
    let mut there = Command::new(&program);
    there.current_dir(&bench.folder);
    let right = tool::output(&mut there)?;
    let disk = debian_disk(bench)?;
    let content = std::fs::read(&program)?;
    put(bench, &disk, name, &content, "0100755")?;
    for processors in [1, 4] {
        let mut machine = machine(bench, &disk)?;
        machine.processors = processors;
        bench
            .exec_on(machine, &format!("cd /tmp && /{name}"))?
            .status(0)?
            .prints(&right)?;
    }
    Ok(())
}
