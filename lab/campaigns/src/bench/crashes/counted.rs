//! What a crash of the block driver under a stream takes, in guest instructions
//! (`-icount shift=0`), and what a stream loses by it.
//!
//! The same bytes are streamed without crashes and with some, in turns, on one processor; what is
//! written is synced each megabyte, so that each crash is one under the stream. What is
//! counted is all that the processor does but to idle and to choose between threads; so what a turn
//! with crashes takes more is all that the system does because of them: the crash, the way out,
//! clearing away, the restart, bringing the device up, requests that are made again, pages that are
//! read again, the log's lines on their way to the port. It is divided by their number.
//!
//! From that follows what a stream loses that keeps the processor at work: at ten crashes a second,
//! ten times that of all that the processor does in a second. What is not seen: how long the device
//! and the emulator take for an access to a register, which is one instruction here; caches; and a
//! stream that waits for its device loses the time instead for which it stands still.

use std::path::Path;

use anyhow::{Result, ensure};

use super::super::figure::{Figure, min_and_median};
use super::{WORK, done};
use trefoil_gate::build::Built;
use trefoil_gate::tool;

/// Chunks of 64 KiB in a turn, a whole file, and crashes in every other; reading and writing.
const TURNS: [(u64, u64); 2] = [(512, 64), (512, 32)];
/// How many pairs of turns are counted.
const PAIRS: usize = 5;
/// Crashes in a second, in millions of instructions that processors do in it: one of a nanosecond
/// each, which is slow, and this system's under emulation.
const RATE: f64 = 10.0;
const SECONDS: [f64; 2] = [1000.0, 220.0];

/// A pair of turns.
struct Pair {
    bytes: f64,
    without: f64,
    /// The longest that a chunk took where there was no crash, and behind one.
    pauses: (f64, f64),
    crashes: f64,
    with: f64,
}

impl Pair {
    /// Instructions for each crash.
    fn each(&self) -> f64 {
        (self.with - self.without) / self.crashes
    }
}

/// Counts, reading and writing.
///
/// # Errors
/// If the work is not done.
pub fn counted(built: &Built, image: &Path, folder: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for ((work, goal, published), (chunks, crashes)) in WORK.into_iter().zip(TURNS) {
        tool::step(format_args!("counting what a crash takes: {work}"));
        let line = format!("-f {work} -b {chunks} -c {crashes} -s {PAIRS}");
        let pairs = done(
            (built, image, folder),
            &line,
            |machine| {
                machine.count_instructions = true;
                machine.idle_takes_time = true;
            },
            parse,
        )?;
        figures.extend(judged(work, (goal, published), crashes, &pairs)?);
    }
    Ok(figures)
}

/// The lines `counted BYTES INSTRUCTIONS PAUSE CRASHES INSTRUCTIONS PAUSE` of a screen.
fn parse(screen: &str) -> Option<Vec<Pair>> {
    let lines = screen
        .lines()
        .filter_map(|line| line.strip_prefix("counted "));
    let pairs: Option<Vec<Pair>> = lines.map(pair).collect();
    pairs.filter(|pairs| pairs.len() == PAIRS)
}

fn pair(line: &str) -> Option<Pair> {
    let numbers: Vec<f64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let [bytes, without, pause, crashes, with, longest] = *numbers.as_slice() else {
        return None;
    };
    let pair = Pair {
        bytes,
        without,
        pauses: (pause, longest),
        crashes,
        with,
    };
    (crashes > 0.0 && without > 0.0).then_some(pair)
}

/// What the pairs say: their medians.
fn judged(
    work: &str,
    (goal, published): (f64, f64),
    crashes: u64,
    pairs: &[Pair],
) -> Result<Vec<Figure>> {
    let made: f64 = pairs.iter().map(|pair| pair.crashes).sum();
    let wanted = crashes as f64 * pairs.len() as f64;
    ensure!(
        made > wanted * 2.0 / 3.0,
        "{made} crashes were made of {wanted}"
    );
    let median = |value: &dyn Fn(&Pair) -> f64| {
        let mut values: Vec<_> = pairs.iter().map(value).collect();
        min_and_median(&mut values).1
    };
    let each = median(&Pair::each);
    let mut all: Vec<_> = pairs.iter().map(Pair::each).collect();
    all.sort_by(f64::total_cmp);
    let megabyte = median(&|pair| pair.without / pair.bytes * 1e6);
    let name = format!("{work} of a file, for each crash of the driver");
    let crash = Figure::new("P6i", &name, each, None, "instructions")
        .beside("least", all[0])
        .beside("most", all[all.len() - 1])
        .beside("for each MB without crashes", megabyte)
        .beside(
            "the stream stands still",
            median(&|pair| pair.pauses.1 - pair.pauses.0),
        );
    let lost = |million: f64| (each * RATE / million / 1e4 * 100.0).round() / 100.0;
    let name = format!("{work} of a file, lost at {RATE} crashes a second of 10^9 instructions");
    let loss = Figure::new("P6i", &name, lost(SECONDS[0]), None, "%")
        .at_most(goal)
        .beside("RedLeaf, one a second (%)", published)
        .beside("of 0.22 * 10^9 (%)", lost(SECONDS[1]));
    Ok(vec![crash, loss])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_takes_is_the_difference_of_turns() {
        let lines = "counted 1000000 1000 7 48 4801000 107\n".repeat(PAIRS);
        let pairs = parse(&lines).expect("five pairs");
        let figures = judged("read", (1.0, 5.0), 48, &pairs).expect("crashes");
        assert_eq!((figures[0].best, figures[0].median), (100_000.0, None));
        assert_eq!(
            figures[0].peers[3],
            ("the stream stands still".into(), 100.0)
        );
        assert_eq!((figures[1].best, figures[1].met), (0.1, Some(true)));
        assert_eq!(figures[1].peers[1].1, 0.45);
    }

    #[test]
    fn too_few_crashes_or_lines_are_no_figures() {
        let line = "counted 1000000 1000 7 2 4801000 107\n";
        assert!(parse(line).is_none() && parse("counted 1 2 3").is_none());
        let pairs = parse(&line.repeat(PAIRS)).expect("five pairs");
        assert!(judged("read", (1.0, 5.0), 48, &pairs).is_err());
    }
}
