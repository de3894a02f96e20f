//! How often a byte of a file is copied between a program in ring 3 and the disk, by the kernel's
//! own count; and that pieces of awkward sizes and places arrive as on Linux.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use machine::disk;

use super::mapping::{RUN, machine};
use super::recovery::{expect_no_restart, expect_restarts};
use super::{Case, case};
use crate::bench::{Answer, Bench};

pub(super) const CASES: &[Case] = &[
    case("copies-between-program-and-disk-are-one", counted),
    case("copies-of-awkward-pieces-as-on-linux", awkward),
    case("copies-while-driver-and-file-system-crash", crashes),
    case("copies-of-more-small-files-than-may-have-pages", many),
];

/// Bytes of the files that the program reads and writes.
const BYTES: u64 = 8 << 20;
/// Bytes of its few small files together.
const FEW: u64 = 100 * 20_000;
/// Of those that have less than a page each.
const TINY: u64 = 200 * 4000;

/// The program, made by the host's compiler.
fn program(bench: &Bench<'_>) -> Result<PathBuf> {
    let program = bench.folder.join("copying");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-static", "-o"]).arg(&program);
    compiler.arg(bench.site.project.root.join("lab/peers/copying/copying.c"));
    let made = compiler.output().context("gcc cannot be started")?;
    let errors = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "gcc failed: {errors}");
    Ok(program)
}

fn fill(root: &Path) -> Result<()> {
    Ok(fs::write(root.join("big"), disk::noise(BYTES as usize, 5))?)
}

/// A disk with a large file, and a folder of the host with the same.
fn disk_and_folder(bench: &Bench<'_>, block: &str) -> Result<(PathBuf, PathBuf)> {
    let root = bench.folder.join("host");
    fs::create_dir_all(&root)?;
    fill(&root)?;
    Ok((bench.small_disk("40M", &["-b", block], fill)?, root))
}

/// What the program says on the host.
fn there(program: &Path, root: &Path, works: &[&str]) -> Result<String> {
    let mut all = String::new();
    for what in works {
        let line = format!("{} {what}", root.display());
        let output = Command::new(program).args(["-c", &line]).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success() && !said.is_empty(), "{output:?}");
        all += &said;
    }
    Ok(all)
}

fn expect(answer: &Answer, right: &str) -> Result<()> {
    let seen = answer.stdout.replace('\r', "");
    let mut rest = seen.lines();
    for line in right.lines() {
        ensure!(
            rest.any(|seen| seen.contains(line)),
            "no {line:?} in {seen}\n{}\n{}",
            answer.stderr,
            answer.log
        );
    }
    Ok(())
}

fn same(bench: &Bench<'_>, disk: &Path, root: &Path, name: &str) -> Result<()> {
    let seen = bench.host_read(disk, &format!("/{name}"))?;
    ensure!(seen == fs::read(root.join(name))?, "/{name} is another");
    Ok(())
}

/// What the kernel has copied when `free -c` was run: between pages and programs, pages and
/// domains, programs and domains.
fn counts(seen: &str) -> Result<Vec<[u64; 3]>> {
    let lines = seen
        .lines()
        .filter_map(|line| line.strip_prefix("Copied: "));
    lines
        .map(|line| {
            let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
            numbers?.try_into().ok().context("three numbers")
        })
        .collect()
}

/// A file that is read from the disk, one that is in memory, and one that is written: each byte is
/// copied once, between the program and the page that the device reads or writes. What goes by way
/// of a domain would count among pages and among programs.
fn counted(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let (disk, root) = disk_and_folder(bench, "4096")?;
    let works = [
        "idle", "read", "read", "write", "check", "few", "sums", "tiny", "sums",
    ];
    let right = there(&program, &root, &works)?;
    let machine = machine(bench, &program, &disk, "")?;
    let mut line = format!("{RUN} '/disk idle'; free -c");
    for what in works {
        line += &format!("; {RUN} '/disk {what}'; free -c");
    }
    line += "; sync; free -c; sha256sum /big > /dev/null; free -c";
    let answer = bench.exec_on(machine, &line)?;
    expect(&answer, &right)?;
    let counts = counts(&answer.stdout.replace('\r', ""))?;
    let differences: Vec<[u64; 3]> = counts
        .windows(2)
        .map(|two| [0, 1, 2].map(|kind| two[1][kind] - two[0][kind]))
        .collect();
    ensure!(differences.len() == works.len() + 2, "{}", answer.stdout);
    let idle = differences[0];
    ensure!(idle[0] == 0, "{idle:?} without a file");
    // What else a run of the program copies, and notes of changes and files.
    let besides = BYTES / 32;
    let names = [
        ("cold read", BYTES),
        ("cached read", BYTES),
        ("write", BYTES),
        ("read of it", BYTES),
        ("small files", FEW),
        ("read of those", FEW),
        ("smaller files", TINY),
        ("read of those", TINY),
    ];
    for ((what, bytes), of) in names.iter().zip(&differences[1..]) {
        let others = (of[1] + of[2]).saturating_sub(idle[1] + idle[2]);
        ensure!(of[0] == *bytes, "{what}: {of:?} for {bytes} bytes");
        ensure!(others < besides, "{what}: {of:?}, without a file {idle:?}");
    }
    let [direct, pages, programs] = differences[works.len()];
    ensure!(
        direct == 0 && pages + programs < BYTES / 8,
        "sync: {direct}, {pages} and {programs}"
    );
    // Another personality does it by way of domains, and that is counted.
    let [direct, pages, _] = differences[works.len() + 1];
    ensure!(direct == 0 && pages >= BYTES, "{direct} and {pages}");
    same(bench, &disk, &root, "made")?;
    bench.expect_clean(&disk)
}

/// Pieces that lie apart, at odd addresses, over the ends of what the program has; with blocks of
/// which a page has four, and with whole ones.
fn awkward(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    for block in ["1024", "4096"] {
        let (disk, root) = disk_and_folder(bench, block)?;
        let works = ["gather", "check", "faults", "append", "append", "check"];
        let _ = fs::remove_file(root.join("made"));
        let right = there(&program, &root, &works)?;
        let machine = machine(bench, &program, &disk, "")?;
        let lines = works.map(|what| format!("{RUN} '/disk {what}'"));
        let answer = bench.exec_on(machine, &format!("{}; sync", lines.join("; ")))?;
        expect(&answer, &right)?;
        same(bench, &disk, &root, "made")?;
        bench.expect_clean(&disk)?;
    }
    Ok(())
}

/// Files that are written faster than they are stored, so that not all of them can have pages: what
/// is in each is right, before it is stored and on the disk.
fn many(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let (disk, root) = disk_and_folder(bench, "1024")?;
    let works = ["many", "sums", "few", "many", "sums"];
    let right = there(&program, &root, &works)?;
    let machine = machine(bench, &program, &disk, "")?;
    let lines = works.map(|what| format!("{RUN} '/disk {what}'"));
    let answer = bench.exec_on(machine, &format!("{}; sync", lines.join("; ")))?;
    expect(&answer, &right)?;
    for name in ["small0", "small255", "small256", "small599"] {
        same(bench, &disk, &root, name)?;
    }
    bench.expect_clean(&disk)
}

/// The same while what is below is ended again and again.
fn crashes(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let (disk, root) = disk_and_folder(bench, "4096")?;
    let works = [
        "read", "write", "check", "few", "gather", "sums", "append", "check",
    ];
    let right = there(&program, &root, &works)?;
    let mut machine = machine(bench, &program, &disk, "options = \"pages=4M\"\n")?;
    machine.processors = 2;
    let lines = works.map(|what| format!("{RUN} '/disk {what}'"));
    // Where all works are over it is the sync that meets the crash.
    let strike = "sleep 0.3; crash ext2; sync; sleep 0.3; crash virtio-blk; sync";
    let line = format!(
        "({}) & {strike}; {strike}; {strike}; wait; sync; domains -q",
        lines.join("; ")
    );
    let answer = bench.exec_on(machine, &line)?;
    expect(&answer, &right)?;
    expect_restarts(&answer.stdout, "ext2", 3)?;
    for domain in ["vfs", "block", "linux"] {
        expect_no_restart(&answer.stdout, domain)?;
    }
    same(bench, &disk, &root, "made")?;
    bench.expect_clean(&disk)
}
