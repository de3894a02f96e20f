//! `bench files`: reading, writing, making and removing files, beside Debian's kernel.
//!
//! Both systems boot in the same machine, in turns, each time with a fresh copy of the same image,
//! and do the work of `lib/testing/filework`; the times are taken inside, by the system's own
//! clock. What is about names alone is done once, by a clock that counts the guest's instructions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::cached;
use super::figure::{Figure, min_and_median};
use super::side::peer_words;
use super::storm;
use crate::{peer, plot};
use machine::disk;
use machine::qemu::Machine;
use machine::qemu::exec_word;
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, setup, tool};

const LIMIT: Duration = Duration::from_secs(600);
/// What the peer prints when it is done.
pub(super) const END: &str = "filework-ended";
/// The unit of what is measured by the clock.
const TIMED: &str = "x the time";
const SIZE: &str = "256M";
/// The block size that mke2fs takes for disks of today.
pub(super) const OPTIONS: [&str; 2] = ["-b", "4096"];
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The times of one phase, in milliseconds.
#[derive(Default)]
struct Times {
    /// How much it did.
    amount: f64,
    own: Vec<f64>,
    other: Vec<f64>,
}

/// Phases, what they did, and milliseconds.
pub(super) type Phases = Vec<(String, f64, f64)>;

/// One of the works, each on a disk of its own.
pub(super) struct Work {
    /// What the programs are told to do.
    pub(super) option: &'static str,
    /// What mke2fs is told, and what Debian mounts it as.
    pub(super) made: &'static [&'static str],
    pub(super) kind: &'static str,
    pub(super) phases: usize,
    /// Small files that the disk has from the start.
    pub(super) small: usize,
    /// By a clock that counts instructions, for each of what a phase did.
    pub(super) is_counted: bool,
}

const WORKS: [Work; 3] = [
    Work {
        option: "-n",
        made: &OPTIONS,
        kind: "ext2",
        phases: filework::NAME_PHASES,
        small: 0,
        is_counted: true,
    },
    Work {
        option: "",
        made: &OPTIONS,
        kind: "ext2",
        phases: filework::PHASES,
        small: 0,
        is_counted: false,
    },
    // With a journal: without one every system writes each change to its place before `fsync`
    // returns.
    Work {
        option: "-y",
        made: &["-b", "4096", "-j"],
        kind: "ext3",
        phases: 1,
        small: 0,
        is_counted: false,
    },
];

/// Measures, and writes a plot.
///
/// # Errors
/// If one of the systems does not do the work.
pub fn files(project: &Project, rounds: usize) -> Result<Vec<Figure>> {
    let mut figures = work(project, rounds, |_| true)?;
    figures.extend(cached::cached(project)?);
    figures.extend(storm::storm(project, rounds)?);
    let timed = figures.iter().filter(|figure| figure.unit == TIMED);
    let bars: Vec<_> = timed
        .map(|figure| (figure.name.clone(), figure.best))
        .collect();
    let plot = project.out.join("bench-files.svg");
    let title = "Time for work on files, Debian's kernel = 1 (less is better)";
    fs::write(&plot, plot::bars(title, &bars, 1.0))?;
    Ok(figures)
}

/// Measures what is about names alone.
///
/// # Errors
/// As [`files`].
pub fn names(project: &Project) -> Result<Vec<Figure>> {
    let mut figures = work(project, 1, |work| work.is_counted)?;
    figures.extend(cached::cached(project)?);
    figures.extend(storm::storm(project, 1)?);
    Ok(figures)
}

fn work(
    project: &Project,
    rounds: usize,
    is_wanted: impl Fn(&Work) -> bool,
) -> Result<Vec<Figure>> {
    let built = build::build(project, None)?;
    let folder = project.out.join("bench-files");
    fs::create_dir_all(&folder)?;
    let debian = peer::debian(project)?;
    let program = peer_program(project)?;
    let mut figures = Vec::new();
    for work in WORKS.iter().filter(|work| is_wanted(work)) {
        let mut ours = Machine::new(&built.kernel, &folder);
        ours.archive = Some(built.archive.clone());
        ours.words.push(exec_word(&match work.option {
            "" => "/boot/testing/filebench".to_string(),
            "-y" => format!("/boot/testing/filebench -y {}", filework::WRITERS),
            option => format!("/boot/testing/filebench {option}"),
        }));
        let mut theirs = Machine::new(&debian.kernel, &folder);
        let archive = debian.disk_with(&program, work.option, work.kind, END)?;
        let file = folder.join(format!("peer-{}{}.cpio", work.kind, work.option));
        fs::write(&file, archive)?;
        theirs.archive = Some(file);
        theirs.words = match work.is_counted {
            true => peer_words(),
            false => vec!["console=ttyS0".into(), "quiet".into(), "panic=-1".into()],
        };
        let rounds = if work.is_counted { 1 } else { rounds };
        for machine in [&mut ours, &mut theirs] {
            machine.count_instructions = work.is_counted;
        }
        figures.extend(compare(work, &mut ours, &mut theirs, &folder, rounds)?);
    }
    Ok(figures)
}

/// Both systems do one work, in turns.
pub(super) fn compare(
    work: &Work,
    ours: &mut Machine,
    theirs: &mut Machine,
    folder: &Path,
    rounds: usize,
) -> Result<Vec<Figure>> {
    let image = image_with(folder, work.made, work.small)?;
    let mut order = Vec::new();
    let mut phases: BTreeMap<String, Times> = BTreeMap::new();
    for round in 1..=rounds {
        tool::step(format_args!(
            "working on files of {}, round {round} of {rounds}",
            work.kind
        ));
        for (phase, amount, time) in measure(ours, work, &image, folder)? {
            if !phases.contains_key(&phase) {
                order.push(phase.clone());
            }
            let times = phases.entry(phase).or_default();
            times.amount = amount;
            times.own.push(time);
        }
        for (phase, _, time) in measure(theirs, work, &image, folder)? {
            phases.entry(phase).or_default().other.push(time);
        }
    }
    order
        .iter()
        .filter_map(|phase| {
            let times = phases.get_mut(phase)?;
            Some(match work.is_counted {
                true => counted(phase, times),
                false => figure(phase, times),
            })
        })
        .collect()
}

/// The image that every run starts from.
///
/// # Errors
/// If it cannot be made.
pub(super) fn image(folder: &Path) -> Result<PathBuf> {
    image_with(folder, &OPTIONS, 0)
}

pub(super) fn image_with(folder: &Path, options: &[&str], small: usize) -> Result<PathBuf> {
    let (root, image) = (folder.join("root"), folder.join("image.img"));
    fs::create_dir_all(&root)?;
    for name in [filework::SEQUENTIAL, filework::RANDOM] {
        fs::write(root.join(name), filework::content(name))?;
    }
    for number in 0..small {
        fs::create_dir_all(root.join("there"))?;
        let content = [b'a' + (number % 26) as u8; 1000];
        fs::write(root.join(format!("there/file{number}")), content)?;
    }
    disk::make_with(&root, &image, SIZE, options)?;
    fs::remove_dir_all(root)?;
    Ok(image)
}

/// The program that does the work on the peer.
pub(super) fn peer_program(project: &Project) -> Result<Vec<u8>> {
    let target = project.out.join("cargo-peer");
    let mut command = setup::toolchain()?.cargo(project);
    command.args(["build", "--quiet", "--release", "--package", "linux-files"]);
    command.args(["--target", TARGET]);
    command.env("CARGO_TARGET_DIR", &target);
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    tool::run(&mut command)?;
    Ok(fs::read(target.join(TARGET).join("release/linux-files"))?)
}

/// Has `machine` do the work on a copy of `image`.
fn measure(machine: &mut Machine, work: &Work, image: &Path, folder: &Path) -> Result<Phases> {
    let (times, _) = done(machine, work.phases, image, folder)?;
    Ok(times)
}

/// Has `machine` do work of so many phases on a copy of `image`: what it reports, and its log.
pub(super) fn done(
    machine: &mut Machine,
    phases: usize,
    image: &Path,
    folder: &Path,
) -> Result<(Phases, String)> {
    let copy = folder.join("copy.img");
    fs::copy(image, &copy)?;
    machine.disk = Some(copy.clone());
    let mut session = Session::start(machine, false)?;
    session.end(LIMIT)?;
    let times = parse(&session.screen());
    if times.len() != phases {
        bail!("the work was not done\n{}", session.report());
    }
    if let Some(complaints) = disk::complaints(&copy)? {
        bail!("the work has left a damaged disk:\n{complaints}");
    }
    Ok((times, session.guest.log()))
}

/// The lines `filebench "PHASE" AMOUNT NANOSECONDS` of a screen: phases, what they did, and
/// milliseconds.
fn parse(screen: &str) -> Phases {
    let time = |line: &str| {
        let (_, line) = line.split_once("filebench \"")?;
        let (phase, rest) = line.split_once("\" ")?;
        let (amount, nanoseconds) = rest.trim_end().split_once(' ')?;
        let nanoseconds: f64 = nanoseconds.parse().ok()?;
        Some((phase.to_string(), amount.parse().ok()?, nanoseconds / 1e6))
    };
    screen.lines().filter_map(time).collect()
}

/// Instructions for each of what a phase did.
fn counted(phase: &str, times: &Times) -> Result<Figure> {
    let each = |times: &[f64]| Some(times.first()? * 1e6);
    let (Some(own), Some(other)) = (each(&times.own), each(&times.other)) else {
        bail!("{phase}: only one of the systems did it");
    };
    let ratio = (own / other * 100.0).round() / 100.0;
    let name = match phase.ends_with("program") {
        true => phase.to_string(),
        false => format!("{phase}, one file"),
    };
    let figure = Figure::new("files", &name, ratio, None, "x the instructions");
    let [own, other] = [own, other].map(|all| (all / times.amount).round());
    let figure = figure.at_most(1.0).beside("instructions", own);
    Ok(figure.beside("Debian's", other))
}

fn figure(phase: &str, times: &mut Times) -> Result<Figure> {
    if times.own.is_empty() || times.other.is_empty() {
        bail!("{phase}: only one of the systems did it");
    }
    let (own, other) = (
        min_and_median(&mut times.own),
        min_and_median(&mut times.other),
    );
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    let ratio = (own.1 / other.1 * 100.0).round() / 100.0;
    let peers = [
        ("ms, minimum", own.0),
        ("ms, median", own.1),
        ("Debian's ms, minimum", other.0),
        ("Debian's ms, median", other.1),
    ];
    let least = (own.0 / other.0 * 100.0).round() / 100.0;
    let figure = Figure::new("files", phase, ratio, None, TIMED).at_most(1.0);
    let figure = figure.beside("ratio of minima", least);
    let beside = |figure: Figure, (name, value): (&str, f64)| figure.beside(name, tenth(value));
    Ok(peers.into_iter().fold(figure, beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_compared() {
        let screen = "hello\nfilebench \"random read, cold\" 8192 2500000\n$ filebench \"x\" 1\n";
        assert_eq!(
            parse(screen),
            [("random read, cold".to_string(), 8192.0, 2.5)]
        );
        let mut times = Times {
            amount: 2.0,
            own: vec![3.0, 1.0, 2.0],
            other: vec![4.0, 8.0, 2.0],
        };
        let figure = figure("x", &mut times).expect("both did it");
        assert_eq!((figure.best, figure.met), (0.5, Some(true)));
        assert_eq!(figure.peers[0], ("ratio of minima".into(), 0.5));
        assert_eq!(figure.peers[4], ("Debian's ms, median".into(), 4.0));
        let each = counted("x", &times).expect("both did it");
        assert_eq!((each.best, each.met), (0.5, Some(true)));
        assert_eq!(each.peers[1], ("Debian's".into(), 1_000_000.0));
    }
}
