//! `cargo xtask fuzz ring3` and `fuzz frames`: tests of isolation that take a seed, at length.
//!
//! `ring3` is programs of random machine code with random registers in ring 3, on 2 and 4
//! processors, run by domains half of which are ended in the midst. `frames` is domains that share
//! the frames of a memory object, by copies and in address spaces, and are ended at random moments,
//! on 4 processors.
//!
//! A machine is booted for each input. The isolation tests' director does it, with the input's
//! number as the seed, and compares memory before and after. A kernel that ends or stands still, a
//! test that fails, and memory that is lost are findings. QEMU that is ended by a signal is none:
//! no guest may do that to it, so it says nothing of ours, and is counted by itself.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Options;
use machine::qemu::{Ended, Machine};
use machine::session::Session;
use trefoil_gate::build;
use trefoil_gate::project::Project;

/// A test of the director.
pub struct Target {
    /// The name of the target.
    pub name: &'static str,
    test: &'static str,
    /// What it counts, as the director's log has it.
    what: &'static str,
    /// Processors of the machines, in turns.
    processors: [u32; 2],
}

/// All of them.
pub const TARGETS: [Target; 2] = [
    Target {
        name: "ring3",
        test: "ring3-random-programs",
        what: "events of random programs",
        processors: [2, 4],
    },
    Target {
        name: "frames",
        test: "frames-shared-among-dying-domains",
        what: "deaths beside shared frames",
        processors: [4, 4],
    },
];

/// The longest that one machine may take.
const LIMIT: Duration = Duration::from_secs(1800);
/// Findings, and the run ends.
const MOST_FINDINGS: usize = 10;

/// The command; its result is our exit status.
///
/// # Errors
/// If the kernel cannot be built or started.
pub fn run(project: &Project, target: &Target, options: &Options) -> Result<i32> {
    let folder = project.out.join("fuzz").join(target.name);
    fs::create_dir_all(&folder)?;
    let built = build::build_for_tests(project)?;
    let begin = Instant::now();
    let first = options.only.unwrap_or(options.first);
    let count = options.only.map_or(options.count, |_| 1);
    let mut tally = Tally::default();
    while tally.tried() < count
        && begin.elapsed().as_secs() < options.seconds
        && tally.findings.len() < MOST_FINDINGS
    {
        let index = first + tally.tried();
        let mut machine = Machine::new(&built.kernel, &folder);
        machine.archive = Some(built.archive.clone());
        machine.processors = target.processors[(index % 2) as usize];
        let seed = seed(options.seed, index);
        let test = format!("options={}@{seed}", target.test);
        let words = ["root=domains/prober".into(), test, "panic=off".into()];
        machine.words.extend(words);
        tally.take(index, one(target, &machine, &folder));
        eprintln!("{}", tally.told(target.what));
    }
    let lines = tally.lost.iter().chain(&tally.findings);
    lines.for_each(|line| println!("{line}"));
    let (told, seconds) = (tally.told(target.what), begin.elapsed().as_secs_f64());
    println!("seed {}, {seconds:.0} s: {told}", options.seed);
    Ok(i32::from(tally.is_bad()))
}

/// What came of the machines.
#[derive(Default)]
struct Tally {
    /// How many came to their end, or did not and it is a finding.
    judged: u64,
    counted: u64,
    findings: Vec<String>,
    /// Those that QEMU did not survive.
    lost: Vec<String>,
}

impl Tally {
    fn tried(&self) -> u64 {
        self.judged + self.lost.len() as u64
    }

    fn take(&mut self, index: u64, outcome: Result<Outcome>) {
        match outcome {
            Ok(Outcome::Lost(signal)) => {
                let line = format!("input {index}: QEMU was ended by signal {signal}: no finding");
                return self.lost.push(line);
            }
            Ok(Outcome::Counted(more)) => self.counted += more,
            Err(why) => self.findings.push(format!("input {index}: {why:#}")),
        }
        self.judged += 1;
    }

    fn told(&self, what: &str) -> String {
        let lost = match self.lost.len() {
            0 => String::new(),
            count => format!(" (and {count} that QEMU did not survive)"),
        };
        format!(
            "{} machines{lost}, {} {what}, {} findings",
            self.judged,
            self.counted,
            self.findings.len()
        )
    }

    /// Whether something was found, or nothing was tried to its end.
    fn is_bad(&self) -> bool {
        self.judged == 0 || !self.findings.is_empty()
    }
}

/// How a machine ended whose test did not fail.
#[derive(Debug)]
enum Outcome {
    /// So much was counted.
    Counted(u64),
    /// QEMU was ended by this signal.
    Lost(i32),
}

/// What the director is given: not 0, which is the usual run of its tests.
fn seed(seed: u64, index: u64) -> u64 {
    1 + (seed.wrapping_mul(0x9e37_79b9) ^ index) % 0xffff_ffff
}

/// Boots one machine.
fn one(target: &Target, machine: &Machine, folder: &Path) -> Result<Outcome> {
    let mut session = Session::start(machine, false)?;
    let ended = session.end(LIMIT)?;
    let log = String::from_utf8_lossy(&fs::read(folder.join("kernel.log"))?).into_owned();
    outcome(target, ended, &log)
}

/// What the machine's end and its log say. A kernel that had panicked before QEMU went has ended
/// by that.
fn outcome(target: &Target, ended: Ended, log: &str) -> Result<Outcome> {
    match ended {
        Ended::Killed(signal) => Ok(Outcome::Lost(signal)),
        _ => verdict(target, log).map(Outcome::Counted),
    }
}

/// What the log of a machine says: how much was counted, if the test passed.
fn verdict(target: &Target, log: &str) -> Result<u64> {
    let ok = format!("test {} ok", target.test);
    let passed = log.contains(&ok) && log.contains(" 1 passed, 0 failed");
    let what = format!(" {}", target.what);
    let counted = log
        .lines()
        .find_map(|line| line.split_once(&what)?.0.rsplit(' ').next())
        .and_then(|number| number.parse().ok());
    counted.filter(|_| passed).with_context(|| {
        let last: Vec<_> = log.lines().rev().take(12).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        format!("the test did not pass:\n{}", last.join("\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_has_passed_counts() {
        let good = "[ 1.0] prober: 3600 events of random programs\n\
            [ 1.1] prober: test ring3-random-programs ok\n[ 1.2] prober: 1 passed, 0 failed\n";
        let [ring3, frames] = TARGETS;
        assert_eq!(verdict(&ring3, good).expect("it passed"), 3600);
        assert!(verdict(&frames, good).is_err(), "another test has passed");
        for bad in [
            "[ 1.0] prober: 3600 events of random programs\n[ 1.1] kernel: page fault\n",
            "[ 1.1] prober: test ring3-random-programs FAILED: 4096 bytes are lost every time\n\
             [ 1.2] prober: 0 passed, 1 failed\n",
            "",
        ] {
            assert!(verdict(&ring3, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_qemu_does_not_survive_is_no_finding_and_no_success() {
        let [ring3, _] = TARGETS;
        let mut tally = Tally::default();
        tally.take(4, outcome(&ring3, Ended::Killed(11), "[ 0.9] booting"));
        assert!(tally.is_bad(), "nothing came to its end");
        tally.take(5, Ok(Outcome::Counted(7)));
        assert!(!tally.is_bad());
        assert_eq!(tally.tried(), 2);
        let told = tally.told("events");
        let expected = "1 machines (and 1 that QEMU did not survive), 7 events, 0 findings";
        assert_eq!(told, expected);
        let panicked = outcome(&ring3, Ended::KernelPanic, "kernel panic: x");
        tally.take(6, panicked);
        assert!(tally.is_bad() && tally.findings.len() == 1);
    }

    #[test]
    fn no_seed_is_that_of_the_usual_run() {
        assert!((0..1000).all(|index| seed(1, index) != 0 && seed(1, index) != seed(1, index + 1)));
        assert_ne!(seed(1, 7), seed(2, 7));
    }
}
