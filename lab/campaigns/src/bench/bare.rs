//! Calls, recovery and reclaim in the booted kernel, under `-icount shift=0`, where the clock
//! counts the guest's instructions exactly. The kernel prints lines `bench ID "NAME" VALUE UNIT` to
//! its log.

use std::time::Duration;

use anyhow::{Result, bail};

use super::figure::Figure;
use machine::log;
use machine::qemu::Machine;
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

const LIMIT: Duration = Duration::from_secs(180);

/// What the figures are held against. The goals are set in cycles and microseconds of a processor;
/// here they are taken as instructions, at four a cycle and 2.3 GHz, the machine that the published
/// trial ran on. The peers' figures are theirs, in cycles.
struct Goal {
    id: &'static str,
    instructions: f64,
    published: &'static [(&'static str, f64)],
}

const fn goal(
    id: &'static str,
    instructions: f64,
    published: &'static [(&'static str, f64)],
) -> Goal {
    Goal {
        id,
        instructions,
        published,
    }
}

const GOALS: [Goal; 7] = [
    // 12 cycles.
    goal(
        "P1",
        48.0,
        &[
            ("RedLeaf (cycles)", 124.0),
            ("seL4 (cycles)", 1421.0),
            ("VMFUNC (cycles)", 396.0),
        ],
    ),
    // 16 cycles.
    goal("P2", 64.0, &[("RedLeaf (cycles)", 141.0)]),
    // 25 cycles.
    goal("P3", 100.0, &[("RedLeaf (cycles)", 279.0)]),
    // 28 cycles.
    goal("P3r", 112.0, &[("RedLeaf (cycles)", 297.0)]),
    // 1 us.
    goal("P4", 9200.0, &[]),
    // 5 us.
    goal("P4r", 46_000.0, &[]),
    // 100 us.
    goal("P5", 920_000.0, &[]),
];

/// Which benchmark the figure `id` belongs to.
fn belongs_to(id: &str) -> &'static str {
    match id.as_bytes() {
        [b'P', b'4', ..] => "recovery",
        [b'P', b'5', ..] => "reclaim",
        _ => "calls",
    }
}

/// The figures of `names`, of which one boot measures all.
///
/// # Errors
/// If the kernel does not come to its end, or measures nothing.
pub fn figures(project: &Project, names: &[&str]) -> Result<Vec<Figure>> {
    let built = build::build_for_tests(project)?;
    tool::step("measuring in the booted kernel");
    let mut machine = Machine::new(&built.kernel, &project.out.join("bench-calls"));
    machine.archive = Some(built.archive);
    machine.count_instructions = true;
    machine
        .words
        .extend(["bench=calls".into(), "panic=off".into()]);
    let mut session = Session::start(&machine, false)?;
    session.end(LIMIT)?;
    let mut figures = judged(parse(&session.guest.log()));
    if figures.is_empty() {
        bail!("the kernel measured nothing\n{}", session.report());
    }
    figures.retain(|figure| names.contains(&belongs_to(&figure.id)));
    Ok(figures)
}

/// The lines `bench ID "NAME" VALUE UNIT` of a log.
fn parse(log: &str) -> Vec<Figure> {
    let figure = |line: &str| {
        let line = log::behind_time(line)?.strip_prefix("bench ")?;
        let (id, rest) = line.split_once(" \"")?;
        let (name, rest) = rest.split_once("\" ")?;
        let (value, unit) = rest.trim().split_once(' ')?;
        Some(Figure::new(id, name, value.parse().ok()?, None, unit))
    };
    log.lines().filter_map(figure).collect()
}

/// Joins each figure with its goal. The call without a proxy is a peer of all others.
fn judged(figures: Vec<Figure>) -> Vec<Figure> {
    let (bare, measured): (Vec<_>, Vec<_>) =
        figures.into_iter().partition(|figure| figure.id == "bare");
    let judge = |mut figure: Figure| {
        if let Some(goal) = GOALS.iter().find(|goal| goal.id == figure.id) {
            figure = figure.at_most(goal.instructions);
            for (name, value) in goal.published {
                figure = figure.beside(name, *value);
            }
        }
        let is_call = belongs_to(&figure.id) == "calls";
        match bare.first().filter(|_| is_call) {
            Some(bare) => figure.beside(&bare.name, bare.best),
            None => figure,
        }
    };
    measured.into_iter().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "[    0.1] bench bare \"bare dyn call\" 12 instructions\r\n[    0.1] bench P1 \"proxied null call\" 31 instructions\r\n[    0.2] bench x\r\n";

    #[test]
    fn figures_are_read_and_judged() {
        let figures = judged(parse(LOG));
        assert_eq!(figures.len(), 1);
        let first = &figures[0];
        assert_eq!(
            (first.id.as_str(), first.best, first.met),
            ("P1", 31.0, Some(true))
        );
        assert!(first.peers.contains(&("bare dyn call".into(), 12.0)));
        assert_eq!(first.json()["unit"], "instructions");
    }

    #[test]
    fn a_missed_goal_is_not_met_and_what_has_no_goal_has_none() {
        let figures = judged(parse(
            &LOG.replace(" 31 ", " 49 ").replace("bare \"", "P1x \""),
        ));
        let met: Vec<_> = figures
            .iter()
            .map(|figure| (figure.id.as_str(), figure.met))
            .collect();
        assert_eq!(met, [("P1x", None), ("P1", Some(false))]);
    }

    #[test]
    fn each_figure_belongs_to_a_benchmark() {
        assert_eq!(
            ["P1", "P3r", "P4r", "P5"].map(belongs_to),
            ["calls", "calls", "recovery", "reclaim"]
        );
    }
}
