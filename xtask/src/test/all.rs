//! `cargo xtask test --all`: the campaigns that follow the tests.
//!
//! Each is a line of this very tool, in a process of its own: one that fails, or does not even
//! start, does not keep the next from running. It has succeeded if its status is 0 *and* the last
//! line that it prints ends with what was to be reached, "N of N" or "0 findings": a campaign that
//! has run out of time has not.

use std::fmt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use trefoil_gate::project::Project;
use trefoil_gate::{guard, tool};

use super::notes::Notes;
use super::{Count, each_line};

/// A campaign, as one would type it behind `cargo xtask`, and what it is for.
struct Campaign {
    line: &'static str,
    what: &'static str,
}

/// All of them, in the order in which they run. What is accepted by a campaign has its line and its
/// numbers here.
const CAMPAIGNS: [Campaign; 5] = [
    Campaign {
        line: "faults --platform hosted --seed 424242 --runs 2000 --minutes 600",
        what: "faults in a driver, after which nothing may be missing",
    },
    Campaign {
        line: "fuzz idl --seconds 600",
        what: "interface files that are damaged, or made up",
    },
    Campaign {
        line: "fuzz interfaces --platform bare --smp 4 --seconds 300",
        what: "hostile values and sequences of calls",
    },
    Campaign {
        line: "storms --domain all --runs 50 --minutes 600",
        what: "crashes of a file system, its shadow and its driver under work",
    },
    Campaign {
        line: "cuts --crash --runs 100 --minutes 600",
        what: "power cuts while all of these crash",
    },
];

/// The lines of all campaigns, for `--list`.
pub fn listed() -> impl Iterator<Item = String> {
    let line = |Campaign { line, what }| format!("cargo xtask {line}\n    {what}");
    CAMPAIGNS.into_iter().map(line)
}

/// Runs all of them, one after the other, and notes which have failed.
///
/// # Errors
/// If there is no tool to run them with.
pub fn run(project: &Project, notes: &mut Notes) -> Result<Count> {
    // The tool may be compiled anew meanwhile.
    let program = guard::own_copy(project, "campaigns")?;
    let mut results = Vec::new();
    for (number, Campaign { line, .. }) in CAMPAIGNS.iter().enumerate() {
        let count = CAMPAIGNS.len();
        tool::step(format_args!("campaign {} of {count}: {line}", number + 1));
        let mut command = Command::new(&program);
        command.args(line.split(' ')).current_dir(&project.root);
        let result = one(line, command);
        println!("{result}");
        results.push(result);
    }
    println!("campaigns:");
    let mut count = Count::default();
    for result in results {
        match result.why {
            None => {
                println!("{result}");
                count.passed += 1;
            }
            Some(_) => {
                notes.fail(&result.words());
                count.failed += 1;
            }
        }
    }
    Ok(count)
}

/// What came of a campaign.
#[derive(Debug)]
struct Outcome<'a> {
    line: &'a str,
    took: Duration,
    /// The last line that it printed.
    last: String,
    /// Why it has failed, if it has.
    why: Option<String>,
}

impl Outcome<'_> {
    fn words(&self) -> String {
        let Outcome { line, last, .. } = self;
        let (seconds, why) = (self.took.as_secs(), self.why.as_deref().unwrap_or("ok"));
        format!("{line} ({seconds} s): {why}: {last}")
    }
}

impl fmt::Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.why.is_none() { "ok" } else { "FAILED" };
        write!(f, "{mark:<8}{}", self.words())
    }
}

/// Runs the campaign `line` by `command`.
fn one(line: &str, mut command: Command) -> Outcome<'_> {
    let (begin, mut last) = (Instant::now(), String::new());
    let succeeded = each_line(&mut command, |line| {
        println!("{line}");
        if !line.trim().is_empty() {
            last = line.trim().to_string();
        }
    });
    let why = match succeeded {
        Err(error) => Some(format!("it cannot be run: {error:#}")),
        Ok(false) => Some("its status is not 0".into()),
        Ok(true) if !is_whole(&last) => Some("it does not say that all is right".into()),
        Ok(true) => None,
    };
    Outcome {
        line,
        took: begin.elapsed(),
        last,
        why,
    }
}

/// Whether a campaign's last line says that all was right.
fn is_whole(line: &str) -> bool {
    let words: Vec<_> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<u64>().ok();
    let are_all = |three: &[&str]| {
        three[1] == "of" && number(three[0]) == number(three[2]) && number(three[0]) > Some(0)
    };
    words.ends_with(&["0", "findings"]) || words.windows(3).any(are_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_whole_is_right() {
        for right in [
            "50 of 50 runs right",
            "100 of 100",
            "154 methods: 154 covered; 90 sequences; 0 findings",
            "0 findings",
        ] {
            assert!(is_whole(right), "{right}");
        }
        for wrong in [
            "",
            "49 of 50 runs right",
            "0 of 0 runs right",
            "of of of",
            "10 findings",
            "0 findings so far",
            "seed 1, 60 s",
        ] {
            assert!(!is_whole(wrong), "{wrong}");
        }
    }

    fn shell(script: &str) -> Outcome<'static> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        one("storms", command)
    }

    #[test]
    fn a_campaign_needs_both_its_status_and_its_last_line() {
        let outcome = shell("echo at work; echo 3 of 3 runs right; echo");
        assert_eq!(outcome.last, "3 of 3 runs right");
        assert!(outcome.why.is_none(), "{outcome:?}");
        assert!(outcome.to_string().starts_with("ok      storms ("));
        for bad in [
            "echo 3 of 3 runs right; exit 1",
            "echo 3 of 3 runs right; kill -9 $$",
            "echo 2 of 3 runs right",
            "echo 3 of 3 runs right; echo and one more",
            "exit 0",
        ] {
            let outcome = shell(bad);
            assert!(outcome.why.is_some(), "{bad}: {outcome:?}");
            assert!(outcome.to_string().starts_with("FAILED  storms ("));
        }
        let missing = one("storms", Command::new("/nowhere/no such program"));
        assert!(missing.why.is_some_and(|why| why.contains("cannot be run")));
    }

    #[test]
    fn each_campaign_is_a_line_of_its_own() {
        let mut lines: Vec<_> = CAMPAIGNS.iter().map(|campaign| campaign.line).collect();
        assert!(lines.iter().all(|line| !line.contains("  ")));
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), CAMPAIGNS.len());
        assert_eq!(listed().count(), CAMPAIGNS.len());
    }
}
