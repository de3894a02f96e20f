//! Tests inside the booted machine: the framework's own, and those of the isolation, which report
//! in the kernel's log.

use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use lab::backtraces;
use machine::log;
use machine::qemu::Machine;
use machine::second;
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

use super::notes::Notes;
use super::{Count, system_result};

/// Numbers of processors that they run with.
pub const PROCESSORS: [u32; 3] = [1, 2, 4];
const LIMIT: Duration = Duration::from_secs(1200);

/// A table of tests that runs inside the booted machine and reports in the kernel's log.
pub struct Inside {
    /// What it is called in messages.
    pub name: &'static str,
    /// The word on the command line that asks for it.
    word: &'static str,
    /// What stands in front of a part of the names, in a word of its own.
    part: &'static str,
    /// What stands in front of a test's name in the log.
    mark: &'static str,
}

/// The framework's own tests.
pub const SELFTEST: Inside = Inside {
    name: "kernel",
    word: "selftest",
    part: "selftest=",
    mark: "selftest ",
};

/// The isolation tests: the domain `prober` starts others that do harm.
pub const ISOLATION: Inside = Inside {
    name: "isolation",
    word: "root=domains/prober",
    part: "options=",
    mark: "prober: test ",
};

/// What one run of such a table gave.
#[derive(Clone, Debug, Default)]
struct Ran {
    passed: u32,
    /// The lines of those that failed.
    failed: Vec<String>,
    /// What the machine showed if it did not come to its end.
    broken: Option<String>,
}

impl Ran {
    fn count(&self) -> Count {
        Count {
            passed: self.passed,
            failed: self.failed.len() as u32 + u32::from(self.broken.is_some()),
        }
    }
}

/// A table that ran on a machine.
pub struct First {
    tests: &'static Inside,
    machine: Machine,
    ran: Ran,
}

/// The numbers of processors that do for whoever waits: one, and two or four, as the commit that is
/// checked out has it. So a second try has the same, and both have their turns.
pub fn drawn(project: &Project) -> Vec<u32> {
    let mut git = Command::new("git");
    git.args(["rev-parse", "HEAD"]).current_dir(&project.root);
    // Without a history it is two.
    let commit = tool::output(&mut git).unwrap_or_default();
    vec![1, several(&commit)]
}

/// Two for half of all commits, four for the others.
fn several(commit: &str) -> u32 {
    let sum: u32 = commit.trim().bytes().map(u32::from).sum();
    2 << (sum % 2)
}

/// Runs such tables with these numbers of processors, or only the tests that have `part` in their
/// name, and notes what failed. Machines of one processor run side by side.
///
/// # Errors
/// If a machine cannot be built or started.
pub fn first(
    project: &Project,
    tables: &[&'static Inside],
    part: &str,
    processors: &[u32],
    notes: &mut Notes,
) -> Result<Vec<First>> {
    let built = build::build_for_tests(project)?;
    let mut all = Vec::new();
    for &processors in processors {
        let at_once = if processors == 1 { tables.len() } else { 1 };
        for tables in tables.chunks(at_once.max(1)) {
            let names: Vec<_> = tables.iter().map(|tests| tests.name).collect();
            tool::step(format_args!(
                "testing the {} on {processors} processors",
                names.join(" and the ")
            ));
            let machine = |tests| machine(project, &built, tests, processors);
            let machines: Vec<_> = tables
                .iter()
                .map(|tests| (*tests, machine(tests)))
                .collect();
            let ran = side_by_side(&machines, part);
            for ((tests, machine), ran) in machines.into_iter().zip(ran) {
                let first = First {
                    tests,
                    machine,
                    ran: ran?,
                };
                first.note(notes);
                all.push(first);
            }
        }
    }
    Ok(all)
}

/// Tries again what failed at first, unless `once`: nothing else may run now. The counts of both.
///
/// # Errors
/// If a machine cannot be started.
pub fn second(all: Vec<First>, part: &str, once: bool, notes: &mut Notes) -> Result<Count> {
    let mut count = Count::default();
    for mut first in all {
        if !once && second::are_due(first.failures().into_iter()) {
            let place = first.place();
            again(&first.machine, first.tests, part, &mut first.ran, |name| {
                notes.unsteady(&format!("{place}: {name}"))
            })?;
        }
        count.add(first.ran.count());
    }
    Ok(count)
}

impl First {
    fn place(&self) -> String {
        format!(
            "{} on {} processors",
            self.tests.name, self.machine.processors
        )
    }

    fn failures(&self) -> Vec<&str> {
        let failures = self.ran.failed.iter().chain(&self.ran.broken);
        failures.map(String::as_str).collect()
    }

    fn note(&self, notes: &mut Notes) {
        let place = self.place();
        for why in self.failures() {
            notes.fail(&format!("{place}: {why}"));
        }
    }
}

/// Runs a table on each of the machines, all at the same time.
fn side_by_side(machines: &[(&Inside, Machine)], part: &str) -> Vec<Result<Ran>> {
    thread::scope(|scope| {
        let start = |(tests, machine)| scope.spawn(move || run(machine, tests, part));
        let threads: Vec<_> = machines
            .iter()
            .map(|(tests, machine)| start((*tests, machine)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        let ended = ended.map(|ran| ran.unwrap_or_else(|_| bail!("the test tool panicked")));
        ended.collect()
    })
}

/// Tries what failed a second time, and counts it as passed if it does then.
fn again(
    machine: &Machine,
    tests: &Inside,
    part: &str,
    ran: &mut Ran,
    mut passed: impl FnMut(&str),
) -> Result<()> {
    if ran.broken.is_some() {
        let whole = run(machine, tests, part)?;
        if whole.count().failed == 0 {
            passed("all");
            *ran = whole;
        }
        return Ok(());
    }
    for line in std::mem::take(&mut ran.failed) {
        let name = line.split(' ').next().unwrap_or_default();
        let alone = run(machine, tests, name)?.count();
        if alone.failed == 0 && alone.passed > 0 {
            passed(name);
            ran.passed += 1;
        } else {
            ran.failed.push(line);
        }
    }
    Ok(())
}

fn machine(project: &Project, built: &build::Built, tests: &Inside, processors: u32) -> Machine {
    let folder = project.out.join(format!("{}-{processors}", tests.name));
    let mut machine = Machine::new(&built.kernel, &folder);
    machine.archive = Some(built.archive.clone());
    machine.processors = processors;
    machine
}

/// Boots a machine that runs the tests with `part` in their name.
fn run(machine: &Machine, tests: &Inside, part: &str) -> Result<Ran> {
    let mut machine = machine.clone();
    // The first word that asks for tests is the one that counts.
    if !part.is_empty() {
        machine.words.push(format!("{}{part}", tests.part));
    }
    machine
        .words
        .extend([tests.word.into(), "panic=off".into()]);
    let mut session = Session::start(&machine, false)?;
    let ended = session.end(LIMIT);
    let log = session.guest.log();
    let mut ran = log_results(&log, tests.mark);
    // What the machine counted itself, at the very end, must be what was read.
    let told = log.lines().rev().find_map(summary);
    if ended.is_err() || told != Some(ran.count()) {
        let report = ended.map_or_else(|error| error.to_string(), |_| session.report());
        ran.broken = Some(format!(
            "the machine did not end its tests properly\n{report}"
        ));
    }
    judge_stacks(&log, &mut ran);
    Ok(ran)
}

/// Counts tests as failed whose stacks in the log are not as they must be: the host alone knows
/// functions and lines.
fn judge_stacks(log: &str, ran: &mut Ran) {
    for (name, judged) in backtraces::judge(log, &Project::here().root) {
        if let Err(error) = judged {
            ran.passed = ran.passed.saturating_sub(1);
            ran.failed.push(format!("{name} FAILED: {error:#}"));
        }
    }
}

/// The counts in a line of the log such as `[    1.2] prober: 64 passed, 0 failed`.
fn summary(line: &str) -> Option<Count> {
    let (_, text) = line.split_once("] ")?;
    let text = text.rsplit_once(": ").map_or(text, |(_, text)| text);
    system_result(text.trim_end())
}

/// Sorts the lines `MARK NAME ok` and `MARK NAME FAILED: why` of a log.
fn log_results(text: &str, mark: &str) -> Ran {
    let mut ran = Ran::default();
    let told = text.lines().filter_map(log::behind_time);
    for line in told.filter_map(|line| line.strip_prefix(mark)) {
        if line.ends_with(" ok") {
            ran.passed += 1;
        } else if line.contains(" FAILED") {
            ran.failed.push(line.to_string());
        }
    }
    ran
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_draws_two_or_four_processors() {
        assert_eq!(several(""), 2);
        assert_eq!((several("a1\n"), several("a2\n")), (2, 4));
    }

    #[test]
    fn a_log_that_breaks_off_has_no_summary() {
        let line = "[    0.4] prober: 1 passed, 1 failed\r";
        let count = Count {
            passed: 1,
            failed: 1,
        };
        assert_eq!(summary(line), Some(count));
        assert_eq!(summary("[    0.4] 1 passed, 1 failed"), Some(count));
        assert_eq!(summary("[    0.4] kernel panic: a queue"), None);
    }

    #[test]
    fn the_kernels_results_are_read_from_its_log() {
        let log = "[    0.1] Trefoil\r\n[    0.2] selftest frames ok\r\n[    0.3] selftest irq FAILED: late\r\n[    0.4] 1 passed, 1 failed\r\n";
        let ran = log_results(log, SELFTEST.mark);
        assert_eq!(
            (ran.passed, ran.failed),
            (1, vec!["irq FAILED: late".to_string()])
        );
        assert_eq!(log_results("", SELFTEST.mark).count(), Count::default());
    }
}
