//! Names that are replaced by renames all the time, on a disk and in `/tmp`: whoever goes by one
//! finds what has it, whatever is done with it then.

use anyhow::{Result, ensure};

use super::mapping::RUN;
use super::recovery::{MANY_RESTARTS, expect_no_restart, expect_restarts_from, with_limits};
use super::statics_names;
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("replaced-names-are-found-by-rv6", |bench| rv6(bench, 1)),
    case("replaced-names-are-found-by-rv6-on-4-processors", |bench| {
        rv6(bench, 4)
    }),
    case("replaced-names-are-found-by-rv6-under-crashes", crashes),
    case("replaced-names-are-found-by-linux", |bench| linux(bench, 1)),
    case(
        "replaced-names-are-found-by-linux-on-4-processors",
        |bench| linux(bench, 4),
    ),
];

/// What `filebench` is to say of each way in which it goes by names.
const WAYS: [&str; 8] = [
    "open",
    "metadata",
    "set-mode",
    "set-time",
    "link",
    "read-link",
    "through-link",
    "create-in",
];

fn expect(said: &str, more: &str) -> Result<()> {
    for way in WAYS {
        let right = format!("{way}: missing 0, wrong 0");
        ensure!(
            said.lines().filter(|line| *line == right).count() == 2,
            "not twice {right:?} in {said}{more}"
        );
    }
    ensure!(
        said.matches("replaced often: true").count() == 2,
        "{said}{more}"
    );
    Ok(())
}

fn rv6(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.processors = processors;
    let work = "/boot/testing/filebench -r 1500";
    let line = format!("mkdir /r; cd /r; {work}; cd /tmp; {work}; domains -q");
    let answer = bench.exec_on(machine, &line)?;
    expect(&answer.stdout, &format!("{}{}", answer.stderr, answer.log))?;
    for domain in ["ext2", "vfs", "vfs-tmp", "rv6"] {
        expect_no_restart(&answer.stdout, domain)?;
    }
    bench.expect_clean(&disk)
}

/// Also while the file system and its shadow die.
fn crashes(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let manifest = with_limits(bench, &["ext2", "vfs"], MANY_RESTARTS)?;
    let mut machine = bench.machine_by(&manifest)?;
    machine.disk = Some(disk.clone());
    machine.processors = 2;
    let work = "/boot/testing/filebench -r 3000";
    let strike = "sleep 0.3; crash ext2; sleep 0.3; crash vfs; sleep 0.3; kill-domain vfs ext2";
    let line = format!(
        "mkdir /r /s; (cd /r; {work}) > /tmp/1 & (cd /s; {work}) > /tmp/2 & {strike}; {strike}; \
         wait; cat /tmp/1 /tmp/2; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?;
    expect(&answer.stdout, &answer.stderr)?;
    expect_restarts_from(&answer.stdout, "vfs", 2)?;
    bench.expect_clean(&disk)
}

/// What Linux would say of it too, but where it says that a file or a directory is missing, that it
/// has found, and that had its name until then.
fn linux(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let disk = statics_names::small(bench)?;
    let mut machine = statics_names::machine_of(bench, &disk)?;
    machine.processors = processors;
    let answer = bench.exec_on(machine, &format!("{RUN} '/disk replaced'; sync"))?;
    let seen = answer.stdout.replace('\r', "");
    let ways = seen.lines().filter(|line| line.contains(": often"));
    let right = ways
        .clone()
        .filter(|line| line.ends_with(": often 1, missing 0, wrong 0, error 0"));
    ensure!(
        ways.clone().count() == 11 && right.count() == 11,
        "{seen}{}{}",
        answer.stderr,
        answer.log
    );
    bench.expect_clean(&disk)
}
