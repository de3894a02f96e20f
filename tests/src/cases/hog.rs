//! A program that takes all memory, all processor time and the log at once, and what others then
//! still get.
//!
//! The test looks at six things ([`Check`]), also when one of them has failed. How long things take
//! is printed, and bounded only so that a hang is found.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use machine::session::Session;

use super::recovery::{cell, free};
use super::{Case, case};
use crate::bench::{Bench, LIMIT, host_sum};

pub(super) const CASES: &[Case] = &[
    case("hog-on-one-processor", |bench| hog(bench, 1, ALL)),
    case("hog-on-two-processors", |bench| hog(bench, 2, ALL)),
    case("hog-on-four-processors", |bench| hog(bench, 4, ALL)),
];

/// One program with as many threads as it may have, and four children.
const ALL: &str = "/boot/testing/hog";

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// The hog takes all it can get, and lives.
    Taken,
    /// `ls /` is answered.
    Answered,
    /// The sum of a file is right though the disk driver crashes meanwhile.
    Summed,
    /// No domain but the driver was started again, and none ended.
    Alive,
    /// When the hog is ended its memory comes back.
    Back,
    /// When that is done once more, nothing at all is lost.
    Again,
}

/// How long one answer may take. The measure is three times the idle time; this finds a hang.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the memory may take to come back.
const SETTLING: Duration = Duration::from_secs(20);
/// So much less may be free than before: images of programs that were started, tables that have
/// grown.
const KEPT: u64 = 12 << 20;
/// The same when it has been so before.
const STRAY: u64 = 2 << 20;
/// A job may have a quarter of the 256 MiB. Files in `/tmp`, and what services hold for it, come on
/// top.
const TAKEN: u64 = 64 << 20;
/// An answer that takes less is not felt to be broken, however short the idle time is.
const FELT: Duration = Duration::from_secs(5);
/// How often an answer is timed.
const TURNS: u32 = 9;

/// What came of each check so far.
type Outcome = Vec<(Check, Result<()>)>;

fn hog(bench: &Bench<'_>, processors: u32, line: &str) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&without_cache(bench)?)?;
    machine.disk = Some(disk.clone());
    machine.processors = processors;
    let mut session = bench.session(&machine)?;
    let mut outcome = Outcome::new();
    if let Err(error) = watch(bench, &mut session, line, &mut outcome) {
        let done: Vec<_> = outcome.iter().map(|(check, _)| check).collect();
        bail!("after {done:?}: {error:#}\n{}", session.report());
    }
    let failed = outcome.into_iter().filter_map(|(check, result)| {
        let error = result.err()?;
        Some(format!("{check:?}: {error:#}"))
    });
    let failed: Vec<_> = failed.collect();
    ensure!(
        failed.is_empty(),
        "{}\n{}",
        failed.join("\n"),
        session.report()
    );
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    bench.expect_clean(&disk)
}

/// The default manifest with next to no page cache: what is read comes from the disk, and takes no
/// memory.
fn without_cache(bench: &Bench<'_>) -> Result<String> {
    let text = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    ensure!(text.contains("cache=40%"), "the manifest has no cache=40%");
    Ok(text.replace("cache=40%", "cache=1M"))
}

/// Does everything, and notes what came of it. What makes it impossible to go on is an error.
fn watch(
    bench: &Bench<'_>,
    session: &mut Session,
    line: &str,
    outcome: &mut Outcome,
) -> Result<()> {
    let idle = time_of_ls(session)?;
    let before = free_memory(session)?;
    let lives = lives(session)?;
    take_all(session, line)?;
    outcome.push((Check::Taken, expect_taken(session, before)));
    let answered = time_of_ls(session).and_then(|loaded| compare(idle, loaded));
    outcome.push((Check::Answered, answered));
    outcome.push((Check::Summed, sum_while_the_driver_crashes(bench, session)));
    let alive = expect_alive(session, &lives);
    outcome.push((Check::Alive, alive));
    outcome.push((Check::Back, end_and_wait(session, before, KEPT)));
    outcome.push((Check::Again, once_more(session, line)));
    Ok(())
}

/// Lets the hog take all a second time: what was kept after the first is used again.
fn once_more(session: &mut Session, line: &str) -> Result<()> {
    let before = free_memory(session)?;
    take_all(session, line)?;
    end_and_wait(session, before, STRAY)
}

/// Starts the hog in the background, and waits until it has all that it can get.
fn take_all(session: &mut Session, line: &str) -> Result<()> {
    let start = session.printed();
    session.type_line(format!("{line} &").as_bytes())?;
    session.wait_for(start, "hog: all taken", PATIENCE)?;
    session.settle(Duration::from_millis(500));
    Ok(())
}

/// Prints what the first of the hogs says that it has got, and looks how much they have together.
fn expect_taken(session: &mut Session, before: u64) -> Result<()> {
    let screen = session.screen();
    let said = screen.lines().find_map(|line| line.split_once("hog: "));
    println!("        {}", said.map_or("", |(_, said)| said.trim_end()));
    let taken = before.saturating_sub(free_memory(session)?);
    println!("        {} MiB of {} are taken", taken >> 20, before >> 20);
    ensure!(taken >= TAKEN, "only {taken} bytes are taken\n{screen}");
    Ok(())
}

/// Prints how much longer `ls /` takes; so much longer that nobody would wait for it is an error.
fn compare(idle: Duration, loaded: Duration) -> Result<()> {
    let times = loaded.as_secs_f64() / idle.as_secs_f64();
    println!("        ls / takes {idle:?} idle, {loaded:?} beside the hog: {times:.1} times");
    ensure!(loaded < FELT.max(idle * 20), "ls / takes {loaded:?}");
    Ok(())
}

/// The middle of some times until `ls /` has printed what it should.
fn time_of_ls(session: &mut Session) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let start = Instant::now();
        let listed = session.run("ls /", PATIENCE)?;
        times.push(start.elapsed());
        let is_there = |name| listed.lines().any(|line| line == name);
        ensure!(is_there("big") && is_there("text"), "ls printed {listed:?}");
    }
    times.sort();
    Ok(times[times.len() / 2])
}

fn free_memory(session: &mut Session) -> Result<u64> {
    let printed = session.run("free -b", PATIENCE)?;
    printed.lines().find_map(free).context("no line of free")
}

/// The instance number of each domain that is no program.
fn lives(session: &mut Session) -> Result<BTreeMap<String, String>> {
    const OTHERS: [&str; 3] = ["hog", "domains", "virtio-blk"];
    let table = session.run("domains -q", PATIENCE)?;
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (id, name) = (words.next()?, words.next()?);
        let is_meant = id.parse::<u32>().is_ok() && !OTHERS.contains(&name);
        is_meant.then(|| (name.to_string(), id.to_string()))
    };
    let lives: BTreeMap<_, _> = table.lines().filter_map(row).collect();
    ensure!(lives.contains_key("rv6"), "no rv6 in the table:\n{table}");
    Ok(lives)
}

fn sum_while_the_driver_crashes(bench: &Bench<'_>, session: &mut Session) -> Result<()> {
    let sum = host_sum(&bench.site.root.join("big"))?;
    let start = Instant::now();
    let line = "sha256sum /big & sleep 0.3; crash virtio-blk; wait $!";
    let printed = session.run(line, LIMIT * 4)?;
    println!("        the sum took {:?}", start.elapsed());
    ensure!(
        printed.contains(&format!("{sum}  /big\n")),
        "not the sum {sum}: {printed:?}"
    );
    let table = session.run("domains -q", PATIENCE)?;
    let restarts = cell(&table, "virtio-blk", "RESTARTS");
    ensure!(restarts == Some("1"), "{restarts:?} restarts:\n{table}");
    Ok(())
}

fn expect_alive(session: &mut Session, before: &BTreeMap<String, String>) -> Result<()> {
    let after = lives(session)?;
    for (name, id) in before {
        let now = after.get(name);
        ensure!(now == Some(id), "{name} was {id} and is {now:?}");
    }
    let table = session.run("ps", PATIENCE)?;
    ensure!(table.contains("hog"), "the hog itself has ended:\n{table}");
    Ok(())
}

/// Ends the hog with its children, takes away its files, and waits for the memory.
fn end_and_wait(session: &mut Session, before: u64, kept: u64) -> Result<()> {
    session.run("kill %1; wait; rm -f /tmp/hog-*", PATIENCE)?;
    let deadline = Instant::now() + SETTLING;
    loop {
        let table = session.run("ps", PATIENCE)?;
        if table.contains("hog") {
            ensure!(Instant::now() < deadline, "it is still there:\n{table}");
            std::thread::sleep(Duration::from_millis(500));
            continue;
        }
        let now = free_memory(session)?;
        if now + kept >= before {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{} KiB of memory are not back",
            (before - now) >> 10
        );
        std::thread::sleep(Duration::from_millis(500));
    }
}
