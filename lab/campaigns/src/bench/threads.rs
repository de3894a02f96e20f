//! `bench threads`: ten thousand threads that each wait for a time, and a thousand that leave who
//! dies, beside a domain whose beats are timed. The isolation tests' director does it and tells the
//! figures in its log (`domains/testing/prober`, `sleepers`).
//!
//! By the clock on 1 and 4 processors, and in guest instructions on as many (`-icount shift=0`),
//! where a nanosecond is one. Four processors take turns then: whichever runs has the clock of all
//! go on, so what they do at once counts as if it were done one after the other, and one that has
//! work waits for the turns of the others. What another machine does to the host does not count.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use machine::qemu::Machine;
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

use super::figure::Figure;

const LIMIT: Duration = Duration::from_secs(600);
/// The tests whose log has figures, with a seed that has each death be measured several times.
const WORDS: [&str; 3] = [
    "root=domains/prober",
    "options=by-the-thousand@1",
    "panic=off",
];

/// Measures all.
///
/// # Errors
/// If one of the tests fails.
pub fn threads(project: &Project) -> Result<Vec<Figure>> {
    let folder = project.out.join("bench-threads");
    fs::create_dir_all(&folder)?;
    let built = build::build_for_tests(project)?;
    let mut figures = Vec::new();
    for (processors, counted) in [(1, false), (4, false), (1, true), (4, true)] {
        let ruler = if counted { "instructions" } else { "time" };
        tool::step(format_args!(
            "ten thousand threads on {processors} processors, by {ruler}"
        ));
        let mut machine = Machine::new(&built.kernel, &folder);
        machine.archive = Some(built.archive.clone());
        machine.memory = "1G".into();
        machine.processors = processors;
        machine.count_instructions = counted;
        machine.words.extend(WORDS.map(String::from));
        if counted {
            // Who waits for another processor gives it its turn.
            machine.words.push("relax=pause".into());
        }
        let mut session = Session::start(&machine, false)?;
        session.end(LIMIT)?;
        let log = session.guest.log();
        let more = parse(&log, processors, counted);
        let is_whole = log.contains(" passed, 0 failed") && !more.is_empty();
        ensure!(is_whole, "a test failed\n{}", session.report());
        figures.extend(more);
    }
    Ok(figures)
}

/// The lines `measured UNIT "NAME" VALUE` of a log. A time is one of instructions where those are
/// the clock.
fn parse(log: &str, processors: u32, counted: bool) -> Vec<Figure> {
    let id = match counted {
        true => format!("{processors} cpu, counted"),
        false => format!("{processors} cpu"),
    };
    let figure = |line: &str| {
        let (_, rest) = line.split_once(": measured ")?;
        let (unit, rest) = rest.split_once(" \"")?;
        let (name, value) = rest.split_once("\" ")?;
        let unit = match unit {
            "ns" if counted => "instructions",
            _ => unit,
        };
        Some(Figure::new(
            &id,
            name,
            value.trim().parse().ok()?,
            None,
            unit,
        ))
    };
    let mut all: Vec<Figure> = Vec::new();
    for figure in log.lines().filter_map(figure) {
        // What was done again, because something was allocated for good, is told again.
        all.retain(|other| other.name != figure.name);
        all.push(figure);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_log() {
        let log = "[ 0.9] prober: measured ns \"late by, p50\" 12\r\n\
            [ 1.0] prober: measured ns \"late by, p50\" 4711\r\n\
            [ 1.1] prober: measured bytes \"memory for each\" 53000\r\n[ 1.2] prober: 6 passed\r\n";
        let figures = parse(log, 4, false);
        let read: Vec<_> = figures
            .iter()
            .map(|figure| (figure.name.as_str(), figure.best, figure.unit.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                ("late by, p50", 4711.0, "ns"),
                ("memory for each", 53000.0, "bytes")
            ]
        );
        assert_eq!(figures[0].id, "4 cpu");
        let counted = parse(log, 1, true);
        assert_eq!(counted[0].unit, "instructions");
        assert_eq!(counted[1].unit, "bytes");
    }
}
