//! What gdb knows of the system by the script in `lab/gdb`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use machine::session::Session;
use trefoil_gate::tool;

use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[case("gdb-a-standstill-shows-every-stack", standstill)];

/// Whether gdb is there. It is no part of what the system needs, so without it these tests say
/// loudly that they have tested nothing.
fn has_gdb(test: &str) -> bool {
    let has = tool::find("gdb").is_some();
    if !has {
        eprintln!("NOT TESTED: {test}: there is no gdb (`cargo xtask setup` installs it)");
    }
    has
}

/// The lines behind the one that begins with `head`, up to the next thread.
fn stack<'a>(text: &'a str, head: &str) -> Result<Vec<&'a str>> {
    let mut lines = text.lines().map(str::trim);
    lines
        .find(|line| line.contains(head))
        .with_context(|| format!("no {head:?} in\n{text}"))?;
    Ok(lines.take_while(|line| line.starts_with('#')).collect())
}

/// Whether each of `wanted` is in a line of its own, in that order.
fn in_order(lines: &[&str], wanted: &[&str]) -> Result<()> {
    let mut rest = lines.iter();
    for want in wanted {
        ensure!(
            rest.any(|line| line.contains(want)),
            "no {want:?} where it should be in\n{}",
            lines.join("\n")
        );
    }
    Ok(())
}

fn standstill(bench: &Bench<'_>) -> Result<()> {
    if !has_gdb("gdb-a-standstill-shows-every-stack") {
        return Ok(());
    }
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.processors = 2;
    let mut session = Session::start(&machine, false)?;
    session.prompt(LIMIT)?;
    let late = session.run("sleep 1000", Duration::from_secs(2));
    let text = late
        .err()
        .context("a program slept for too short")?
        .to_string();
    ensure!(
        text.contains("processor 0: ") && text.contains("processor 1: "),
        "{text}"
    );
    // From the program's own line through the personality's, by two proxies, to the thread's first.
    let lines = stack(&text, " sleep: blocked")?;
    in_order(
        &lines,
        &[
            "framework::task::sched::leave_processor at kernel/framework/src/task/sched.rs:",
            "rv6 12: rv6::process::Process::sleep at domains/personalities/rv6/src/process.rs:",
            "proxies::",
            "sleep::main at programs/sleep/src/lib.rs:",
            "proxies::",
            "rv6 12: domain_rt::thread::run at runtime/src/thread.rs:",
            "isolation::call::thread::run at kernel/isolation/src/call/thread.rs:",
            "framework::arch::x86_64::switch::begin",
        ],
    )?;
    let chain = "(Process.sleep) <- sleep 14 (Program.run) <- rv6 12 (kernel.thread)";
    ensure!(text.contains(chain), "no {chain:?} in\n{text}");
    // Each thread that the kernel starts has one, and the driver's waits for its device.
    in_order(
        &stack(&text, " completions: blocked")?,
        &[
            "proxies::",
            "virtio-blk 7: virtio_blk::completions at domains/drivers/virtio-blk/src/lib.rs:",
        ],
    )
}
