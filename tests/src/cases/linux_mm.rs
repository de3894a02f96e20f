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
    case("linux-memory-placed-as-on-linux", placed),
    case("linux-memory-is-short", short),
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

/// Where mappings come, and how they grow, shrink and move.
fn placed(bench: &Bench<'_>) -> Result<()> {
    as_on_linux(bench, "places")
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

/// Programs that want all memory are ended one by one, beside a program that goes on with its own
/// memory and a shell that begins others. Linux would do the same to whoever runs this.
fn short(bench: &Bench<'_>) -> Result<()> {
    let program = compiled(bench, "linux-memory/hog.c")?;
    let disk = debian_disk(bench)?;
    put(bench, &disk, "hog", &std::fs::read(&program)?, "0100755")?;
    let hogs = ["stores", "reads", "shares", "threads", "children"];
    let round: String = hogs.iter().map(|hog| format!("{hog}: 9\n")).collect();
    let line = "(for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1; ls / >/dev/null 2>&1; done) & \
        /hog; wait; echo all";
    for processors in [1, 4] {
        let mut machine = machine(bench, &disk)?;
        machine.processors = processors;
        machine.memory = "256M".into();
        bench
            .exec_on(machine, line)?
            .status(0)?
            .prints(&format!("{}done\nall\n", round.repeat(3)))?
            .logs("out of memory: process")?;
    }
    Ok(())
}
