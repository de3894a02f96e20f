//! Kills at every instruction, in small: at some instructions of every call, and three ways to
//! break the kernel that the campaign must notice. `cargo xtask steps` does all of them.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("steps-kills-in-the-middle-of-calls-are-survived", survived),
    case(
        "steps-a-result-from-the-dead-is-noticed",
        takes_from_the_dead,
    ),
    case(
        "steps-clearing-away-under-a-thread-is-noticed",
        nobody_looks,
    ),
    case("steps-a-single-lost-object-is-noticed", objects_stay),
    case("steps-wrong-options-are-refused", refused),
];

/// What the tool printed when it was called with `words`.
fn steps(bench: &Bench<'_>, words: &str) -> Result<Output> {
    let mut command = bench.tool("steps")?;
    command.args(words.split_whitespace());
    command.arg("--ledger").arg(bench.folder.join("ledger"));
    Ok(command.output()?)
}

/// Every path, each with its own few places: some in domains, some in the kernel, the first one and
/// the one behind the call.
fn survived(bench: &Bench<'_>) -> Result<()> {
    let output = steps(bench, "--kills 4 --json")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{output:?}\n{errors}");
    let summary: Value = serde_json::from_slice(&output.stdout)?;
    let sweeps = summary["sweeps"].as_array().context("no sweeps")?;
    ensure!(sweeps.len() == 12, "{summary}");
    for sweep in sweeps {
        let count = |key: &str| sweep[key].as_u64().unwrap_or(u64::MAX);
        ensure!(count("kills") == 4, "{sweep}");
        ensure!(
            count("right") + count("errors") == count("kills"),
            "{sweep}"
        );
        ensure!(
            count("wrong") + count("leaks") + count("hangs") == 0,
            "{sweep}"
        );
        // Only the driver behind a shadow dies without an error for anybody.
        let is_unnoticed = sweep["path"] == "shadowed, back";
        ensure!(is_unnoticed == (count("errors") == 0), "{sweep}");
        ensure!(count("right") > 0, "{sweep}");
    }
    Ok(())
}

fn found(bench: &Bench<'_>, words: &str, how: &str) -> Result<()> {
    let output = steps(bench, words)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "not noticed: {output:?}\n{errors}");
    ensure!(errors.contains(how), "noticed otherwise: {errors}");
    Ok(())
}

fn takes_from_the_dead(bench: &Bench<'_>) -> Result<()> {
    let words = "--path plain --whom front --kills 12 --mutant takes-from-the-dead";
    found(bench, words, "was killed before it returned")
}

/// Where the thread is when its domain is taken away decides what becomes of it.
fn nobody_looks(bench: &Bench<'_>) -> Result<()> {
    let words = "--path plain --whom front --kills 12 --mutant nobody-looks";
    found(bench, words, "NobodyLooks was found")
}

fn objects_stay(bench: &Bench<'_>) -> Result<()> {
    let words = "--path nest --whom back --kills 12 --mutant objects-stay";
    found(bench, words, "are lost every time")
}

fn refused(bench: &Bench<'_>) -> Result<()> {
    for words in [
        "--path nowhere",
        "--whom nobody",
        "--kills 1",
        "--at 3 --kills 9",
        "--mutant none",
    ] {
        let output = steps(bench, words)?;
        ensure!(!output.status.success(), "{words} was accepted");
        ensure!(!output.stderr.is_empty(), "{words}: no explanation");
    }
    Ok(())
}
