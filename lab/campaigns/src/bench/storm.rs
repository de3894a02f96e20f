//! Among `bench files`: names that one thread changes, and four at once on four processors, each in
//! a directory of its own, beside Debian's kernel (`filework::run_storm`).
//!
//! How far four threads get cannot be told by the clock where the host has fewer processors than
//! four, or other work. So besides the clock there are figures in guest instructions
//! (`-icount shift=0`), where the host does not count:
//!
//! - what of a file's instructions is run with a lock held that all share. If that is one `n`th of
//!   all, so many threads as there may be get `n` times as far as one, no more: the bound;
//! - how many more instructions four threads take for a file than one does, on one processor: what
//!   they do because of each other, waiting, waking, and taking turns. (On four whose instructions
//!   are counted, processors take turns at QEMU's will, and whoever waits for another one's answer
//!   counts; Debian's kernel takes many minutes to boot there.)
//!
//! The bound is one for the two locks that are measured, that for changes of the shadow and that of
//! the file system. It does not see others (the kernel's, that of who keeps notes), nor lines of
//! the cache that processors take from each other: it is reached only if nothing else is in the
//! way. Debian's locks are not measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use machine::qemu::{Machine, exec_word};
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

use super::figure::{Figure, min_and_median};
use super::files;
use super::side::peer_words;
use crate::peer;

const PROCESSORS: u32 = 4;
/// What the program is told to do.
const OPTION: &str = "-m";
/// The locks that are measured, as the log names them, the shadow's first.
const LOCKS: [&str; 2] = ["engine", "volume"];

/// Milliseconds for a file: of one thread, and of all at once.
type Pair = [f64; 2];

/// Measures.
///
/// # Errors
/// If one of the systems does not do the work.
pub fn storm(project: &Project, rounds: usize) -> Result<Vec<Figure>> {
    let built = build::build(project, None)?;
    let folder = project.out.join("bench-files");
    fs::create_dir_all(&folder)?;
    let debian = peer::debian(project)?;
    let program = files::peer_program(project)?;
    let image = files::image(&folder)?;
    let mut ours = Machine::new(&built.kernel, &folder);
    ours.archive = Some(built.archive.clone());
    let line = format!("/boot/testing/filebench {OPTION}");
    ours.words.extend([exec_word(&line), "held".into()]);
    let mut theirs = Machine::new(&debian.kernel, &folder);
    let file = folder.join("peer-storm.cpio");
    fs::write(
        &file,
        debian.disk_with(&program, OPTION, "ext2", files::END)?,
    )?;
    theirs.archive = Some(file);
    theirs.words = peer_words();

    tool::step("changing names, by instructions");
    for machine in [&mut ours, &mut theirs] {
        machine.count_instructions = true;
    }
    let (own, log) = run(&mut ours, 1, &image, &folder)?;
    let held = held(&log)?;
    let (other, _) = run(&mut theirs, 1, &image, &folder)?;
    for machine in [&mut ours, &mut theirs] {
        machine.count_instructions = false;
    }
    let mut figures = by_instructions(own, other, &held);

    let (mut own, mut other) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        tool::step(format_args!(
            "changing names, by the clock, round {round} of {rounds}"
        ));
        for (machine, speedups) in [(&mut ours, &mut own), (&mut theirs, &mut other)] {
            let ([one, all], _) = run(machine, PROCESSORS, &image, &folder)?;
            speedups.push(one / all);
        }
    }
    figures.push(by_clock(&mut own, &mut other));
    Ok(figures)
}

/// Has `machine` do the work on so many processors: how long a file takes, and the log.
fn run(
    machine: &mut Machine,
    processors: u32,
    image: &Path,
    folder: &Path,
) -> Result<(Pair, String)> {
    machine.processors = processors;
    let (times, log) = files::done(machine, filework::STORM_PHASES, image, folder)?;
    let mut each = times.iter().map(|(_, amount, time)| time / amount);
    match (each.next(), each.next()) {
        (Some(one), Some(all)) => Ok(([one, all], log)),
        _ => bail!("there are not two phases"),
    }
}

/// How long each lock was held, and how often, while one thread worked: what the log says at the
/// sync behind that.
fn held(log: &str) -> Result<BTreeMap<&'static str, (f64, f64)>> {
    let mut all = BTreeMap::new();
    for lock in LOCKS {
        let of = |line: &str| {
            let (_, rest) = line.split_once(&format!(": held {lock}: "))?;
            let (nanoseconds, rest) = rest.split_once(" ns, ")?;
            let (turns, _) = rest.split_once(" turns")?;
            Some((nanoseconds.parse().ok()?, turns.parse().ok()?))
        };
        // The first one is before the phase.
        match log.lines().filter_map(of).nth(1) {
            Some(told) => drop(all.insert(lock, told)),
            None => bail!("the log does not say how long the lock `{lock}` was held\n{log}"),
        }
    }
    Ok(all)
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn by_instructions(own: Pair, other: Pair, held: &BTreeMap<&str, (f64, f64)>) -> Vec<Figure> {
    // A nanosecond is an instruction.
    let [own, other] = [own, other].map(|pair| pair.map(|time| time * 1e6));
    let files = (filework::STORM_FILES) as f64;
    let ratio = hundredths(own[0] / other[0]);
    let name = "metadata storm, 1 thread, one file";
    let work = Figure::new("files", name, ratio, None, "x the instructions")
        .at_most(1.0)
        .beside("instructions", own[0].round())
        .beside("Debian's", other[0].round());
    let shares = held
        .values()
        .map(|(nanoseconds, _)| nanoseconds / files / own[0]);
    let most = shares.fold(0.0, f64::max);
    let bound = f64::from(PROCESSORS).min(1.0 / most);
    let name = "metadata storm, 4 threads over 1: bound by locks";
    let mut bound = Figure::new("files", name, hundredths(bound), None, "x").at_least(2.5);
    for (lock, (nanoseconds, turns)) in held {
        bound = bound
            .beside(
                &format!("{lock} held, of 1"),
                hundredths(nanoseconds / files / own[0]),
            )
            .beside("turns a file", hundredths(turns / files));
    }
    let more = |pair: Pair| hundredths(pair[1] / pair[0]);
    let name = "metadata storm, one file, 1 processor: 4 threads over 1";
    let waste = Figure::new("files", name, more(own), None, "x the instructions")
        .beside("Debian's", more(other));
    vec![work, bound, waste]
}

fn by_clock(own: &mut [f64], other: &mut [f64]) -> Figure {
    let ((least, median), other) = (min_and_median(own), min_and_median(other));
    let name = "metadata storm, 4 threads over 1: by this host's clock";
    Figure::new("files", name, hundredths(median), None, "x")
        .beside("least", hundredths(least))
        .beside("Debian's", hundredths(other.1))
        .beside("Debian's least", hundredths(other.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "[ 0.1] vfs: held engine: 7 ns, 1 turns\r\n\
        [ 0.1] ext2: held volume: 5 ns, 1 turns\r\n\
        [ 0.2] vfs: held engine: 10000000 ns, 800 turns\r\n\
        [ 0.2] ext2: held volume: 4000000 ns, 1000 turns\r\n\
        [ 0.3] vfs: held engine: 9 ns, 1 turns\r\n";

    #[test]
    fn the_longest_held_lock_is_the_bound() {
        let held = held(LOG).expect("both are told");
        assert_eq!(held["engine"], (10_000_000.0, 800.0));
        let figures = by_instructions([0.1, 0.125], [0.2, 0.2], &held);
        let values: Vec<_> = figures.iter().map(|figure| figure.best).collect();
        assert_eq!(values, [0.5, 2.0, 1.25]);
        assert_eq!(figures[1].met, Some(false));
        assert_eq!(figures[1].peers[0], ("engine held, of 1".into(), 0.5));
        assert_eq!(figures[1].peers[3], ("turns a file".into(), 5.0));
    }

    #[test]
    fn a_log_without_the_locks_is_refused() {
        assert!(super::held("[ 0.1] vfs: held engine: 7 ns, 1 turns").is_err());
    }
}
