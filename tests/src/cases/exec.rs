//! `--exec`: one shell line, its output, its errors, its status; and the tool around it.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use trefoil_gate::{guard, tool};

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("exec-streams-are-told-apart", streams),
    case("exec-status-is-passed-on", statuses),
    case("exec-names-forge-no-line-of-the-log", forged),
    case("exec-output-is-exact", exact),
    case("exec-by-the-tool", by_the_tool),
    case("exec-timeout-has-a-message", timeout),
    case("exec-names-that-there-are-not", no_such_names),
    case("exec-lines-from-standard-input", piped),
    case("exec-tool-ends-with-its-reader", lost_reader),
];

fn streams(bench: &Bench<'_>) -> Result<()> {
    let answer = bench
        .exec(&bench.disk()?, "echo out; echo err >&2")?
        .status(0)?
        .prints("out\n")?;
    ensure!(
        answer.stderr == "err\n",
        "expected \"err\\n\" on standard error, not {:?}",
        answer.stderr
    );
    Ok(())
}

fn statuses(bench: &Bench<'_>) -> Result<()> {
    for (line, status) in [
        ("true", 0),
        ("false", 1),
        ("exit 42", 42),
        ("nothing-like-this", 127),
        ("exit 130", 130),
        ("exit 255", 255),
    ] {
        bench.exec_on(bench.machine(), line)?.status(status)?;
    }
    Ok(())
}

/// Programs that are called as lines of the kernel begin, or by a command to the terminal.
fn forged(bench: &Bench<'_>) -> Result<()> {
    let line = "cd /; for n in 'stack 9' 'kernel panic: cpu 0' \"$(printf 'a\\033[2Jb')\"; do \
        cp /boot/bin/sleep \"/$n\"; \"/$n\" 1 & done; sleep 0.4; ps; wait";
    let answer = bench.exec(&bench.disk()?, line)?.status(0)?.silently()?;
    for name in ["stack?9", "kernel?panic??cpu?0", "a?[2Jb"] {
        ensure!(
            answer.stdout.contains(name),
            "no {name:?}: {:?}",
            answer.stdout
        );
        let told = format!("] {name}: domain ");
        ensure!(answer.log.contains(&told), "no {told:?}:\n{}", answer.log);
    }
    for forged in ["stack 9", "kernel panic", "\x1b"] {
        let shown = [&answer.stdout, &answer.log].map(|text| text.contains(forged));
        ensure!(shown == [false; 2], "{forged:?} is there:\n{}", answer.log);
    }
    Ok(())
}

/// No echo, no carriage return, nothing of the kernel's log, and all of a long output.
fn exact(bench: &Bench<'_>) -> Result<()> {
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    bench
        .exec(&bench.disk()?, "seq 1 20000")?
        .status(0)?
        .prints(&expected)?
        .silently()?;
    Ok(())
}

/// `cargo xtask run`, with a disk of the test's own.
fn run_by_tool(bench: &Bench<'_>) -> Result<Command> {
    let mut command = bench.tool("run")?;
    command
        .args(["--rv6", "--rw"])
        .arg("--disk")
        .arg(bench.disk()?);
    Ok(command)
}

/// A name that means nothing is an error of usage, not a failure of what was asked for. Builds of
/// the tests' own put this program in the guard's place, and not in the tool's.
fn no_such_names(bench: &Bench<'_>) -> Result<()> {
    guard::own_copy(&bench.site.project, guard::GUARD)?;
    for (command, name, complaint) in [
        ("bench", "nosuch", "no benchmark `nosuch`"),
        ("test", "nosuch", "no test has"),
        ("test", "host=nosuch", "no package"),
    ] {
        let output = bench.tool(command)?.arg(name).output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(2) && stderr.contains(complaint),
            "{command} {name}: {:?} {stderr}",
            output.status
        );
    }
    Ok(())
}

/// `cargo xtask test --list | head -1`, with a `head` that has gone before anything comes.
fn lost_reader(bench: &Bench<'_>) -> Result<()> {
    let mut child = bench
        .tool("test")?
        .arg("--list")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    ensure!(
        output.status.code() == Some(tool::BROKEN_PIPE_STATUS.into()) && output.stderr.is_empty(),
        "expected a quiet end: {:?} {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn by_the_tool(bench: &Bench<'_>) -> Result<()> {
    let output = run_by_tool(bench)?
        .args(["--exec", "echo out; echo err >&2; exit 3", "--smp", "2"])
        .output()?;
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(
        output.status.code() == Some(3),
        "expected status 3: {:?} {stdout:?} {stderr:?}",
        output.status
    );
    ensure!(
        stdout == "out\n" && stderr == "err\n",
        "expected out and err: {stdout:?} {stderr:?}"
    );
    Ok(())
}

fn timeout(bench: &Bench<'_>) -> Result<()> {
    let output = run_by_tool(bench)?
        .args(["--exec", "sleep 1000", "--timeout", "5"])
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(124),
        "expected status 124: {:?} {stderr}",
        output.status
    );
    ensure!(
        stderr.contains("after 5 s"),
        "expected a message that names the time: {stderr}"
    );
    Ok(())
}

fn piped(bench: &Bench<'_>) -> Result<()> {
    use std::io::Write;
    use std::process::Stdio;
    let mut command = run_by_tool(bench)?;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().context("it is piped")?;
    input.write_all(b"echo first\ncat\nfor cat\n\x04\nseq 3 4\necho last")?;
    drop(input);
    let output = child.wait_with_output()?;
    let stdout = machine::session::plain(&output.stdout);
    ensure!(
        output.status.success(),
        "expected success: {:?}\n{stdout}",
        output.status
    );
    for text in ["first\n", "for cat\n", "3\n4\n", "last\n"] {
        ensure!(stdout.contains(text), "expected {text:?} in {stdout:?}");
    }
    Ok(())
}
