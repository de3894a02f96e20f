//! The guide `docs/guide/changes.md`: a new domain and a new interface are made in a copy of the
//! sources as it says, and the copy is built and booted.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use machine::qemu::{Event, Machine};

use super::guide::{blocks, labelled};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};
use crate::scratch::Scratch;

/// Two tests in the same place, one of which must not begin soon after the other: see [`Scratch`].
pub(super) const CASES: &[Case] = &[
    case("guide-new-domain-as-written", new_domain),
    case("guide-new-interface-as-written", new_interface),
];

const GUIDE: &str = "docs/guide/changes.md";

/// How long to wait before the log is looked at again.
const PAUSE: Duration = Duration::from_millis(100);

/// The section of the guide with this heading.
fn section<'a>(text: &'a str, heading: &str) -> Result<&'a str> {
    let (_, rest) = text
        .split_once(&format!("\n## {heading}\n"))
        .with_context(|| format!("{GUIDE} has no section {heading}"))?;
    Ok(rest.split("\n## ").next().unwrap_or(rest))
}

/// The files that a section makes or changes, in their order.
fn files(section: &str) -> Vec<(&str, String)> {
    let all = blocks(section).into_iter();
    all.filter_map(|(label, block)| Some((label.split_once(" new=")?.1, block)))
        .collect()
}

/// Carries out the sections one after the other; then the log says what the last one promises.
fn carry_out(bench: &Bench<'_>, headings: &[&str]) -> Result<()> {
    let text = fs::read_to_string(bench.site.project.root.join(GUIDE)).context(GUIDE)?;
    let scratch = Scratch::new(&bench.site.project)?;
    let (mut manifest, mut promised) = (None, String::new());
    for heading in headings {
        let section = section(&text, heading)?;
        for (path, content) in files(section) {
            scratch.add(path, &content)?;
            if path.starts_with("images/") {
                manifest = Some(path.to_string());
            }
        }
        promised = labelled(section, "text log");
    }
    ensure!(!promised.is_empty(), "{GUIDE} promises no line of the log");
    let built = scratch.build(&manifest.context("the guide has no manifest")?)?;
    let mut machine = Machine::new(&built.kernel, &bench.folder);
    machine.archive = Some(built.archive);
    machine.words.push("panic=off".into());
    promised
        .lines()
        .try_for_each(|line| expect_in_log(&machine, line))
}

/// Boots `machine` until its log has a line that ends with `wanted`.
fn expect_in_log(machine: &Machine, wanted: &str) -> Result<()> {
    let mut guest = machine.start()?;
    let deadline = Instant::now() + LIMIT;
    let is_there = |log: &str| log.lines().any(|line| line.trim_end().ends_with(wanted));
    while !is_there(&guest.log()) {
        let has_ended = matches!(guest.receive(Instant::now() + PAUSE), Event::End);
        ensure!(
            !has_ended && Instant::now() < deadline,
            "the log never says `{wanted}`:\n{}",
            guest.log()
        );
    }
    Ok(())
}

fn new_domain(bench: &Bench<'_>) -> Result<()> {
    carry_out(bench, &["A new domain"])
}

fn new_interface(bench: &Bench<'_>) -> Result<()> {
    carry_out(
        bench,
        &["A new domain", "A new interface", "Its first user"],
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TEXT: &str = include_str!("../../../docs/guide/changes.md");

    /// What the guide says that a change of each kind touches: the rows of its table.
    fn most_files(text: &str) -> Vec<(&str, usize)> {
        text.lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix("| [")?.split('|');
                let kind = cells.next()?.split(']').next()?;
                Some((kind, cells.next()?.trim().parse().ok()?))
            })
            .collect()
    }

    #[test]
    fn no_change_touches_more_than_it_may() {
        let table = most_files(TEXT);
        let allowed = [
            ("a new domain", 4),
            ("a new interface", 3),
            ("a new call of the personality", 5),
            ("a new reason of a crash", 2),
            ("a new scheduler", 1),
        ];
        assert_eq!(table, allowed);
    }

    #[test]
    fn sections_show_as_many_files_as_they_say() {
        for (kind, most) in most_files(TEXT) {
            let heading = format!("A{}", &kind[1..]);
            let section = section(TEXT, &heading).expect("a section for each row");
            let shown: BTreeSet<_> = files(section).into_iter().map(|(path, _)| path).collect();
            let listed = section
                .lines()
                .filter(|line| line.starts_with("1. "))
                .count();
            assert_eq!(listed.max(shown.len()), most, "{heading}");
        }
    }
}
