//! `cargo xtask fuzz ring3` and `fuzz frames`: tests of isolation that take a seed, at length.
//!
//! `ring3` is programs of random machine code with random registers in ring 3, on 2 and 4
//! processors, run by domains half of which are ended in the midst. `frames` is domains that share
//! the frames of a memory object, by copies and in address spaces, and are ended at random moments,
//! on 4 processors.
//!
//! A machine is booted for each input. The isolation tests' director does it, with the input's
//! number as the seed, and compares memory before and after. A kernel that ends or stands still, a
//! test that fails, and memory that is lost are findings.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Options;
use machine::qemu::Machine;
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
    let (mut tried, mut counted, mut findings) = (0, 0, Vec::new());
    while tried < count
        && begin.elapsed().as_secs() < options.seconds
        && findings.len() < MOST_FINDINGS
    {
        let index = first + tried;
        let mut machine = Machine::new(&built.kernel, &folder);
        machine.archive = Some(built.archive.clone());
        machine.processors = target.processors[(index % 2) as usize];
        let seed = seed(options.seed, index);
        let test = format!("options={}@{seed}", target.test);
        let words = ["root=domains/prober".into(), test, "panic=off".into()];
        machine.words.extend(words);
        match one(target, &machine, &folder) {
            Ok(more) => counted += more,
            Err(why) => findings.push(format!("input {index}: {why:#}")),
        }
        tried += 1;
        eprintln!(
            "{tried} machines, {counted} {}, {} findings",
            target.what,
            findings.len()
        );
    }
    for finding in &findings {
        println!("{finding}");
    }
    println!(
        "{tried} machines, {counted} {}, {} findings; seed {}, {:.0} s",
        target.what,
        findings.len(),
        options.seed,
        begin.elapsed().as_secs_f64()
    );
    Ok(i32::from(tried == 0 || !findings.is_empty()))
}

/// What the director is given: not 0, which is the usual run of its tests.
fn seed(seed: u64, index: u64) -> u64 {
    1 + (seed.wrapping_mul(0x9e37_79b9) ^ index) % 0xffff_ffff
}

/// Boots one machine; how much was counted.
fn one(target: &Target, machine: &Machine, folder: &Path) -> Result<u64> {
    let mut session = Session::start(machine, false)?;
    session.end(LIMIT)?;
    let log = String::from_utf8_lossy(&fs::read(folder.join("kernel.log"))?).into_owned();
    verdict(target, &log)
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
    fn no_seed_is_that_of_the_usual_run() {
        assert!((0..1000).all(|index| seed(1, index) != 0 && seed(1, index) != seed(1, index + 1)));
        assert_ne!(seed(1, 7), seed(2, 7));
    }
}
