//! Threads of static Linux programs on the personality `linux`, beside the same on the host.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("static-threads-as-on-linux", |bench| compare(bench, "1")),
    case("static-threads-as-on-linux-on-4-processors", |bench| {
        compare(bench, "4")
    }),
];

/// The program, made by the host's compiler.
pub(super) fn program(bench: &Bench<'_>) -> Result<PathBuf> {
    let source = "lab/peers/threads/threads.c";
    let program = bench.folder.join("threads");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-static", "-pthread", "-o"]);
    compiler
        .arg(&program)
        .arg(bench.site.project.root.join(source));
    let made = compiler.output().context("gcc cannot be started")?;
    let errors = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "gcc failed: {errors}");
    Ok(program)
}

fn compare(bench: &Bench<'_>, processors: &str) -> Result<()> {
    let program = program(bench)?;
    let there = Command::new(&program).arg("all").output()?;
    let right = String::from_utf8_lossy(&there.stdout);
    ensure!(
        there.status.success() && !right.contains("failed"),
        "it fails on the host: {right}"
    );
    let mut command = bench.tool("run")?;
    command.args(["--static", "--exec", "all", "--smp", processors]);
    command.arg("--program").arg(&program);
    let here = command.output().context("the tool cannot be started")?;
    let seen = String::from_utf8_lossy(&here.stdout);
    ensure!(
        seen == right && here.status.success(),
        "{:?}, {seen} in place of {right}; {}",
        here.status,
        String::from_utf8_lossy(&here.stderr)
    );
    fs::remove_file(program).context("the program is gone")
}
