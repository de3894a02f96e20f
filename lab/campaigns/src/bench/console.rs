//! `bench console`: how long `ls /` takes beside a job that takes all processor time, all memory it
//! can get and the log, on 1, 2 and 4 processors.
//!
//! By the clock: typed at the console, from the last key to the next prompt, the middle of many.
//! That has in it what the host does meanwhile, above all where it has fewer processors than the
//! machine.
//!
//! Counted (`-icount shift=0`): a script of many, timed inside. QEMU runs the processors in turns
//! then, and the instructions of all move the one clock. Idle the others do nothing, so the time is
//! that of the way from thread to thread. Beside the job each of N processors has work, and of the
//! clock an Nth part; so the time is divided by N. What is left out is the typed line.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use machine::disk;
use machine::qemu::Machine;
use machine::session::Session;
use trefoil_gate::build::{self, Built};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

use super::figure::{Figure, min_and_median};

const LIMIT: Duration = Duration::from_secs(600);
const PROCESSORS: [u32; 3] = [1, 2, 4];
/// How often it is typed.
const TYPED: usize = 61;
/// How often the script does it: the time is told in hundredths of a second.
const COUNTED: usize = 300;
/// How often the script is run in each state.
const TURNS: usize = 3;
/// So much longer it may take beside the job.
const GOAL: f64 = 3.0;
const SCRIPT: &str = "often.sh";

/// Measures both, on each number of processors.
///
/// # Errors
/// If the system does not boot, or something is not answered.
pub fn console(project: &Project, rounds: usize) -> Result<Vec<Figure>> {
    let folder = project.out.join("bench-console");
    fs::create_dir_all(&folder)?;
    let built = build::build(project, None)?;
    let image = image(&folder)?;
    let mut figures = Vec::new();
    for processors in PROCESSORS {
        tool::step(format_args!("counting on {processors} processors"));
        let (idle, beside) = counted(&start(&built, &image, &folder, processors, true)?)?;
        let parts = f64::from(processors);
        figures.push(figure(
            processors,
            "counted",
            &mut [beside / parts / idle],
            (idle, beside / parts),
        ));
    }
    for processors in PROCESSORS {
        let (mut ratios, mut last) = (Vec::new(), (0.0, 0.0));
        for round in 1..=rounds {
            tool::step(format_args!(
                "typing on {processors} processors, round {round} of {rounds}"
            ));
            last = typed(&start(&built, &image, &folder, processors, false)?)?;
            ratios.push(last.1 / last.0);
        }
        figures.push(figure(processors, "typed", &mut ratios, last));
    }
    Ok(figures)
}

fn figure(processors: u32, how: &str, ratios: &mut [f64], (idle, beside): (f64, f64)) -> Figure {
    let name = format!("ls / beside a job that takes everything, {how}");
    let (best, median) = min_and_median(ratios);
    let figure = Figure::new(
        &format!("{processors} cpu"),
        &name,
        best,
        Some(median),
        "times",
    );
    let figure = figure
        .beside("idle (ms)", idle)
        .beside("beside (ms)", beside);
    figure.at_most(GOAL)
}

/// A disk with the script.
fn image(folder: &Path) -> Result<PathBuf> {
    let (root, image) = (folder.join("root"), folder.join("image.img"));
    fs::create_dir_all(root.join("tmp"))?;
    fs::write(root.join(SCRIPT), "ls /\n".repeat(COUNTED))?;
    disk::make(&root, &image, "16M")?;
    fs::remove_dir_all(root)?;
    Ok(image)
}

fn start(
    built: &Built,
    image: &Path,
    folder: &Path,
    processors: u32,
    counted: bool,
) -> Result<Machine> {
    let copy = folder.join("copy.img");
    fs::copy(image, &copy)?;
    let mut machine = Machine::new(&built.kernel, folder);
    machine.archive = Some(built.archive.clone());
    machine.disk = Some(copy);
    machine.processors = processors;
    machine.count_instructions = counted;
    machine.words.push("panic=off".into());
    if counted {
        // Who waits for another processor gives it its turn.
        machine.words.push("relax=pause".into());
    }
    Ok(machine)
}

/// Starts the job in the background, and waits until it has all that it can get.
fn take_all(session: &mut Session) -> Result<()> {
    let start = session.printed();
    session.type_line(b"/boot/testing/hog &")?;
    session.wait_for(start, "hog: all taken", LIMIT)?;
    session.settle(Duration::from_millis(500));
    session.run("free", LIMIT).map(drop)
}

/// Milliseconds of one, idle and beside the job.
fn counted(machine: &Machine) -> Result<(f64, f64)> {
    let mut session = Session::start(machine, false)?;
    session.prompt(LIMIT)?;
    // The first time fills caches.
    once(&mut session)?;
    let idle = often(&mut session)?;
    take_all(&mut session)?;
    Ok((idle, often(&mut session)?))
}

fn often(session: &mut Session) -> Result<f64> {
    let times: Result<Vec<f64>> = (0..TURNS).map(|_| once(session)).collect();
    Ok(min_and_median(&mut times?).1)
}

fn once(session: &mut Session) -> Result<f64> {
    let line = format!("time sh /{SCRIPT} >/dev/null");
    let seconds = real(&session.run(&line, LIMIT)?).context("no time was told")?;
    ensure!(seconds > 0.0, "it took no time");
    Ok(seconds * 1000.0 / COUNTED as f64)
}

/// What `time` tells.
fn real(printed: &str) -> Option<f64> {
    let told = printed
        .lines()
        .find_map(|line| line.strip_prefix("real "))?;
    told.trim().parse().ok()
}

/// As [`counted`], typed and by the host's clock: the middle of all.
fn typed(machine: &Machine) -> Result<(f64, f64)> {
    let mut session = Session::start(machine, false)?;
    session.prompt(LIMIT)?;
    session.run("ls /", LIMIT)?;
    let idle = middle(&mut session)?;
    take_all(&mut session)?;
    Ok((idle, middle(&mut session)?))
}

fn middle(session: &mut Session) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..TYPED {
        let start = Instant::now();
        let listed = session.run("ls /", LIMIT)?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        ensure!(listed.contains(SCRIPT), "ls printed {listed:?}");
    }
    Ok(min_and_median(&mut times).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(real("x\nreal 0.85\nuser 0.10\n"), Some(0.85));
        assert_eq!(real("sh: not found\n"), None);
    }

    #[test]
    fn the_ratio_is_held_against_the_goal() {
        let met = |ratios: &mut [f64]| figure(4, "counted", ratios, (0.3, 0.6)).met;
        assert_eq!(
            (met(&mut [2.0, 2.9]), met(&mut [3.1])),
            (Some(true), Some(false))
        );
    }
}
