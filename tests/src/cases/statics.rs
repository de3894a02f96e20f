//! Static Linux programs in ring 3: the host's busybox here, beside the same on the host.

use std::fs;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use super::{Case, case, first};
use crate::bench::{Bench, host_sum};

pub(super) const CASES: &[Case] = &[
    case("static-lines-as-on-linux", lines),
    case("static-lines-as-on-linux-on-4-processors", lines_on_four),
    case("static-files-of-the-archive", files),
    case("static-files-of-a-disk", disk),
    case("static-programs-that-are-ended", ended),
    case("static-program-that-executes-its-stack", executes_data),
    case("static-programs-that-are-none", refused),
];

/// What runs in a shell without any files.
const LINES: &[&str] = &[
    "echo one two; echo err >&2; exit 7",
    "echo abc | tr a-c A-C | cat | wc",
    "x=$(echo sub | tr s S); echo $x; (exit 3); echo $?; nosuch; echo $?",
    "for i in 1 2 3; do echo $i; done | while read x; do echo got $x; done",
    "sleep 0.1 & echo started; wait; echo done",
    "(sleep 1.5; echo late) & (sleep 0.1; echo early) & wait",
    "seq 1 3000 | sort -r | head -3; seq 1 20000 | md5sum",
    "yes | head -2; trap 'echo trapped' USR1; kill -USR1 $$; echo after",
    "for i in $(seq 1 40); do (echo $i) & done | sort -n | md5sum; wait",
    "f() { [ $1 -gt 0 ] && { echo $1; f $(($1 - 1)); }; }; f 5; dd if=/dev/null 2>/dev/null; pwd",
    "echo x > /new/file; echo $?; cat < /dev/null; exec sh -c 'echo $0 $#' a b",
];

/// Runs a line by the tool.
pub(super) fn run(bench: &Bench<'_>, line: &str, more: &[&str]) -> Result<Output> {
    let mut command = bench.tool("run")?;
    command
        .args(["--static", "--rw", "--exec", line])
        .args(more);
    command.output().context("the tool cannot be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The same line here and on the host.
fn compare(bench: &Bench<'_>, line: &str, more: &[&str]) -> Result<()> {
    let here = run(bench, line, more)?;
    let mut host = Command::new(which("busybox")?);
    host.args(["sh", "-c", line]).current_dir("/");
    host.env_clear().env("PATH", "/nowhere");
    let there = host.output().context("busybox cannot be started")?;
    let (seen, right) = (text(&here.stdout), text(&there.stdout));
    ensure!(
        seen == right && here.status.code() == there.status.code(),
        "{line}: {seen:?}, {:?} in place of {right:?}, {:?}; {}",
        here.status,
        there.status,
        text(&here.stderr)
    );
    Ok(())
}

/// Debian's programs on a file system that the host has made.
fn disk(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = "ls /disk; wc -c < /disk/big; sha256sum /disk/big; exit 3";
    let here = run(bench, line, &["--disk", &disk.display().to_string()])?;
    let (seen, errors) = (text(&here.stdout), text(&here.stderr));
    let big = bench.site.root.join("big");
    let length = fs::metadata(&big)?.len();
    let right = format!("{length}\n{}  /disk/big\n", host_sum(&big)?);
    ensure!(
        seen.ends_with(&right) && seen.contains("text\n"),
        "{seen:?} in place of {right:?}; {errors}"
    );
    ensure!(here.status.code() == Some(3), "{:?}; {errors}", here.status);
    bench.expect_clean(&disk)
}

fn lines(bench: &Bench<'_>) -> Result<()> {
    LINES.iter().try_for_each(|line| compare(bench, line, &[]))
}

fn lines_on_four(bench: &Bench<'_>) -> Result<()> {
    let more = ["--smp", "4"];
    LINES[3..9]
        .iter()
        .try_for_each(|line| compare(bench, line, &more))
}

/// The archive is the tree, and cannot be changed.
fn files(bench: &Bench<'_>) -> Result<()> {
    let line = "md5sum < /manifest.toml; cd /domains; ls -d ini?; ls / | grep -c manifest; \
                echo no > /manifest.toml; echo $?; cat /domains; ls /nowhere; cat /bin/sh | wc -c";
    let output = run(bench, line, &[])?;
    let manifest = bench.site.project.root.join("images/static.toml");
    let mut sum = Command::new("busybox");
    sum.arg("md5sum").stdin(fs::File::open(manifest)?);
    let sum = text(&sum.output()?.stdout);
    let program = fs::metadata(which("busybox")?)?.len();
    let right = format!("{sum}init\n1\n1\n{program}\n");
    let seen = text(&output.stdout);
    ensure!(seen == right, "{seen:?} in place of {right:?}");
    for complaint in ["Read-only file system", "Is a directory", "No such file"] {
        let errors = text(&output.stderr);
        ensure!(
            errors.contains(complaint),
            "{errors:?} does not say {complaint}"
        );
    }
    Ok(())
}

fn which(name: &str) -> Result<String> {
    let output = Command::new("sh")
        .args(["-c", &format!("command -v {name}")])
        .output()?;
    Ok(text(&output.stdout).trim().to_string())
}

/// A program that is ended by a signal, by itself or another, takes nobody along.
fn ended(bench: &Bench<'_>) -> Result<()> {
    for line in [
        "sh -c 'kill -SEGV $$'; echo $?; sh -c 'kill -9 $$'; echo $?",
        "sleep 60 & kill $!; wait $!; echo $?",
        "sh -c 'while :; do :; done' & sleep 0.2; kill -9 $!; wait $!; echo $?",
        "yes > /dev/null & sleep 0.2; kill $!; wait $!; echo $?; yes | true; echo $?",
    ] {
        compare(bench, line, &[])?;
    }
    Ok(())
}

/// What may be read is there, and may still not be executed: the program ends, and not only for
/// want of time.
fn executes_data(bench: &Bench<'_>) -> Result<()> {
    let file = bench.folder.join("program");
    fs::write(&file, first::program(first::STACK))?;
    let file = file.display().to_string();
    let output = run(bench, "", &["--program", &file, "--timeout", "60"])?;
    let errors = text(&output.stderr);
    ensure!(
        output.status.code() == Some(137),
        "{:?}, {errors}",
        output.status
    );
    Ok(())
}

/// What is no static program is refused by its name, before anything boots.
fn refused(bench: &Bench<'_>) -> Result<()> {
    for (file, why) in [
        (
            "/nowhere/program",
            "cannot read the program /nowhere/program",
        ),
        ("/etc/passwd", "/etc/passwd is no program"),
        ("/bin/ls", "/bin/ls is linked dynamically"),
    ] {
        let output = run(bench, "echo", &["--program", file])?;
        let errors = text(&output.stderr);
        ensure!(
            !output.status.success() && errors.contains(why),
            "{:?}, {errors:?} for {file}",
            output.status
        );
    }
    Ok(())
}
