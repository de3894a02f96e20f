//! Two personalities for Linux programs side by side, started from rv6's shell.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use machine::qemu::Machine;
use trefoil_gate::{build, setup};

use super::recovery::{cell, expect_no_restart};
use super::{Case, case, threads};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("guests-one-of-two-personalities-ends", ends),
    case("guests-hostile-beside-one-that-works", hostile),
];

/// What the manifest has besides: two personalities, and a program that may use them.
const TWO: &str = r#"
[domain.linux]
pass = ["exec"]
limits = { threads = 300, reserve_pages = 1024 }
grants = { spaces = "kernel.spaces", archive = "kernel.archive", random = "kernel.random", console = "console" }

[domain.other]
image = "linux"
pass = ["exec"]
limits = { threads = 300, reserve_pages = 1024 }
grants = { spaces = "kernel.spaces", archive = "kernel.archive", random = "kernel.random", console = "console" }

[program.guest]
services = ["linux", "other", "monitor", "auditor"]
"#;

/// What both have in the place of busybox's shell: it waits with 20 threads, one of which computes,
/// or counts in a hundred.
const WAIT: &str = "wait";
const ALL: &str = "all";

/// A machine with the usual image, and two personalities whose programs are these; the first is
/// their shell.
fn machine(bench: &Bench<'_>, programs: &[(&str, &[u8])]) -> Result<Machine> {
    let project = &bench.site.project;
    let usual = fs::read_to_string(project.root.join("images/default.toml"))?;
    let services = "[services]\n";
    let named =
        format!("{services}linux = \"linux\"\nother = \"other\"\nauditor = \"kernel.auditor\"\n");
    let manifest = usual.replace(services, &named) + TWO;
    let archive = bench.folder.join("archive.cpio");
    let packed = build::packed_with(project, manifest.as_bytes(), programs)?;
    fs::write(&archive, packed)?;
    // It alone tells what it keeps of memory for itself.
    let kernel = build::build_for_tests(project)?.kernel;
    let mut machine = Machine::new(&kernel, &bench.folder);
    machine.words.push("panic=off".into());
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
        "{guest} linux {WAIT} & {guest} other {WAIT} & sleep 3; \
         kill-domain linux; sleep 0.3; {guest} linux {ALL}; \
         {guest} linux {WAIT} & sleep 3; crash linux; {guest} linux {ALL}; sleep 0.3; \
         kill-domain other; sleep 0.3; echo end"
    );
    let mut machine = machine(bench, &[("busybox", &program)])?;
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
        count("linux: the personality ended") == 3 && count(&right) == 1,
        "{seen}\nwith {right}"
    );
    let last_of_linux = seen
        .rfind("linux: the personality ended")
        .context("it has ended")?;
    ensure!(
        last_of_linux < before_end,
        "the other one ended early: {seen}"
    );
    ensure!(seen.contains("linux: exited with 0"), "{seen}");
    Ok(())
}

/// How often the bad one is ended; so often the line says.
const ROUNDS: usize = 4;
/// Rounds after which memory is not compared yet: tables and heaps grow once.
const WARM: usize = 2;
/// Pages by which private heaps may differ, those of services that live on.
const HEAPS: u64 = 128;
/// Pages by which the rest may differ: the end of a small program is told before it is cleared
/// away, so the next one of the same image may find that in use, and leave one more behind for
/// those to come.
const SPARE: u64 = 16;
/// Bytes by which the kernel's own objects may differ. They name a spare image (32). In two of six
/// runs they became more once, from 67,696 to 67,824, and stayed so; what that is was not found.
/// What each round left behind would be seen twice.
const STEP: u64 = 128;
/// Programs of random code.
const NOISES: u64 = 4;

/// What a good program does: it takes a while, and has a result.
const WORK: &str =
    "for i in 1 2 3; do seq 1 4000 | sort -r | md5sum; done; echo one two | tr a-z A-Z | wc";

/// A static program whose code is random: at 4 MiB, one page of it, that can be read and run. Bytes
/// that begin instructions of AVX and of two bytes are left out, since QEMU ends at some of them.
fn noise(seed: u64) -> Vec<u8> {
    const CODE: usize = 4096;
    const START: u64 = 0x40_0000;
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for half in [2_u16, 62] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes());
    for word in [START + 120, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for half in [1_u32, 5] {
        file.extend(half.to_le_bytes());
    }
    let length = (120 + CODE) as u64;
    for word in [0, START, START, length, length, 4096] {
        file.extend(word.to_le_bytes());
    }
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while file.len() < 120 + CODE {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let byte = (state >> 32) as u8;
        if ![0x0f, 0x62, 0x8f, 0xc4, 0xc5].contains(&byte) {
            file.push(byte);
        }
    }
    file
}

/// One personality runs loops, programs that fork without end, overflow their stacks or are random:
/// the work of the other is done and right, nobody else ends, and when the bad one is ended its
/// memory is back.
fn hostile(bench: &Bench<'_>) -> Result<()> {
    let there = Command::new("busybox").args(["sh", "-c", WORK]).output()?;
    let right = String::from_utf8_lossy(&there.stdout);
    ensure!(
        there.status.success() && right.lines().count() == 4,
        "{right}"
    );
    let noises = (0..NOISES).map(|seed| (format!("noise{seed}"), noise(seed)));
    let noises: Vec<_> = noises.collect();
    let busybox = fs::read(setup::busybox()?)?;
    let mut programs: Vec<(&str, &[u8])> = vec![("busybox", &busybox)];
    programs.extend(noises.iter().map(|(name, code)| (name.as_str(), &code[..])));
    let guest = "/boot/testing/guest";
    let bad = "exec 2> /dev/null; for n in 0 1 2 3; do /noise$n & done; (f() { f; }; f) & \
               (while :; do :; done) & (while :; do :; done) & b() { b | b & }; b; wait";
    // The kernel's command line has an end.
    let line = format!(
        "w() {{ time {guest} other '{WORK}'; }}; w; for i in 1 2 3 4; do \
         until {guest} linux true | grep -q exited; do sleep 0.2; done; {guest} linux '{bad}' & \
         sleep 1; w; kill-domain linux; wait; until {guest} linux true | grep -q exited; do sleep 0.2; done; \
         {guest} memory; done; domains -q"
    );
    let mut machine = machine(bench, &programs)?;
    machine.processors = 2;
    let answer = bench.exec_within(LIMIT, machine, &line)?.status(0)?;
    let seen = answer.stdout.replace('\r', "");
    let whole = format!("{right}other: exited with 0\n");
    let done = seen.matches(&whole).count();
    ensure!(done == 1 + ROUNDS, "done {done} times: {seen}");
    let ended = seen.matches("linux: the personality ended").count();
    ensure!(
        ended == ROUNDS,
        "ended {ended} times: {seen} {}",
        answer.stderr
    );
    for name in ["other", "rv6", "console", "init"] {
        expect_no_restart(&seen, name)?;
    }
    ensure!(cell(&seen, "linux", "RESTARTS").is_some(), "{seen}");
    judge_memory(&seen)
}

/// What is in use after the last rounds is the same, but for a [`SPARE`] image, and one [`STEP`] of
/// the kernel's own objects.
fn judge_memory(seen: &str) -> Result<()> {
    let told = seen
        .lines()
        .filter_map(|line| line.strip_prefix("in use: "));
    let told = told.map(|line| line.split(' ').map(str::parse).collect());
    let told: Vec<Vec<u64>> = told.collect::<Result<_, _>>()?;
    ensure!(
        told.len() == ROUNDS && told.iter().all(|it| it.len() == 3),
        "{seen}"
    );
    let last = &told[WARM - 1..];
    let limits = [SPARE, STEP, HEAPS];
    let is_near = |it: &Vec<u64>| (0..3).all(|n| it[n].abs_diff(last[0][n]) <= limits[n]);
    ensure!(
        last.iter().all(is_near),
        "pages, bytes and heaps after each: {told:?}"
    );
    Ok(())
}
