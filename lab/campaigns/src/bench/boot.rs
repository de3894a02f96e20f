//! The time from the start of QEMU to the prompt (P14), in turns with Debian's kernel booting to a
//! busybox shell in the same machine.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::figure::{Figure, min_and_median};
use crate::peer;
use machine::disk;
use machine::qemu::Machine;
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

const LIMIT: Duration = Duration::from_secs(180);
const PEER: &str = "Debian's kernel to a busybox shell (ms)";

/// Boots both `rounds` times.
///
/// # Errors
/// If one of them does not come up.
pub fn figures(project: &Project, rounds: usize) -> Result<Vec<Figure>> {
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
        own.push(time_to(&ours, machine::session::PROMPT)?);
        other.push(time_to(&theirs, peer::PROMPT)?);
    }
    Ok(judged(&mut own, &mut other))
}

/// Milliseconds from the start of QEMU until `prompt` is printed.
fn time_to(machine: &Machine, prompt: &str) -> Result<f64> {
    let start = Instant::now();
    let mut session = Session::start(machine, false)?;
    session.wait_for(0, prompt, LIMIT)?;
    Ok((start.elapsed().as_secs_f64() * 10_000.0).round() / 10.0)
}

fn judged(own: &mut [f64], other: &mut [f64]) -> Vec<Figure> {
    let (own, other) = (min_and_median(own), min_and_median(other));
    let ratio = (other.1 / own.1 * 10.0).round() / 10.0;
    vec![
        Figure::new("P14", "boot to the prompt", own.0, Some(own.1), "ms")
            .at_most(100.0)
            .beside(PEER, other.0),
        Figure::new("P14", "boot to the prompt, times faster", ratio, None, "x")
            .at_least(20.0)
            .beside(PEER, other.1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_are_compared_by_the_median() {
        let figures = judged(&mut [90.0, 120.0, 95.0], &mut [2000.0, 1900.0, 2100.0]);
        let values: Vec<_> = figures.iter().map(|figure| figure.best).collect();
        assert_eq!(values, [90.0, 21.1]);
        assert_eq!(figures[0].median, Some(95.0));
        assert!(figures.iter().all(|figure| figure.met == Some(true)));
    }
}
