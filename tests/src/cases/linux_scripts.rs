//! The scripts of `tests/linux` print what they print with Debian's own kernel.
//!
//! All of them run in one machine, one after the other. `cargo xtask record` makes the records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use lab::records::{self, Outcome, Script};
use machine::qemu::{Ended, exec_word};
use machine::session::Session;

use super::linux::{debian_disk, machine};
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("linux-scripts-print-what-debians-kernel-prints", scripts),
    case("linux-scripts-all-have-records", complete),
];

fn scripts(bench: &Bench<'_>) -> Result<()> {
    let project = &bench.site.project;
    let scripts = records::scripts(project)?;
    let disk = debian_disk(bench)?;
    let packages = records::packages(&disk, &bench.folder)?;
    let recorded = records::recorded_versions(project)?;
    let (_, recorded) = recorded.split_once('\n').context("versions are listed")?;
    if recorded != packages {
        eprintln!(
            "linux-scripts-print-what-debians-kernel-prints: not run: the disk has other packages \
             than the records (`cargo xtask record`)"
        );
        return Ok(());
    }
    records::install(&disk, &scripts, &bench.folder)?;
    let mut machine = machine(bench, &disk)?;
    machine.processors = 2;
    machine.words.push(exec_word(records::LINE));
    let mut session = Session::start(&machine, false)?;
    session.guest.close_input();
    let ended = session.end_by(Instant::now() + records::LIMIT)?;
    let found = records::outcomes(&session.screen(), &scripts);
    let mut wrong = Vec::new();
    for script in &scripts {
        let Some(Outcome { text: ours }) = found.get(&script.name) else {
            let report = session.report_standstill();
            bail!(
                "{}\n{} did not end, {ended:?}\n{report}",
                wrong.join("\n"),
                script.name
            );
        };
        fs::write(bench.folder.join(format!("{}.out", script.name)), ours)?;
        let Ok(record) = fs::read_to_string(script.record()) else {
            wrong.push(format!("{} has no record", script.name));
            continue;
        };
        wrong.extend(judged(script, records::first_difference(ours, &record)));
    }
    if !wrong.is_empty() {
        bail!("{}\n{}", wrong.join("\n"), session.report());
    }
    ensure!(
        ended == Some(Ended::Status(0)),
        "{ended:?}: {}",
        session.report()
    );
    bench.expect_clean(&disk)
}

/// What is wrong with a script that has, or has not, a difference.
fn judged(script: &Script, difference: Option<String>) -> Option<String> {
    let name = &script.name;
    match (difference, script.is_awaited) {
        (Some(difference), false) => Some(format!("{name}: {difference}")),
        (None, true) => Some(format!("{name}: it is as on Linux now, and leaves not-yet")),
        _ => None,
    }
}

/// Each script has a record, and no record is left of a script that has gone.
fn complete(bench: &Bench<'_>) -> Result<()> {
    let scripts = records::scripts(&bench.site.project)?;
    ensure!(scripts.len() >= 25, "only {} scripts", scripts.len());
    for script in &scripts {
        let record = fs::read_to_string(script.record()).unwrap_or_default();
        let last = record.lines().last().unwrap_or_default();
        ensure!(
            last.starts_with("== ends with "),
            "{} has no record",
            script.name
        );
        let folder = script.source.parent().context("it lies in a folder")?;
        for entry in fs::read_dir(folder)? {
            let file = entry?.path();
            let is_record = file.extension().is_some_and(|ending| ending == "out");
            ensure!(
                !is_record || file.with_extension("sh").exists(),
                "{} is the record of no script",
                file.display()
            );
        }
    }
    explained(&records::differences(&bench.site.project)?, &scripts)
}

/// The scripts that differ are those of which the list says how.
fn explained(differences: &BTreeMap<String, String>, scripts: &[Script]) -> Result<()> {
    let awaited = scripts.iter().filter(|script| script.is_awaited);
    let awaited: BTreeSet<_> = awaited.map(|script| &script.name).collect();
    let listed: BTreeSet<_> = differences.keys().collect();
    ensure!(
        awaited == listed,
        "of {awaited:?} in not-yet, its README explains {listed:?}"
    );
    let silent = differences.iter().find(|(_, how)| how.is_empty());
    ensure!(silent.is_none(), "{silent:?}: nothing says what differs");
    Ok(())
}
