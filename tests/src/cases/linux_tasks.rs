//! Processes and threads of Linux programs: how they begin, wait, and end, whatever they ask for.

use std::process::Command;

use anyhow::{Result, ensure};
use trefoil_gate::tool;

use super::linux::{compiled, debian_disk, machine, put};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("linux-programs-can-all-be-killed", killed),
    case("linux-processes-are-to-each-other-as-on-linux", family),
    case("linux-programs-get-true-results", results),
];

/// Makes a program of `lab/peers/linux-tasks` and runs it; what it prints.
fn run(bench: &Bench<'_>, name: &str, arguments: &str, processors: u32) -> Result<String> {
    let program = compiled(bench, &format!("linux-tasks/{name}.c"))?;
    let disk = debian_disk(bench)?;
    put(bench, &disk, name, &std::fs::read(&program)?, "0100755")?;
    let mut machine = machine(bench, &disk)?;
    machine.processors = processors;
    let line = format!("/{name} {arguments}");
    let answer = bench.exec_within(5 * LIMIT, machine, line.trim())?;
    Ok(answer.status(0)?.stdout)
}

/// Each call with arguments that mean far too much, and what takes long by itself: SIGKILL ends it.
fn killed(bench: &Bench<'_>) -> Result<()> {
    let said = run(bench, "ends", "", 2)?;
    ensure!(said == "begun 3650, still there 0\n", "{said}");
    Ok(())
}

/// What bombs of processes, threads and pipes meet.
const BOMBS: &str = "beside a bomb: EAGAIN\nanother user: a process\nbehind it: a process\n\
    threads: 1 EAGAIN\nstill here\n";

/// Children, orphans, groups and sessions, compared with the host; and bombs, by this system's own
/// limits.
fn family(bench: &Bench<'_>) -> Result<()> {
    let program = compiled(bench, "linux-tasks/family.c")?;
    let mut right = tool::output(&mut Command::new(program))?;
    right += BOMBS;
    let said = run(bench, "family", "; /family bombs", 2)?;
    ensure!(said == right, "{said}\nin place of\n{right}");
    Ok(())
}

/// What calls of pipes, times and numbers give, compared with the host.
fn results(bench: &Bench<'_>) -> Result<()> {
    let program = compiled(bench, "linux-tasks/results.c")?;
    let right = tool::output(&mut Command::new(program))?;
    let said = run(bench, "results", "", 2)?;
    ensure!(said == right, "{said}\nin place of\n{right}");
    Ok(())
}
