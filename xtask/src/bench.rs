//! `cargo xtask bench`: measures, and shows each figure beside its goal and what others have.
//!
//! - `calls` (P1 to P3): the kernel runs its loops under `-icount shift=0`, where the clock counts
//!   the guest's instructions exactly, and prints lines `bench ID "NAME" VALUE UNIT` to its log.
//! - `boot` (P14): the time from the start of QEMU to the prompt, in turns with Debian's kernel
//!   booting to a busybox shell in the same machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::project::Project;
use crate::qemu::Machine;
use crate::session::Session;
use crate::{build, disk, peer, setup, tool};

/// What to measure.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// `calls`, `boot`; all if none is named
    pub names: Vec<String>,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
    /// `bare` (the booted kernel) or `hosted` (a Linux process: `calls`, `recovery`, `reclaim`)
    #[arg(long, default_value = "bare", value_parser = ["bare", "hosted"])]
    pub platform: String,
    /// How often to boot each system
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub rounds: usize,
}

/// One measured value.
#[derive(Clone, Debug, Default, PartialEq)]
struct Figure {
    id: String,
    name: String,
    value: f64,
    unit: String,
    goal: String,
    peers: BTreeMap<String, f64>,
    met: bool,
}

const LIMIT: Duration = Duration::from_secs(180);
const KNOWN: [&str; 2] = ["calls", "boot"];

/// The command.
///
/// # Errors
/// If something cannot be measured. A missed goal is no error.
pub fn bench(project: &Project, options: &Options) -> Result<()> {
    if let Some(unknown) = options
        .names
        .iter()
        .find(|name| !KNOWN.contains(&name.as_str()))
    {
        bail!(
            "there is no benchmark `{unknown}`; there are {}",
            KNOWN.join(" and ")
        );
    }
    setup::machine()?;
    let is_wanted =
        |name: &str| options.names.is_empty() || options.names.iter().any(|wanted| wanted == name);
    let mut figures = Vec::new();
    if is_wanted("calls") {
        figures.extend(calls(project)?);
    }
    if is_wanted("boot") {
        figures.extend(boot(project, options.rounds.max(1))?);
    }
    let json = Value::from(figures.iter().map(as_json).collect::<Vec<_>>());
    tool::print(&if options.json {
        format!("{json:#}\n")
    } else {
        table(&figures)
    });
    Ok(())
}

fn as_json(figure: &Figure) -> Value {
    let Figure {
        id,
        name,
        value,
        unit,
        goal,
        peers,
        met,
    } = figure;
    json!({ "id": id, "name": name, "value": value, "unit": unit, "goal": goal, "peers": peers, "met": met })
}

fn table(figures: &[Figure]) -> String {
    let mut text = format!(
        "{:<5} {:<48} {:>9} {:<13} {:<40} met  peers\n",
        "id", "what", "value", "unit", "goal"
    );
    for figure in figures {
        let Figure {
            id,
            name,
            value,
            unit,
            goal,
            peers,
            met,
        } = figure;
        let peers: Vec<_> = peers
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let met = if goal.is_empty() {
            ""
        } else if *met {
            "yes"
        } else {
            "no"
        };
        text += &format!(
            "{id:<5} {name:<48} {value:>9} {unit:<13} {goal:<40} {met:<4} {}\n",
            peers.join("; ")
        );
    }
    text
}

/// What the figures of `calls` are held against. The goals are set in cycles and microseconds of a
/// processor; here they are taken as instructions, at four a cycle and 2.3 GHz, the machine that
/// the published trial ran on. The peers' figures are theirs, in their own unit.
struct Goal {
    id: &'static str,
    text: &'static str,
    instructions: f64,
    published: &'static [(&'static str, f64)],
}

const fn goal(
    id: &'static str,
    text: &'static str,
    instructions: f64,
    published: &'static [(&'static str, f64)],
) -> Goal {
    Goal {
        id,
        text,
        instructions,
        published,
    }
}

const GOALS: [Goal; 7] = [
    goal(
        "P1",
        "<= 12 cycles, taken as 48 instructions",
        48.0,
        &[
            ("RedLeaf (cycles)", 124.0),
            ("seL4 (cycles)", 1421.0),
            ("VMFUNC (cycles)", 396.0),
        ],
    ),
    goal(
        "P2",
        "<= 16 cycles, taken as 64 instructions",
        64.0,
        &[("RedLeaf (cycles)", 141.0)],
    ),
    goal(
        "P3",
        "<= 25 cycles, taken as 100 instructions",
        100.0,
        &[("RedLeaf (cycles)", 279.0)],
    ),
    goal(
        "P3r",
        "<= 28 cycles, taken as 112 instructions",
        112.0,
        &[("RedLeaf (cycles)", 297.0)],
    ),
    goal("P4", "<= 1 us, taken as 9,200 instructions", 9200.0, &[]),
    goal(
        "P4r",
        "<= 5 us, taken as 46,000 instructions",
        46_000.0,
        &[],
    ),
    goal(
        "P5",
        "<= 100 us, taken as 920,000 instructions",
        920_000.0,
        &[],
    ),
];

fn calls(project: &Project) -> Result<Vec<Figure>> {
    let built = build::build_for_tests(project)?;
    tool::step("measuring calls");
    let mut machine = Machine::new(&built.kernel, &project.out.join("bench-calls"));
    machine.archive = Some(built.archive);
    machine.count_instructions = true;
    machine
        .words
        .extend(["bench=calls".into(), "panic=off".into()]);
    let mut session = Session::start(&machine, false)?;
    session.end(LIMIT)?;
    let figures = parse(&session.guest.log());
    if figures.is_empty() {
        bail!("the kernel measured nothing\n{}", session.report());
    }
    Ok(judged(figures))
}

/// The lines `bench ID "NAME" VALUE UNIT` of a log.
fn parse(log: &str) -> Vec<Figure> {
    let figure = |line: &str| {
        let (_, line) = line.split_once("] bench ")?;
        let (id, rest) = line.split_once(" \"")?;
        let (name, rest) = rest.split_once("\" ")?;
        let (value, unit) = rest.trim().split_once(' ')?;
        let (id, name, unit) = (id.to_string(), name.to_string(), unit.to_string());
        Some(Figure {
            id,
            name,
            value: value.parse().ok()?,
            unit,
            ..Figure::default()
        })
    };
    log.lines().filter_map(figure).collect()
}

/// Joins each figure with its goal. The call without a proxy is a peer of all others.
fn judged(figures: Vec<Figure>) -> Vec<Figure> {
    let (bare, mut measured): (Vec<_>, Vec<_>) =
        figures.into_iter().partition(|figure| figure.id == "bare");
    for figure in &mut measured {
        if let Some(goal) = GOALS.iter().find(|goal| goal.id == figure.id) {
            figure.goal = goal.text.into();
            figure.met = figure.value <= goal.instructions;
            figure.peers.extend(
                goal.published
                    .iter()
                    .map(|(name, value)| (name.to_string(), *value)),
            );
        }
        if figure.id.starts_with(['P']) && figure.unit == "instructions" && figure.value < 10_000.0
        {
            figure
                .peers
                .extend(bare.iter().map(|bare| (bare.name.clone(), bare.value)));
        }
    }
    measured
}

fn boot(project: &Project, rounds: usize) -> Result<Vec<Figure>> {
    let built = build::build(project, None)?;
    let debian = peer::debian(project)?;
    let disk = disk::default(project)?;
    let mut ours = Machine::new(&built.kernel, &project.out.join("bench-boot"));
    (ours.archive, ours.disk, ours.read_only) = (Some(built.archive), Some(disk), true);
    ours.words.push("ro".into());
    let mut theirs = Machine::new(&debian.kernel, &project.out.join("bench-boot-debian"));
    theirs.archive = Some(debian.archive);
    theirs.words = vec!["console=ttyS0".into(), "quiet".into()];
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        tool::step(format_args!("booting, round {round} of {rounds}"));
        own.push(time_to(&ours, crate::session::PROMPT)?);
        other.push(time_to(&theirs, peer::PROMPT)?);
    }
    Ok(boot_figures(&mut own, &mut other))
}

/// Milliseconds from the start of QEMU until `prompt` is printed.
fn time_to(machine: &Machine, prompt: &str) -> Result<f64> {
    let start = Instant::now();
    let mut session = Session::start(machine, false)?;
    session.wait_for(0, prompt, LIMIT)?;
    Ok((start.elapsed().as_secs_f64() * 10_000.0).round() / 10.0)
}

fn boot_figures(own: &mut [f64], other: &mut [f64]) -> Vec<Figure> {
    let (own, other) = (min_and_median(own), min_and_median(other));
    let figure = |what: &str, value: f64, unit: &str, goal: &str, met: bool, peer: f64| Figure {
        id: "P14".into(),
        name: format!("boot to the prompt, {what}"),
        value,
        unit: unit.into(),
        goal: goal.into(),
        peers: BTreeMap::from([("Debian's kernel to a busybox shell (ms)".into(), peer)]),
        met,
    };
    let ratio = (other.1 / own.1 * 10.0).round() / 10.0;
    vec![
        figure("minimum", own.0, "ms", "<= 100 ms", own.0 <= 100.0, other.0),
        figure("median", own.1, "ms", "<= 100 ms", own.1 <= 100.0, other.1),
        figure(
            "times faster",
            ratio,
            "x",
            ">= 20 x",
            ratio >= 20.0,
            other.1,
        ),
    ]
}

/// The least and the middle of `values`, which must not be empty.
fn min_and_median(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "[    0.1] bench bare \"bare dyn call\" 12 instructions\r\n[    0.1] bench P1 \"proxied null call\" 31 instructions\r\n[    0.2] bench x\r\n";

    #[test]
    fn figures_are_read_and_judged() {
        let figures = judged(parse(LOG));
        assert_eq!(figures.len(), 1);
        assert_eq!(
            (figures[0].id.as_str(), figures[0].value, figures[0].met),
            ("P1", 31.0, true)
        );
        assert_eq!(figures[0].peers["bare dyn call"], 12.0);
        assert_eq!(as_json(&figures[0])["unit"], "instructions");
    }

    #[test]
    fn a_missed_goal_is_not_met_and_what_has_no_goal_has_none() {
        let figures = judged(parse(
            &LOG.replace(" 31 ", " 49 ").replace("bare \"", "P1x \""),
        ));
        let met: Vec<_> = figures
            .iter()
            .map(|figure| (figure.id.as_str(), figure.met, figure.goal.is_empty()))
            .collect();
        assert_eq!(met, [("P1x", false, true), ("P1", false, false)]);
    }

    #[test]
    fn boots_are_compared_by_the_median() {
        let figures = boot_figures(&mut [90.0, 120.0, 95.0], &mut [2000.0, 1900.0, 2100.0]);
        let values: Vec<_> = figures.iter().map(|figure| figure.value).collect();
        assert_eq!(values, [90.0, 95.0, 21.1]);
        assert!(figures.iter().all(|figure| figure.met));
    }
}
