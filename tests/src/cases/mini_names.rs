//! What is known of files besides their content, as static Linux programs set it and are told it:
//! times, owners, modes, names that are moved by flags, devices, holes. One says here what it says
//! on Linux (`lab/peers/names/linux.txt`), and the host's tools find it on the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use trefoil_gate::tool;

use super::mapping::{RUN, machine};
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[case("mini-sets-times-in-nanoseconds", times)];

/// With a journal, and room in each inode.
const OPTIONS: [&str; 7] = ["-j", "-J", "size=4", "-b", "4096", "-I", "256"];

/// The program, made by the host's compiler.
fn program(bench: &Bench<'_>) -> Result<PathBuf> {
    let program = bench.folder.join("names");
    let source = bench.site.project.root.join("lab/peers/names/names.c");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-static", "-o"]).arg(&program);
    let made = compiler.arg(source).output();
    let made = made.context("gcc cannot be started")?;
    let errors = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "gcc failed: {errors}");
    Ok(program)
}

/// What Linux says for a part.
fn there(bench: &Bench<'_>, part: &str) -> Result<String> {
    let all = bench.site.project.root.join("lab/peers/names/linux.txt");
    let all = fs::read_to_string(all)?;
    let head = format!("== {part}\n");
    let (_, rest) = all.split_once(&head).context("no such part")?;
    Ok(rest.split("== ").next().unwrap_or(rest).into())
}

/// Has the program do a part on a disk, which says what Linux says; nothing is started again.
fn compare(bench: &Bench<'_>, disk: &Path, part: &str) -> Result<()> {
    let right = there(bench, part)?;
    let machine = machine(bench, &program(bench)?, disk, "")?;
    let line = format!("{RUN} '/disk {part}'; sync");
    let answer = bench.exec_on(machine, &line)?;
    let seen = answer.stdout.replace('\r', "");
    for (seen, right) in seen.lines().zip(right.lines()) {
        ensure!(seen == right, "{seen:?} in place of {right:?}: {seen}");
    }
    ensure!(
        seen.starts_with(&right),
        "{seen}\n{}\n{}",
        answer.stderr,
        answer.log
    );
    bench.expect_clean(disk)
}

fn small(bench: &Bench<'_>) -> Result<PathBuf> {
    bench.small_disk("16M", &OPTIONS, |_| Ok(()))
}

/// What the host's tool says of a file, which must have all of `facts` in it.
fn expect_host(disk: &Path, file: &str, facts: &[&str]) -> Result<()> {
    let debugfs = tool::need("debugfs", "e2fsprogs")?;
    let mut command = Command::new(debugfs);
    command.args(["-R", &format!("stat {file}")]).arg(disk);
    let said = tool::output(&mut command)?;
    for fact in facts {
        ensure!(said.contains(fact), "no {fact:?} in {said}");
    }
    Ok(())
}

/// Of each time debugfs shows the seconds, and the word with the nanoseconds.
fn times(bench: &Bench<'_>) -> Result<()> {
    let disk = small(bench)?;
    compare(bench, &disk, "times")?;
    let modified = format!("mtime: 0x{:08x}:{:08x}", 981_173_106, 123_456_789 << 2);
    let accessed = format!("atime: 0x{:08x}:{:08x}", 1_000_000_000, 1 << 2);
    expect_host(&disk, "/times/timed", &[&modified, &accessed])
}
