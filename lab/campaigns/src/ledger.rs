//! The ledger of a fault campaign: one line of JSON a run, and what all lines together say.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// What the summary needs of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The run's number.
    pub run: u64,
    /// The kind of fault.
    pub kind: String,
    /// Whether the fault came.
    pub reached: bool,
    /// `unnoticed`, `error_returned`, `wrong_result`, `leak`, `hang`, `kernel_fault` or
    /// `not_reached`.
    pub outcome: String,
    /// From the fault to the first good call, or where that is not known the longest call, in
    /// microseconds.
    pub latency: Option<f64>,
    /// Free memory afterwards, in bytes.
    pub free: Option<u64>,
    /// Calls that clients made.
    pub calls: u64,
}

/// Reads a line of the ledger.
///
/// # Errors
/// If it is none.
pub fn entry(line: &str) -> Result<Entry> {
    let value: Value = serde_json::from_str(line).context("not a line of JSON")?;
    let text = |key: &str| value[key].as_str().map(String::from);
    Ok(Entry {
        run: value["run"].as_u64().context("no number")?,
        kind: text("kind").context("no kind")?,
        reached: value["reached"].as_bool().context("reached or not?")?,
        outcome: text("outcome").context("no outcome")?,
        latency: value["latency_us"].as_f64(),
        free: value["free"][1].as_u64(),
        calls: value["calls"].as_u64().unwrap_or(0),
    })
}

/// The line of a run that the kernel did not survive.
pub fn fatal(run: u64, kind: &str, outcome: &str, note: &str) -> String {
    json!({ "run": run, "kind": kind, "reached": true, "outcome": outcome, "note": note })
        .to_string()
}

/// The value below which `share` percent of the sorted `values` lie; 0 without values.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    match values.len() {
        0 => 0.0,
        count => values[((count - 1) as f64 * share / 100.0).ceil() as usize],
    }
}

/// All runs of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    entries: Vec<Entry>,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Runs so far.
    pub fn runs(&self) -> usize {
        self.entries.len()
    }

    /// The last run.
    pub fn last(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// Runs with this outcome.
    pub fn count(&self, outcome: &str) -> usize {
        let with = |entry: &&Entry| entry.outcome == outcome;
        self.entries.iter().filter(with).count()
    }

    /// Runs in which the fault came.
    pub fn reached(&self) -> usize {
        self.entries.iter().filter(|entry| entry.reached).count()
    }

    /// Runs in which the fault came and no client noticed.
    pub fn unnoticed(&self) -> usize {
        self.count("unnoticed")
    }

    /// The latencies of the runs of `kind`, or of all, sorted.
    fn latencies(&self, kind: Option<&str>) -> Vec<f64> {
        let of_kind = |entry: &&Entry| kind.is_none_or(|kind| entry.kind == kind);
        let entries = self.entries.iter().filter(of_kind);
        let mut all: Vec<f64> = entries.filter_map(|entry| entry.latency).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Runs in which nothing happened that must never happen. If `shadowed`, an error that a client
    /// was told is no such thing as long as at least 99.9 % of the faults went unnoticed.
    pub fn right(&self, shadowed: bool) -> usize {
        let never = ["kernel_fault", "hang", "leak", "wrong_result"];
        let wrong: usize = never.iter().map(|outcome| self.count(outcome)).sum();
        let are_many = shadowed && self.unnoticed() * 1000 < self.reached() * 999;
        let told = if are_many {
            self.count("error_returned")
        } else {
            0
        };
        self.runs() - wrong - told
    }

    /// The summary as an object.
    pub fn json(&self) -> Value {
        let all = self.latencies(None);
        let free = |entry: Option<&Entry>| entry.and_then(|entry| entry.free);
        json!({
            "runs": self.runs(),
            "reached": self.reached(),
            "unnoticed": self.unnoticed(),
            "error_returned": self.count("error_returned"),
            "kernel_faults": self.count("kernel_fault"),
            "hangs": self.count("hang"),
            "leaks": self.count("leak"),
            "wrong_results": self.count("wrong_result"),
            "latency_us": {
                "p50": percentile(&all, 50.0),
                "p99": percentile(&all, 99.0),
                "max": all.last().copied().unwrap_or(0.0),
            },
            "calls": self.entries.iter().map(|entry| entry.calls).sum::<u64>(),
            "free_first": free(self.entries.first()),
            "free_last": free(self.entries.last()),
        })
    }

    /// The summary for people.
    pub fn text(&self) -> String {
        let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
        let reached = self.reached();
        let mut text = format!(
            "{} runs, {reached} faults reached ({:.1} %), {} of them unnoticed ({:.3} %)\n",
            self.runs(),
            share(reached, self.runs()),
            self.unnoticed(),
            share(self.unnoticed(), reached),
        );
        for outcome in [
            "error_returned",
            "wrong_result",
            "leak",
            "hang",
            "kernel_fault",
        ] {
            let _ = writeln!(text, "    {outcome:<16} {:>8}", self.count(outcome));
        }
        let mut kinds = BTreeMap::new();
        for entry in &self.entries {
            let (runs, reached) = kinds.entry(entry.kind.as_str()).or_insert((0usize, 0usize));
            *runs += 1;
            *reached += usize::from(entry.reached);
        }
        text += "\nkind          runs  reached                     pause (us): p50      p99       max\n";
        let kinds = kinds
            .into_iter()
            .map(|(kind, (runs, reached))| (Some(kind), runs, reached));
        let all = (None, self.runs(), reached);
        for (kind, runs, reached) in kinds.chain([all]) {
            let times = self.latencies(kind);
            let _ = writeln!(
                text,
                "{:<10} {runs:>7} {reached:>8} {:>34.0} {:>8.0} {:>9.0}",
                kind.unwrap_or("all"),
                percentile(&times, 50.0),
                percentile(&times, 99.0),
                times.last().copied().unwrap_or(0.0)
            );
        }
        text + "\n" + &picture(&self.latencies(None))
    }
}

/// A histogram of times in microseconds, in steps of a factor of two.
fn picture(times: &[f64]) -> String {
    const WIDTH: usize = 50;
    let mut counts = BTreeMap::new();
    for time in times {
        *counts
            .entry(time.max(1.0).log2().floor() as u32)
            .or_insert(0usize) += 1;
    }
    let most = counts.values().copied().max().unwrap_or(1);
    let (Some(first), Some(last)) = (counts.keys().next(), counts.keys().last()) else {
        return String::new();
    };
    let mut text = String::from("pause, us\n");
    for step in *first..=*last {
        let count = counts.get(&step).copied().unwrap_or(0);
        let bar = "#".repeat((count * WIDTH).div_ceil(most));
        let _ = writeln!(text, "{:>9} | {bar:<WIDTH$} {count}", 1u64 << step);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"run":7,"kind":"opcode","domain":"frail-disk","place":4660,"reached":true,"outcome":"unnoticed","latency_us":81.250,"calls":24,"free":[100,100]}"#;

    #[test]
    fn a_line_is_read() {
        let entry = entry(LINE).expect("well-formed");
        assert_eq!(
            (entry.run, entry.latency, entry.free),
            (7, Some(81.25), Some(100))
        );
        assert!(entry.reached && entry.outcome == "unnoticed" && entry.calls == 24);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for bad in [
            "",
            "{}",
            "[]",
            "{\"run\":1}",
            "fault",
            &LINE[..LINE.len() - 1],
        ] {
            assert!(entry(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_fatal_run_is_a_line_too() {
        let entry = entry(&fatal(3, "hang", "kernel_fault", "signal 11")).expect("well-formed");
        assert_eq!((entry.run, entry.outcome.as_str()), (3, "kernel_fault"));
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        assert_eq!(percentile(&[], 50.0), 0.0);
        assert_eq!(percentile(&[3.0], 99.0), 3.0);
        let many: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&many, 0.0), 1.0);
        assert_eq!(percentile(&many, 50.0), 51.0);
        assert_eq!(percentile(&many, 100.0), 100.0);
    }

    fn summary(outcomes: &[(&str, usize)]) -> Summary {
        let mut summary = Summary::default();
        for (outcome, count) in outcomes {
            for _ in 0..*count {
                summary.add(Entry {
                    outcome: outcome.to_string(),
                    reached: *outcome != "not_reached",
                    latency: Some(summary.runs() as f64),
                    ..Entry::default()
                });
            }
        }
        summary
    }

    #[test]
    fn one_in_a_thousand_may_be_noticed() {
        let errors = |count| summary(&[("unnoticed", 1000 - count), ("error_returned", count)]);
        assert_eq!(errors(1).right(true), 1000);
        assert_eq!(errors(2).right(true), 998);
        assert_eq!(errors(2).right(false), 1000);
        assert_eq!(summary(&[("not_reached", 5)]).right(true), 5);
        for never in ["kernel_fault", "hang", "leak", "wrong_result"] {
            let summary = summary(&[("unnoticed", 99_999), (never, 1)]);
            assert_eq!(
                [true, false].map(|it| summary.right(it)),
                [99_999; 2],
                "{never}"
            );
        }
    }

    #[test]
    fn the_summary_counts() {
        let summary = summary(&[("unnoticed", 3), ("leak", 1), ("not_reached", 2)]);
        let json = summary.json();
        assert_eq!(
            (json["runs"].as_u64(), json["reached"].as_u64()),
            (Some(6), Some(4))
        );
        assert_eq!(
            (json["leaks"].as_u64(), json["hangs"].as_u64()),
            (Some(1), Some(0))
        );
        assert_eq!(json["latency_us"]["max"].as_f64(), Some(5.0));
        assert!(summary.text().contains("6 runs, 4 faults reached (66.7 %)"));
    }

    #[test]
    fn the_picture_has_a_bar_for_each_step() {
        let picture = picture(&[1.0, 1.5, 4.0, 4.5, 5.0]);
        let lines: Vec<_> = picture.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[3].trim_start().starts_with("4 | ####"));
        assert_eq!(super::picture(&[]), "");
    }
}
