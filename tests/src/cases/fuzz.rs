//! The fuzzer over interfaces, in small: every method with hostile values on 1, 2 and 4 processors,
//! random sequences, and that a run notices a death. And the gate of block queues.

use std::process::Output;

use anyhow::{Context, Result, bail, ensure};

use super::{Case, case};
use crate::bench::Bench;

/// Of the methods that had their turn alone, one in so many was called at least: a slow machine
/// does not come to all of them in the time that it has.
const ONE_IN: u32 = 4;
/// How many have their turn, less those that are never called.
const TURNS: u32 = 160;

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
    case("queue-outlives-driver-and-submitter", queues),
];

/// What the tool printed when it was called with `words`.
fn fuzz(bench: &Bench<'_>, words: &str) -> Result<Output> {
    let mut command = bench.tool("fuzz")?;
    command.arg("interfaces").args(words.split_whitespace());
    Ok(command.output()?)
}

/// The gate of block queues, in small.
fn queues(bench: &Bench<'_>) -> Result<()> {
    let mut command = bench.tool("fuzz")?;
    command.args(["queues", "--count", "1", "--kills", "60"]);
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !text.contains(" 0 findings") {
        bail!("{text}{errors}");
    }
    ensure!(number_before(&text, " deaths")? >= 60, "{text}");
    Ok(())
}

fn good(bench: &Bench<'_>, words: &str) -> Result<()> {
    let output = fuzz(bench, words)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !text.contains(" 0 findings") {
        bail!("{}{errors}", first_finding(&text));
    }
    let covered = number_before(&text, " covered")?;
    let tried = number_before(&text, " sequences")?;
    ensure!(covered >= tried.min(TURNS) / ONE_IN, "{text}");
    Ok(())
}

/// The text from the first finding on, which a long message must not bury.
fn first_finding(text: &str) -> &str {
    let at = text.find("FINDING ").unwrap_or_default();
    &text[at..]
}

/// The number in front of `word`.
fn number_before(text: &str, word: &str) -> Result<u32> {
    let before = text.split_once(word).map_or("", |(before, _)| before);
    let number = before.rsplit(' ').next().unwrap_or_default();
    number
        .parse()
        .with_context(|| format!("no number:\n{text}"))
}

/// The first sequences call one method after the other.
fn bare(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let words = format!("--platform bare --smp {processors} --count 200 --seconds 30");
    good(bench, &words)
}

fn hosted(bench: &Bench<'_>) -> Result<()> {
    good(bench, "--count 600 --seconds 30 --seed 7")
}

/// Victims die when they are told to. If that counts, there must be findings.
fn notices(bench: &Bench<'_>) -> Result<()> {
    let output = fuzz(bench, "--count 400 --seconds 300 --strict")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(!output.status.success(), "nothing was found: {text}");
    ensure!(text.contains("FINDING in sequence"), "{text}");
    ensure!(text.contains("victim ("), "{text}");
    Ok(())
}
