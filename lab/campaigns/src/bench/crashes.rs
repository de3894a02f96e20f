//! `bench crashes` (P6): how much passes through a file while the block driver crashes, as in
//! figure 11 of the RedLeaf paper.
//!
//! The page cache is made so small that what is read comes from the device. The same program reads
//! or writes, without crashes, with one in each second and with ten, for the curves; it checks what
//! it reads. For the loss it has crashes in every other second, and each such second is held
//! against the one before it: so other work of the host does little harm.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};

mod counted;

use super::figure::{Figure, min_and_median};
use super::files::image;
use super::side::write_rows;
use crate::plot::{self, Curve};
use machine::disk;
use machine::manifests;
use machine::qemu::Machine;
use machine::qemu::exec_word;
use machine::session::Session;
use trefoil_gate::build::{self, Built};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

const LIMIT: Duration = Duration::from_secs(300);
const SECONDS: u64 = 10;
/// Of a run in which seconds with and without crashes take turns.
const PAIRED_SECONDS: u64 = 30;
/// How many bins a second has.
const BINS: usize = 20;
/// Crashes in a second.
const RATES: [u64; 3] = [0, 1, 10];
/// Seconds for which the program adds bytes up.
const BIN: f64 = 0.05;
/// What is read or written, the share that may be lost, and RedLeaf's.
const WORK: [(&str, f64, f64); 2] = [("read", 1.0, 5.0), ("write", 3.0, 16.0)];

/// What passed in one run.
struct Flow {
    crashes: u64,
    bins: Vec<f64>,
}

impl Flow {
    /// Bytes in each second.
    fn seconds(&self) -> Vec<f64> {
        let seconds = self.bins.chunks_exact(BINS);
        seconds.map(|bins| bins.iter().sum()).collect()
    }

    fn curve(&self, name: String) -> Curve {
        let points = self.bins.iter().zip(0..);
        let points = points.map(|(bytes, n)| (f64::from(n) * BIN, bytes / BIN / 1e6));
        (name, points.collect())
    }
}

/// Measures, and writes a plot for reading and one for writing.
///
/// # Errors
/// If the work is not done, or what is read is wrong.
pub fn crashes(project: &Project, rounds: usize) -> Result<Vec<Figure>> {
    let (built, image, folder) = prepared(project)?;
    let mut figures = counted::counted(&built, &image, &folder)?;
    for (work, goal, published) in WORK {
        let mut curves = Vec::new();
        for rate in RATES {
            tool::step(format_args!("{work} with {rate} crashes a second"));
            let flow = measure(
                &built,
                &image,
                &folder,
                &Run {
                    work,
                    rate,
                    paired: false,
                },
            )?;
            curves.push(flow.curve(format!("{rate} crashes a second")));
        }
        let title = format!("{work} of a file while the block driver crashes");
        let plot = project.out.join(format!("bench-crashes-{work}.svg"));
        fs::write(plot, plot::curves(&title, "s", "MB/s", &curves))?;
        for rate in &RATES[1..] {
            let mut flows = Vec::new();
            for round in 1..=rounds {
                tool::step(format_args!(
                    "{work} with and without crashes, round {round} of {rounds}"
                ));
                let run = Run {
                    work,
                    rate: *rate,
                    paired: true,
                };
                flows.push(measure(&built, &image, &folder, &run)?);
            }
            figures.push(judged(work, *rate, (goal, published), &flows)?);
        }
    }
    write_rows(project, "crashes", &figures)?;
    Ok(figures)
}

/// Counts what is counted, and writes a list of the rows.
///
/// # Errors
/// As for [`crashes`].
pub fn restarts(project: &Project) -> Result<Vec<Figure>> {
    let (built, image, folder) = prepared(project)?;
    let figures = counted::counted(&built, &image, &folder)?;
    write_rows(project, "restarts", &figures)?;
    Ok(figures)
}

/// The system, the disk that every run starts from, and where all is.
fn prepared(project: &Project) -> Result<(Built, PathBuf, PathBuf)> {
    let folder = project.out.join("bench-crashes");
    fs::create_dir_all(&folder)?;
    let manifest = folder.join("manifest.toml");
    let text = fs::read_to_string(project.root.join("images/default.toml"))?;
    fs::write(&manifest, with_crashes(&text)?)?;
    let built = build::build(project, Some(&manifest))?;
    let image = image(&folder)?;
    Ok((built, image, folder))
}

/// The manifest with room for crashes, next to no page cache, and the program's right to make
/// crashes.
fn with_crashes(text: &str) -> Result<String> {
    const CACHE: &str = "cache=40%";
    ensure!(
        text.contains(CACHE),
        "the default manifest has no `{CACHE}`"
    );
    let text = text.replacen(CACHE, "cache=1M", 1);
    let text = manifests::with_limits(&text, &["virtio-blk"], "restarts = 100000, window_s = 10")?;
    Ok(text + "\n[program.filebench]\nservices = [\"monitor\", \"control\"]\n")
}

/// One run of the program.
struct Run {
    work: &'static str,
    rate: u64,
    /// Seconds with and without crashes take turns.
    paired: bool,
}

fn measure(built: &Built, image: &Path, folder: &Path, run: &Run) -> Result<Flow> {
    let Run { work, rate, paired } = *run;
    let (seconds, flag, part) = match paired {
        true => (PAIRED_SECONDS, "-a", 2),
        false => (SECONDS, "", 1),
    };
    let line = format!("{flag} -f {work} -s {seconds} -c {rate}");
    let flow = done((built, image, folder), &line, |_| (), parse)?;
    ensure!(
        flow.crashes >= rate * seconds / part * 2 / 3,
        "{} crashes were made of {}",
        flow.crashes,
        rate * seconds / part
    );
    Ok(flow)
}

/// Has the program do what `line` says on a copy of the image, in a machine that `change` has seen
/// before: what `parse` finds on its screen.
fn done<T>(
    (built, image, folder): (&Built, &Path, &Path),
    line: &str,
    change: impl FnOnce(&mut Machine),
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T> {
    let copy = folder.join("copy.img");
    fs::copy(image, &copy)?;
    let mut machine = Machine::new(&built.kernel, folder);
    machine.archive = Some(built.archive.clone());
    machine.disk = Some(copy.clone());
    change(&mut machine);
    let line = format!("/boot/testing/filebench {line} -d virtio-blk");
    machine.words.push(exec_word(&line));
    let mut session = Session::start(&machine, false)?;
    session.end(LIMIT)?;
    let Some(found) = parse(&session.screen()) else {
        bail!("the work was not done\n{}", session.report());
    };
    if let Some(complaints) = disk::complaints(&copy)? {
        bail!("the work has left a damaged disk:\n{complaints}");
    }
    Ok(found)
}

/// The line `flow CRASHES BYTES BYTES ...` of a screen.
fn parse(screen: &str) -> Option<Flow> {
    let mut words = screen
        .lines()
        .find_map(|line| line.strip_prefix("flow "))?
        .split_whitespace();
    let crashes = words.next()?.parse().ok()?;
    let bins: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
    bins.filter(|bins| !bins.is_empty())
        .map(|bins| Flow { crashes, bins })
}

/// The loss in seconds with crashes against the seconds before them: the median of all pairs.
fn judged(work: &str, rate: u64, (goal, published): (f64, f64), flows: &[Flow]) -> Result<Figure> {
    let seconds = flows.iter().map(Flow::seconds);
    let pairs: Vec<_> = seconds
        .flat_map(|seconds| {
            let pairs = seconds.chunks_exact(2).map(|pair| (pair[0], pair[1]));
            pairs.collect::<Vec<_>>()
        })
        .filter(|(without, _)| *without > 0.0)
        .collect();
    ensure!(!pairs.is_empty(), "nothing passed without crashes");
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    let mut losses: Vec<_> = pairs
        .iter()
        .map(|(without, with)| 100.0 * (1.0 - with / without))
        .collect();
    let mut rates: Vec<_> = pairs.iter().map(|(without, _)| without / 1e6).collect();
    let (sum, sum_with) = pairs
        .iter()
        .fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let loss = tenth(min_and_median(&mut losses).1);
    let peers = [
        ("RedLeaf, one a second (%)", published),
        (
            "MB/s without crashes, median",
            tenth(min_and_median(&mut rates).1),
        ),
        (
            "loss of the sums (%)",
            tenth(100.0 * (1.0 - sum_with / sum)),
        ),
        ("pairs of seconds", pairs.len() as f64),
    ];
    let name = format!("{work} of a file, lost at {rate} crashes a second");
    let figure = Figure::new("P6f", &name, loss, None, "%").at_most(goal);
    let beside = |figure: Figure, (name, value): (&str, f64)| figure.beside(name, value);
    Ok(peers.into_iter().fold(figure, beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_manifest_can_be_changed() {
        let text = include_str!("../../../../images/default.toml");
        let text = with_crashes(text).expect("it has what is changed");
        assert!(text.contains("restarts = 100000") && text.contains("cache=1M"));
        assert!(with_crashes("[boot]").is_err());
    }

    #[test]
    fn losses_are_computed_from_the_lines() {
        let second = |bytes: &str| vec![bytes; BINS].join(" ");
        let line = |with: &str| format!("x\nflow 2 {} {}\n", second("100"), second(with));
        let flow = |with: &str| parse(&line(with)).expect("a line");
        let flows = [flow("99"), flow("90"), flow("98")];
        let figure = judged("read", 1, (1.0, 5.0), &flows).expect("pairs");
        assert_eq!((figure.best, figure.met), (2.0, Some(false)));
        assert_eq!(figure.peers[3], ("pairs of seconds".into(), 3.0));
        assert!(judged("read", 1, (2.0, 5.0), &flows).is_ok_and(|it| it.met == Some(true)));
        assert!(judged("read", 1, (2.0, 5.0), &[]).is_err());
        assert!(parse("flow 1").is_none() && parse("flow 1 x").is_none());
    }
}
