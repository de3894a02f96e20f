//! Two personalities for Linux programs side by side, started from rv6's shell.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use machine::qemu::Machine;
use trefoil_gate::build;

use super::{Case, case, threads};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[case("guests-one-of-two-personalities-ends", ends)];

/// What the manifest has besides: two personalities, and a program that may use them.
const TWO: &str = r#"
[domain.mini]
pass = ["exec"]
limits = { threads = 300, reserve_pages = 1024 }
grants = { spaces = "kernel.spaces", archive = "kernel.archive", random = "kernel.random", console = "console" }

[domain.other]
image = "mini"
pass = ["exec"]
limits = { threads = 300, reserve_pages = 1024 }
grants = { spaces = "kernel.spaces", archive = "kernel.archive", random = "kernel.random", console = "console" }

[program.guest]
services = ["mini", "other"]
"#;

/// What both have in the place of busybox's shell: it waits with 20 threads, one of which computes,
/// or counts in a hundred.
const WAIT: &str = "wait";
const ALL: &str = "all";

/// A machine with the usual image, and two personalities whose shell is the test's own program.
fn machine(bench: &Bench<'_>, program: &[u8]) -> Result<Machine> {
    let project = &bench.site.project;
    let usual = fs::read_to_string(project.root.join("images/default.toml"))?;
    let services = "[services]\n";
    let named = format!("{services}mini = \"mini\"\nother = \"other\"\n");
    let manifest = usual.replace(services, &named) + TWO;
    let archive = bench.folder.join("archive.cpio");
    let packed = build::packed_with(project, manifest.as_bytes(), &[("busybox", program)])?;
    fs::write(&archive, packed)?;
    let mut machine = bench.machine();
    machine.archive = Some(archive);
    Ok(machine)
}

/// One of them ends, killed or by a panic, while threads of its program wait and compute: the other
/// one's programs go on, and the next instance runs programs again.
fn ends(bench: &Bench<'_>) -> Result<()> {
    let program = threads::program(bench)?;
    let there = Command::new(&program).arg(ALL).output()?;
    let right = String::from_utf8_lossy(&there.stdout);
    let program = fs::read(program).context("the program is gone")?;
    let guest = "/boot/testing/guest";
    let line = format!(
        "{guest} mini {WAIT} & {guest} other {WAIT} & sleep 1; \
         kill-domain mini; sleep 0.3; {guest} mini {ALL}; \
         {guest} mini {WAIT} & sleep 0.5; crash mini; {guest} mini {ALL}; sleep 0.3; \
         kill-domain other; sleep 0.3; echo end"
    );
    let mut machine = machine(bench, &program)?;
    machine.processors = 2;
    let answer = bench.exec_within(LIMIT, machine, &line)?;
    let seen = answer.stdout.replace('\r', "");
    let count = |text: &str| seen.matches(text).count();
    ensure!(
        seen.trim_end().ends_with("end") && count("waiting\n") == 3,
        "{seen}\n{}",
        answer.stderr
    );
    // The second one's program has waited until its own end.
    let ended = "other: the personality ended";
    ensure!(count(ended) == 1, "{ended}, {} times: {seen}", count(ended));
    let before_end = seen.find(ended).context("it has ended")?;
    ensure!(
        count("mini: the personality ended") == 3 && count(&right) == 1,
        "{seen}\nwith {right}"
    );
    let last_of_mini = seen
        .rfind("mini: the personality ended")
        .context("it has ended")?;
    ensure!(
        last_of_mini < before_end,
        "the other one ended early: {seen}"
    );
    ensure!(seen.contains("mini: exited with 0"), "{seen}");
    Ok(())
}
