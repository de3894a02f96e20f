//! Power cuts and crashes of the file system under work on files: short campaigns of `cargo xtask
//! cuts` and `storms`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::campaign::Plan;
use lab::cuts::guest::{self, Job};
use lab::cuts::{self, Examiner, How, Options, survey};
use lab::storms::strikes::{At, Strike};
use lab::storms::{self, Work};
use machine::disk;
use trefoil_gate::tool;
use workload::History;

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("power-cuts-lose-nothing-acknowledged", nothing_lost),
    case(
        "power-cuts-while-domains-crash-lose-nothing-acknowledged",
        nothing_lost_with_crashes,
    ),
    case("power-cuts-with-a-disk-that-lies-are-noticed", lies_noticed),
    case("power-cut-of-a-default-disk", default_disk),
    case("power-sync-of-one-file", one_file),
    case("power-syncs-at-once-share-commits", shared_commits),
    case(
        "power-syncs-at-once-of-pages-share-commits",
        shared_commits_of_pages,
    ),
    case("storms-under-a-copy", |bench| storms(bench, Work::Copy)),
    case("storms-under-small-files", |bench| {
        storms(bench, Work::Build)
    }),
    case("storms-under-a-mapping", |bench| storms(bench, Work::Map)),
];

fn plan(bench: &Bench<'_>, runs: u64) -> Plan {
    Plan {
        seed: 7,
        runs,
        first: 0,
        json: false,
        ledger: Some(bench.folder.join("ledger")),
        minutes: 30,
    }
}

/// Runs of a campaign, and those of them that were right.
fn cuts(bench: &Bench<'_>, runs: u64, how: Option<How>, crash: bool) -> Result<(u64, u64)> {
    let options = Options {
        plan: plan(bench, runs),
        how,
        operations: 400,
        crash,
    };
    let record = cuts::campaign(&bench.site.project, &bench.site.built, &options)?;
    Ok(record.counts())
}

fn nothing_lost(bench: &Bench<'_>) -> Result<()> {
    const RUNS: u64 = 25;
    let (runs, right) = cuts(bench, RUNS, None, false)?;
    ensure!(right == RUNS, "{right} of {runs} runs right");
    Ok(())
}

/// The same while driver, file system and shadow crash.
fn nothing_lost_with_crashes(bench: &Bench<'_>) -> Result<()> {
    const RUNS: u64 = 10;
    let (runs, right) = cuts(bench, RUNS, None, true)?;
    ensure!(right == RUNS, "{right} of {runs} runs right");
    Ok(())
}

/// What the campaign looks for is found where it is.
fn lies_noticed(bench: &Bench<'_>) -> Result<()> {
    const RUNS: u64 = 8;
    let (runs, right) = cuts(bench, RUNS, Some(How::Lie), false)?;
    ensure!(
        runs == RUNS && right < RUNS,
        "flushes did nothing, and yet {right} of {runs} runs are right"
    );
    Ok(())
}

/// A disk as `make run` makes it, whose machine is killed under work: early, in the middle and
/// late.
fn default_disk(bench: &Bench<'_>) -> Result<()> {
    const OPERATIONS: usize = 400;
    const PAUSES: [u64; 3] = [0, 4, 25];
    let (made, image) = (
        bench.folder.join("made.img"),
        bench.folder.join("image.img"),
    );
    let programs = bench.site.project.images().join("boot/bin");
    disk::make_default(&programs, &bench.folder, &made)?;
    ensure!(disk::has_journal(&made)?, "it has no journal");
    disk::change(&made, &format!("mkdir {}\n", survey::WORK))?;
    for (seed, pause) in (1..).zip(PAUSES) {
        let job = Job {
            seed,
            operations: OPERATIONS,
            block_size: 4096,
            crashes: false,
        };
        let history = History::of(seed, OPERATIONS);
        let acknowledgements = history.acknowledgements() as u64 * seed / 4;
        fs::copy(&made, &image)?;
        let when = (acknowledgements, Duration::from_millis(pause));
        let done = guest::kill(&bench.site.built, &bench.folder, &job, &image, when)?;
        let examiner = Examiner {
            built: &bench.site.built,
            folder: &bench.folder,
        };
        let left = fs::read(&image)?;
        if let Err(text) = examiner.examine(&left, &history, done, true) {
            bail!("killed after {done} of {OPERATIONS} operations: {text}");
        }
    }
    Ok(())
}

/// On ext3 and on ext2.
fn storms(bench: &Bench<'_>, work: Work) -> Result<()> {
    const RUNS: u64 = 10;
    let options = storms::Options {
        plan: plan(bench, RUNS),
        work,
        files: 400,
        strike: Strike::Crash,
        nvme: false,
        linux: false,
        every: 3.0,
        domain: match work {
            Work::Copy | Work::Map => At::All,
            _ => At::Ext2,
        },
        smp: 1,
    };
    let record = storms::campaign(&bench.site.project, &bench.site.built, &options)?;
    let (runs, right) = record.counts();
    ensure!(right == RUNS, "{right} of {runs} crashes right");
    Ok(())
}

fn one_file(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = "echo new > /new && sync /new /text && sync /none; echo status $?";
    let answer = bench.exec(&disk, line)?.shows("status 1\n")?;
    answer.complains("/none: No such file")?;
    bench.expect_clean(&disk)
}

/// Threads of [`commits_of_writers`], and how often each waits for the disk.
const WRITERS: u64 = 16;
const SYNCS: u64 = 32;

/// Four processes of four threads: each makes a file, and 32 times adds to it and waits for the
/// disk. What they committed is counted by the journal's own number.
fn shared_commits(bench: &Bench<'_>) -> Result<()> {
    let commits = commits_of_writers(bench, "small=64K")?;
    ensure!(
        (SYNCS..WRITERS * SYNCS * 3 / 4).contains(&commits),
        "{commits} commits"
    );
    Ok(())
}

/// What they write lies in pages: that takes no more commits, since nobody has one made for what
/// others have stored.
fn shared_commits_of_pages(bench: &Bench<'_>) -> Result<()> {
    let before = commits_of_writers(bench, "small=64K")?;
    let commits = commits_of_writers(bench, "small=0")?;
    ensure!(
        (SYNCS..2 * before.max(WRITERS * SYNCS / 8)).contains(&commits),
        "{commits} commits, {before} without pages"
    );
    Ok(())
}

fn commits_of_writers(bench: &Bench<'_>, options: &str) -> Result<u64> {
    let disk = bench.small_disk("32M", &["-j", "-J", "size=1"], |_| Ok(()))?;
    let line = "for n in $(seq 4); do mkdir /$n; cd /$n; /boot/testing/filebench -y 4 & done; wait; \
                ls /*/synced* | wc -l";
    let before = journal_sequence(bench, &disk)?;
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let shadow = "[domain.vfs]\n";
    ensure!(usual.contains(shadow), "no shadow in the manifest");
    let options = format!("{shadow}options = \"{options}\"\n");
    let mut machine = bench.machine_by(&usual.replace(shadow, &options))?;
    machine.disk = Some(disk.clone());
    let answer = bench.exec_on(machine, line)?;
    answer.status(0)?.shows("16\n")?.silently()?;
    bench.expect_clean(&disk)?;
    let commits = journal_sequence(bench, &disk)? - before;
    for file in 0..WRITERS {
        let (folder, thread) = (file / 4 + 1, file % 4);
        let content = bench.host_read(&disk, &format!("/{folder}/synced{thread}"))?;
        ensure!(
            content == [thread as u8; 1000].repeat(SYNCS as usize),
            "file {thread} of process {folder} is wrong"
        );
    }
    Ok(commits)
}

/// The number of the next transaction of the journal.
fn journal_sequence(bench: &Bench<'_>, disk: &Path) -> Result<u64> {
    let mut command = Command::new(tool::need("dumpe2fs", "e2fsprogs")?);
    let text = tool::output(command.arg("-h").arg(disk).current_dir(&bench.folder))?;
    let number = text.lines().find_map(|line| {
        let digits = line.strip_prefix("Journal sequence:")?.trim();
        u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
    });
    number.context("dumpe2fs shows no journal")
}
