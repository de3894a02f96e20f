//! The fuzzer over interfaces, in small: every method with hostile values on 1, 2 and 4 processors,
//! random sequences, and that a run notices a death.

use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use super::{Case, case};
use crate::bench::Bench;

/// Methods that are covered at least, also where the machine is so slow that the time is over
/// before all have had their turn.
const LEAST: u32 = 50;

pub(super) const CASES: &[Case] = &[
    case("fuzz-hostile-values-on-1-processor", |bench| bare(bench, 1)),
    case("fuzz-hostile-values-on-2-processors", |bench| {
        bare(bench, 2)
    }),
    case("fuzz-hostile-values-on-4-processors", |bench| {
        bare(bench, 4)
    }),
    case("fuzz-sequences-of-calls-hosted", hosted),
    case("fuzz-notices-a-death", notices),
];

/// What the tool printed when it was called with `words`.
fn fuzz(bench: &Bench<'_>, words: &str) -> Result<Output> {
    let program = std::env::var_os("TREFOIL_XTASK").context("run this by `cargo xtask test`")?;
    let mut command = Command::new(program);
    command.args(["fuzz", "interfaces"]);
    command.args(words.split_whitespace());
    command.current_dir(&bench.site.project.root);
    Ok(command.output()?)
}

fn good(bench: &Bench<'_>, words: &str) -> Result<String> {
    let output = fuzz(bench, words)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{text}{errors}");
    ensure!(text.contains(" 0 findings"), "{text}");
    let covered = text.split_once(" covered").map_or("", |(before, _)| before);
    let covered = covered.rsplit(' ').next().unwrap_or_default();
    ensure!(covered.parse::<u32>()? >= LEAST, "{text}");
    Ok(text)
}

/// The first sequences call one method after the other.
fn bare(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let words = format!("--platform bare --smp {processors} --count 200 --seconds 30");
    good(bench, &words).map(drop)
}

fn hosted(bench: &Bench<'_>) -> Result<()> {
    good(bench, "--count 600 --seconds 30 --seed 7").map(drop)
}

/// Victims die when they are told to. If that counts, there must be findings.
fn notices(bench: &Bench<'_>) -> Result<()> {
    let output = fuzz(bench, "--count 400 --seconds 30 --strict")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(!output.status.success(), "nothing was found: {text}");
    ensure!(text.contains("FINDING in sequence"), "{text}");
    ensure!(text.contains("victim ("), "{text}");
    Ok(())
}
