//! Who calls whom, as the programs `calls` and `domains --dot` show it.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("calls-are-shown-by-name", by_name),
    case("calls-sampled-without-counting", sampled),
    case("calls-as-a-graph", graph),
    case("calls-refused-without-the-monitor", refused),
];

/// The number in column `column` (from 0) of the line of `text` that begins with these words.
fn number(text: &str, words: &[&str], column: usize) -> Result<u64> {
    let mut rows = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.starts_with(words));
    let row = row.with_context(|| format!("no line of {words:?} in\n{text}"))?;
    let word = row.get(column).context("a short line")?;
    Ok(word.parse()?)
}

/// Caller, callee, method and calls of each line, sorted.
pub(super) fn counts(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().skip_while(|line| !line.starts_with("CALLER"));
    let mut rows: Vec<_> = rows
        .map(|line| line.split_whitespace().take(4).collect())
        .collect();
    rows.sort();
    rows
}

fn by_name(bench: &Bench<'_>) -> Result<()> {
    // A program's end is told before it is cleared away, so calls for that may be under way.
    let line = "calls timed; dd if=/big of=/dev/null bs=1024 count=500; crash virtio-blk; \
                sha256sum /big; calls off; sleep 0.3; calls; sync; echo again; calls";
    let answer = bench.exec(&bench.disk()?, line)?.status(0)?;
    let (first, second) = answer
        .stdout
        .split_once("again\n")
        .context("no second table")?;
    let reads = number(first, &["ext2", "block"], 3)?;
    ensure!(reads > 0, "{reads} calls from ext2 to block");
    let words = ["block", "virtio-blk"];
    let rows = first
        .lines()
        .filter(|line| line.split_whitespace().take(2).eq(words));
    let mut errors = 0;
    for row in rows.clone() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        errors += cells.get(4).context("a short line")?.parse::<u64>()?;
    }
    ensure!(
        errors > 0,
        "the driver crashed, and no call failed:\n{first}"
    );
    ensure!(
        number(first, &["dd", "rv6"], 3)? > 0,
        "no line of dd:\n{first}"
    );
    // Calls that were under way when it was switched off have come to their end meanwhile, so times
    // may differ.
    let (before, after) = (counts(first), counts(second));
    ensure!(
        before == after,
        "counted while it was off:\n{first}\n{second}"
    );
    Ok(())
}

fn sampled(bench: &Bench<'_>) -> Result<()> {
    let answer = bench
        .exec(&bench.disk()?, "sha256sum /big; calls")?
        .status(0)?;
    let table = answer.stdout.split_once("CALLER").context("no table")?.1;
    ensure!(
        table.contains("SAMPLES") && table.contains("rv6"),
        "{table}"
    );
    Ok(())
}

fn graph(bench: &Bench<'_>) -> Result<()> {
    let line = "calls on; sha256sum /big; calls off; domains --dot";
    let answer = bench.exec(&bench.disk()?, line)?.status(0)?;
    let (_, graph) = answer.stdout.split_once("digraph ").context("no graph")?;
    ensure!(graph.ends_with("}\n"), "{graph}");
    let edge = |start: &str| graph.lines().find(|line| line.trim().starts_with(start));
    let called = edge("\"ext2\" -> \"block\" [label=\"").context(graph.to_string())?;
    ensure!(called.ends_with("style=solid];"), "{called}");
    // Nobody calls the power switch.
    let held = graph.lines().find(|line| line.ends_with("style=dashed];"));
    ensure!(held.is_some(), "{graph}");
    Ok(())
}

/// A program gets the monitor only if the manifest says so.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let manifest = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let granted = "[program.calls]\nservices = [\"monitor\"]\n";
    ensure!(
        manifest.contains(granted),
        "the manifest grants it otherwise"
    );
    let mut machine = bench.machine_by(&manifest.replace(granted, ""))?;
    machine.disk = Some(bench.disk()?);
    let line = "calls on; echo $?; calls; echo $?; calls --help > /out; echo $?";
    let answer = bench.exec_on(machine, line)?.status(0)?;
    answer
        .prints("1\n1\n0\n")?
        .complains("calls: monitor: this program is not granted that service")?;
    Ok(())
}
