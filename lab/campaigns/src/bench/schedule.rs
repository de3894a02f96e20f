//! `bench schedule`: threads that wake each other, send messages, give way and spin, beside
//! Debian's kernel.
//!
//! Both systems boot in the same machine, with one and with two processors, in turns, and do the
//! work of `lib/testing/threadwork`; the times are taken inside, by the system's own clock. What
//! spins beside something is a second program: on Trefoil a job of the shell, on Linux a control
//! group of its own, between which that kernel divides the processors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde_json::json;
use threadwork::{Part, parse_line};

use super::figure::{Figure, min_and_median};
use crate::peer::Peer;
use crate::{peer, plot};
use machine::qemu::Machine;
use machine::qemu::exec_word;
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, setup, tool};

const LIMIT: Duration = Duration::from_secs(600);
/// What the peer prints when it is done.
const END: &str = "threadwork-ended";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// For a thousand stacks, in two programs.
const MEMORY: &str = "1G";
const PROCESSORS: [u32; 2] = [1, 2];
/// Threads that spin beside those that are woken.
const BESIDE: [u32; 3] = [1, 10, 1000];
/// Threads of two programs that spin side by side.
const PAIRS: [(u32, u32); 3] = [(1, 1), (1, 10), (10, 1000)];
/// Unfairness of so many per cent is as good as none.
const FAIR: f64 = 1.0;

/// What can be measured without the rest: the parts of what a program does alone, waking beside
/// threads that spin, and what two programs get side by side.
const ROWS: [&str; 6] = [
    "waking", "messages", "yields", "fairness", "beside", "pairs",
];

/// What is known of a name.
#[derive(Default)]
struct Both {
    unit: String,
    own: Vec<f64>,
    other: Vec<f64>,
}

/// What is measured, and how.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Options {
    /// `schedule`: these rows alone
    #[arg(long, value_name = "ROWS", value_parser = ROWS)]
    only: Option<String>,
    /// `schedule`: on one processor whose clock counts instructions, so that other work of the host
    /// changes nothing
    #[arg(long)]
    icount: bool,
}

/// Measures all of [`ROWS`] or one of them, and writes a plot and a list of the rows.
///
/// # Errors
/// If one of the systems does not do the work.
pub fn schedule(project: &Project, rounds: usize, options: &Options) -> Result<Vec<Figure>> {
    let only = options.only.as_deref();
    let folder = project.out.join("bench-schedule");
    fs::create_dir_all(&folder)?;
    let manifest = folder.join("manifest.toml");
    let text = fs::read_to_string(project.root.join("images/default.toml"))?;
    fs::write(&manifest, with_threads(&text)?)?;
    let built = build::build(project, Some(&manifest))?;
    let mut ours = Machine::new(&built.kernel, &folder);
    ours.archive = Some(built.archive);
    let line = script("T=/boot/testing/threadbench", "; ", only);
    ours.words.extend([exec_word(&line), "panic=off".into()]);
    let debian = peer::debian(project)?;
    let mut theirs = Machine::new(&debian.kernel, &folder);
    theirs.archive = Some(peer_archive(project, &debian, &folder, only)?);
    let words = ["console=ttyS0", "quiet", "panic=-1", "tsc=reliable"];
    theirs.words = words.map(String::from).to_vec();
    (ours.count_instructions, theirs.count_instructions) = (options.icount, options.icount);
    let mut figures = Vec::new();
    // With several processors the counted time is that of all together, in turns.
    let numbers = PROCESSORS.iter().filter(|it| !options.icount || **it == 1);
    for &processors in numbers {
        let mut all = BTreeMap::new();
        for round in 1..=rounds {
            tool::step(format_args!(
                "scheduling on {processors} processors, round {round} of {rounds}"
            ));
            for (machine, is_own) in [(&mut ours, true), (&mut theirs, false)] {
                (machine.processors, machine.memory) = (processors, MEMORY.into());
                add(&mut all, measure(machine, only)?, is_own);
            }
        }
        for (name, mut both) in all {
            figures.push(figure(&name, processors, &mut both)?);
        }
    }
    write_rows(project, &figures)?;
    Ok(figures)
}

/// The manifest with room for a thousand threads in a program.
fn with_threads(text: &str) -> Result<String> {
    const RV6: &str = "[domain.rv6]\n";
    ensure!(text.contains(RV6), "the default manifest has no {RV6:?}");
    Ok(text.replacen(RV6, &format!("{RV6}options = \"threads 4000\"\n"), 1))
}

/// The lines for the peer's shell in front of the others. `$S` starts a program in a control group
/// of its own.
const GROUPS: &str = "T=/program S=/grouped
$bb mkdir /cg && $bb mount -t cgroup2 cgroup /cg && echo +cpu >/cg/cgroup.subtree_control
$bb cat >/grouped <<'end'
#!/bin/busybox sh
/bin/busybox mkdir /cg/$$ && echo $$ >/cg/$$/cgroup.procs && exec \"$@\"
end
$bb chmod 755 /grouped";

/// Whether rows are to be measured.
fn is_wanted(rows: &str, only: Option<&str>) -> bool {
    only.is_none_or(|only| only == rows)
}

/// The lines for either shell, with `between` in between. `$T` is the program, `$S` starts one in a
/// group.
fn script(settings: &str, between: &str, only: Option<&str>) -> String {
    let mut lines = vec![settings.to_string()];
    match only {
        None => lines.push("$T alone".into()),
        Some(part) if Part::named(part).is_some() => lines.push(format!("$T alone {part}")),
        Some(_) => {}
    }
    if is_wanted("beside", only) {
        lines.push(beside());
    }
    if is_wanted("pairs", only) {
        lines.extend(PAIRS.map(pair));
    }
    lines.join(between)
}

/// The line that wakes threads beside others that spin.
fn beside() -> String {
    let counts = BESIDE.map(|count| count.to_string()).join(" ");
    format!(
        "for n in {counts}; do A=$($T soon 4); $S $T spin hog $n $A 90000 & $S $T beside $n $A; kill $!; wait; done"
    )
}

/// The line in which two programs spin side by side.
fn pair((left, right): (u32, u32)) -> String {
    format!(
        "A=$($T soon 4); $S $T spin {left}:{right}a {left} $A 2000 & \
         $S $T spin {left}:{right}b {right} $A 2000 & wait"
    )
}

/// How many figures there are.
fn expected(only: Option<&str>) -> usize {
    let parts = Part::ALL
        .into_iter()
        .filter(|it| is_wanted(it.name(), only));
    let count = |rows, count| if is_wanted(rows, only) { count } else { 0 };
    parts.map(Part::lines).sum::<usize>()
        + count("beside", 2 * BESIDE.len())
        + count("pairs", PAIRS.len())
}

/// The peer's initial disk with the program that does the work.
fn peer_archive(
    project: &Project,
    peer: &Peer,
    folder: &Path,
    only: Option<&str>,
) -> Result<PathBuf> {
    let target = project.out.join("cargo-peer");
    let mut command = setup::toolchain()?.cargo(project);
    command.args(["build", "--quiet", "--release", "--package"]);
    command.args(["linux-threads", "--target", TARGET]);
    command.env("CARGO_TARGET_DIR", &target);
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    tool::run(&mut command)?;
    let program = fs::read(target.join(TARGET).join("release/linux-threads"))?;
    let archive = folder.join("peer.cpio");
    let script = script(GROUPS, "\n", only);
    fs::write(&archive, peer.script_with(&program, &script, END)?)?;
    Ok(archive)
}

/// Has `machine` do the work: unit, name, value.
fn measure(machine: &Machine, only: Option<&str>) -> Result<Vec<(String, String, f64)>> {
    let mut session = Session::start(machine, false)?;
    session.end(LIMIT)?;
    let values = parse(&session.screen())?;
    let expected = expected(only);
    ensure!(
        values.len() == expected,
        "{} figures in place of {expected}\n{}",
        values.len(),
        session.report()
    );
    Ok(values)
}

/// The figures on a screen. What two programs have done side by side becomes their unfairness.
fn parse(screen: &str) -> Result<Vec<(String, String, f64)>> {
    let (mut values, mut work) = (Vec::new(), BTreeMap::new());
    for line in screen.lines() {
        if line.contains("came too late") {
            bail!("the machine was too slow for its own plan:\n{screen}");
        }
        match parse_line(line) {
            Some(("count", name, value)) => drop(work.insert(name.to_string(), value)),
            Some((unit, name, value)) => values.push((unit.into(), name.into(), value)),
            None => {}
        }
    }
    for (left, right) in PAIRS {
        let done = |side| work.get(&format!("work of {left}:{right}{side}"));
        if let (Some(first), Some(second)) = (done("a"), done("b")) {
            let off = (first - second).abs() / (first + second).max(1.0);
            let name = format!("unfairness between programs of {left} and {right} threads");
            values.push(("ppm".into(), name, off * 1e6));
        }
    }
    Ok(values)
}

fn add(all: &mut BTreeMap<String, Both>, values: Vec<(String, String, f64)>, is_own: bool) {
    for (unit, name, value) in values {
        let both = all.entry(name).or_default();
        both.unit = unit;
        match is_own {
            true => both.own.push(value),
            false => both.other.push(value),
        }
    }
}

/// The ratio of two medians; of two that are nothing, 1.
fn ratio(own: f64, other: f64) -> f64 {
    match other > 0.0 {
        true => (own / other * 100.0).round() / 100.0,
        false if own > 0.0 => 1e6,
        false => 1.0,
    }
}

/// A time as its ratio to the peer's; unfairness as it is, since a ratio of two that are next to
/// nothing says nothing.
fn figure(name: &str, processors: u32, both: &mut Both) -> Result<Figure> {
    if both.own.is_empty() || both.other.is_empty() {
        bail!("{name}: only one of the systems did it");
    }
    let (own, other) = (
        min_and_median(&mut both.own),
        min_and_median(&mut both.other),
    );
    let (unit, scale) = match both.unit.as_str() {
        "ppm" => ("%", 1e4),
        _ => ("us", 1e3),
    };
    let shown = |value: f64| (value / scale * 100.0).round() / 100.0;
    let id = format!("sched{processors}");
    let figure = match unit {
        "%" => Figure::new(&id, name, shown(own.1), None, unit).at_most(shown(other.1).max(FAIR)),
        _ => Figure::new(&id, name, ratio(own.1, other.1), None, "x the time").at_most(1.0),
    };
    let peers = [
        ("ratio of medians", ratio(own.1, other.1)),
        ("ratio of minima", ratio(own.0, other.0)),
        ("median", shown(own.1)),
        ("minimum", shown(own.0)),
        ("Debian's median", shown(other.1)),
        ("Debian's minimum", shown(other.0)),
    ];
    let beside = |figure: Figure, (name, value): (&str, f64)| figure.beside(name, value);
    Ok(peers.into_iter().fold(figure, beside))
}

/// A row for each figure: name, value, the peer's, their ratio; and a plot of the ratios of times.
fn write_rows(project: &Project, figures: &[Figure]) -> Result<()> {
    let of = |figure: &Figure, name: &str| {
        let found = figure.peers.iter().find(|(peer, _)| peer == name);
        found.map(|(_, value)| *value)
    };
    let row = |figure: &Figure| {
        json!({
            "name": figure.name, "processors": figure.id.trim_start_matches("sched"),
            "unit": if figure.unit == "%" { "%" } else { "us" },
            "value": of(figure, "median"), "peer": of(figure, "Debian's median"),
            "ratio": of(figure, "ratio of medians"), "least": of(figure, "minimum"),
            "peer_least": of(figure, "Debian's minimum"), "met": figure.met,
        })
    };
    let rows: Vec<_> = figures.iter().map(row).collect();
    let rows = format!("{:#}\n", json!(rows));
    fs::write(project.out.join("bench-schedule.json"), rows)?;
    let times = figures.iter().filter(|figure| figure.unit != "%");
    let bars: Vec<_> = times
        .map(|figure| (format!("{} ({})", figure.name, figure.id), figure.best))
        .collect();
    let title = "Time for what threads do, Debian's kernel = 1 (less is better)";
    let plot = project.out.join("bench-schedule.svg");
    fs::write(plot, plot::bars(title, &bars, 1.0))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shells_get_the_same_lines() {
        let ours = script("T=/boot/testing/threadbench", "; ", None);
        assert!(ours.contains("for n in 1 10 1000; do"), "{ours}");
        assert!(ours.contains("spin 1:10b 10 $A 2000 & wait"), "{ours}");
        assert!(exec_word(&ours).len() < 1900, "{}", ours.len());
        assert_eq!(ours.matches("$S $T").count(), 2 + 2 * PAIRS.len());
    }

    #[test]
    fn one_kind_of_rows_can_be_had_alone() {
        let of = |only| script("T=x", "; ", Some(only));
        assert_eq!(of("fairness"), "T=x; $T alone fairness");
        assert!(of("beside").starts_with("T=x; for n in 1 10 1000; do"));
        assert_eq!(of("pairs").matches("spin").count(), 2 * PAIRS.len());
        assert_eq!(expected(Some("fairness")), 2);
        let each: usize = ROWS.iter().map(|rows| expected(Some(rows))).sum();
        assert_eq!(each, expected(None));
    }

    #[test]
    fn programs_side_by_side_are_compared() {
        let screen = "hello\nthreadbench ns \"yield of 1 thread\" 250\n\
                      threadbench count \"work of 1:10b\" 300\nthreadbench count \"work of 1:10a\" 100\n";
        let values = parse(screen).expect("nobody was late");
        assert_eq!(values[0], ("ns".into(), "yield of 1 thread".into(), 250.0));
        assert!(values[1].1.contains("1 and 10") && values[1].2 == 500_000.0);
        assert!(parse("threadbench came too late\n").is_err());
    }

    #[test]
    fn times_are_judged_by_their_ratio_and_unfairness_by_itself() {
        let mut both = Both {
            unit: "ns".into(),
            own: vec![3000.0, 1000.0, 2000.0],
            other: vec![4000.0, 8000.0, 2000.0],
        };
        let time = figure("x", 2, &mut both).expect("both did it");
        assert_eq!(
            (time.best, time.met, time.id.as_str()),
            (0.5, Some(true), "sched2")
        );
        both.unit = "ppm".into();
        both.own = vec![12_000.0];
        let unfair = figure("y", 1, &mut both).expect("both did it");
        assert_eq!((unfair.best, unfair.met), (1.2, Some(false)));
        let only = Both::default();
        assert!(figure("z", 1, &mut { only }).is_err());
    }
}
