//! The benchmarks of the hosted platform: natively run, with the peers in turns, round after round.

use anyhow::{Context, Result, ensure};

use super::figure::{Figure, min_and_median};
use super::peers;
use super::rounds::{Raw, Rounds, parse};
use crate::hosted;
use trefoil_gate::project::Project;
use trefoil_gate::tool;

/// What one command measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Everything, ours and the peers'.
    pub raw: Vec<Raw>,
    /// The figures of the table.
    pub figures: Vec<Figure>,
}

/// Measures `names`, `count` times in turns with the peers, on processor `cpu`.
///
/// # Errors
/// If something cannot be measured. A peer that is not installed is left out.
pub fn measure(project: &Project, names: &[&str], count: usize, cpu: usize) -> Result<Measured> {
    let built = hosted::build(project)?;
    let wants = |name: &str| names.contains(&name);
    let c = wants("hash")
        .then(|| peers::hash_in_c(project))
        .transpose()?;
    let wasmtime = wants("calls")
        .then(|| peers::wasmtime(project))
        .transpose()?;
    let dpdk = wants("nullnet").then(peers::dpdk).flatten();
    let memory = table_memory();
    let mut rounds = Rounds::default();
    for round in 1..=count {
        for name in names.iter().filter(|name| round == 1 || **name != "disk") {
            tool::step(format_args!("measuring {name}, round {round} of {count}"));
            let mut command = hosted::launcher(project, &built);
            command.args(["bench", "--json", "--cpu", &cpu.to_string()]);
            if *name == "hash" {
                command.args(["--memory", &memory.to_string()]);
            }
            command.arg(name);
            rounds.add(parse(&tool::output(&mut command)?)?);
            match *name {
                "calls" => {
                    if let Some(program) = &wasmtime {
                        rounds.add(peers::run_wasmtime(program, cpu)?);
                    }
                }
                "hash" => {
                    if let Some(program) = &c {
                        rounds.add(peers::run_hash(program, cpu, memory)?);
                    }
                }
                "nullnet" => {
                    if let Some(program) = &dpdk {
                        for batch in [1, 32] {
                            rounds.add(vec![peers::run_dpdk(program, cpu, batch)?]);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    let raw = rounds.all();
    let ticks = raw.iter().map(|raw| raw.ticks_per_us).fold(0.0, f64::max);
    ensure!(ticks > 0.0, "nothing was measured");
    Ok(Measured {
        figures: judged(&raw, ticks),
        raw,
    })
}

/// MiB that hash tables may have: half of what is free, at most what the largest table and the one
/// before it take.
fn table_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    (free.unwrap_or(0) / 1024 / 2).clamp(64, 1536)
}

/// The goals of single figures, in the unit in which they are shown.
const GOALS: [(&str, f64); 7] = [
    ("P1", 12.0),
    ("P2", 16.0),
    ("P3", 25.0),
    ("P3r", 28.0),
    ("P4", 1.0),
    ("P4r", 50.0),
    ("P5", 100.0),
];

/// Values of a throughput in one second.
const SAMPLES: usize = 10;

/// The table's figures of what was measured.
fn judged(raw: &[Raw], ticks_per_us: f64) -> Vec<Figure> {
    let all = All { raw, ticks_per_us };
    let mut figures = Vec::new();
    for raw in raw {
        match raw.id.as_bytes() {
            [b'P', b'7', ..] => figures.push(all.hash(raw)),
            [b'P', b'8' | b'9', ..] => figures.extend(all.packets(raw)),
            [b'P', b'6', ..] => figures.extend(all.throughput(raw)),
            // Peers, which stand beside our figures.
            [b'C' | b'D' | b'W', ..] => {}
            _ => figures.push(all.call(raw)),
        }
    }
    figures.extend(all.ratios());
    figures
}

struct All<'a> {
    raw: &'a [Raw],
    ticks_per_us: f64,
}

impl All<'_> {
    fn find(&self, id: &str) -> Option<&Raw> {
        self.raw.iter().find(|raw| raw.id == id)
    }

    /// A call or something longer: what takes microseconds is shown in these.
    fn call(&self, raw: &Raw) -> Figure {
        let is_death = raw.id.starts_with("P4") || raw.id.starts_with("P5");
        let is_long = raw.unit == "ticks" && (is_death || raw.best > 2000.0);
        let (scale, unit) = match is_long {
            true => (self.ticks_per_us, "us"),
            false => (1.0, raw.unit.as_str()),
        };
        let (best, median) = (raw.best / scale, raw.median / scale);
        let mut figure = Figure::new(&raw.id, &raw.name, best, Some(median), unit);
        if let Some((_, goal)) = GOALS.iter().find(|(id, _)| *id == raw.id) {
            figure = figure.at_most(*goal);
            for (id, name) in self.peers_of(&raw.id) {
                if let Some(peer) = self.find(id) {
                    figure = figure.beside(name, peer.best / scale);
                }
            }
        }
        figure
    }

    fn peers_of(&self, id: &str) -> &'static [(&'static str, &'static str)] {
        match id {
            "P1" => &[
                ("P0d", "dyn call"),
                ("N1", "catch_unwind"),
                ("W1", "wasmtime"),
                ("P0g", "getpid"),
                ("N4", "pipes"),
                ("N3", "Unix socket"),
            ],
            "P2" | "P3" | "P3r" => &[("P0d", "dyn call"), ("W1", "wasmtime"), ("P0g", "getpid")],
            "P4" => &[("N2", "panic and catch_unwind")],
            _ => &[],
        }
    }

    fn hash(&self, raw: &Raw) -> Figure {
        let figure = Figure::new(&raw.id, &raw.name, raw.best, Some(raw.median), &raw.unit);
        match self.find(&raw.id.replace('P', "C")) {
            Some(c) => figure
                .at_most(c.best)
                .beside("C", c.best)
                .beside("C, median", c.median),
            None => figure,
        }
    }

    /// Packets: a rate, and for all ways but the linked one its share of that.
    fn packets(&self, raw: &Raw) -> Vec<Figure> {
        let rate = |ticks: f64| self.ticks_per_us / ticks;
        let (best, median) = (rate(raw.best), rate(raw.median));
        let mut figure = Figure::new(&raw.id, &raw.name, best, Some(median), "Mpps");
        let batch = if raw.id.starts_with("P8") { 1 } else { 32 };
        if let Some(dpdk) = self.find(&format!("D{batch}")) {
            figure = figure.beside("DPDK's null driver", dpdk.best);
        }
        let way = raw.id.as_bytes()[2];
        let linked = raw.id.replacen(way as char, "l", 1);
        let goal = match (batch, way) {
            (1, b'd') => 60.0,
            (1, b's') => 50.0,
            (_, b'd') => 90.0,
            (_, b's') => 85.0,
            _ => return vec![figure],
        };
        let Some(linked) = self.find(&linked) else {
            return vec![figure];
        };
        let share = |ours: f64, theirs: f64| 100.0 * theirs / ours;
        let (best, median) = (
            share(raw.best, linked.best),
            share(raw.median, linked.median),
        );
        let name = format!("{}, share of linked", raw.name);
        let share = Figure::new(&raw.id, &name, best, Some(median), "%").at_least(goal);
        vec![figure, share]
    }

    /// Throughput: the mean, and what crashes change in it. Each second with crashes is held
    /// against the one without that came just before it, since other work on the machine weighs
    /// more than crashes do.
    fn throughput(&self, raw: &Raw) -> Vec<Figure> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let whole = mean(&raw.values);
        let figure = Figure::new(&raw.id, &raw.name, whole, Some(raw.median), "MB/s");
        let (direction, goal) = match raw.id.as_bytes()[2] {
            b'r' => ("r", -1.0),
            _ => ("w", -3.0),
        };
        let undisturbed = self.find(&format!("P6{direction}0"));
        let Some(undisturbed) = undisturbed.filter(|undisturbed| undisturbed.id != raw.id) else {
            return vec![figure];
        };
        let seconds = raw.values.chunks(SAMPLES);
        let pairs = seconds.zip(undisturbed.values.chunks(SAMPLES));
        let mut changes: Vec<f64> = pairs
            .map(|(with, without)| 100.0 * (mean(with) / mean(without) - 1.0))
            .collect();
        let (_, middle) = min_and_median(&mut changes);
        let name = format!("{}, change, median of pairs", raw.name);
        let change = Figure::new(&raw.id, &name, middle, None, "%").at_least(goal);
        vec![figure, change]
    }

    /// P1 as a ratio to a bare call and to a system call.
    fn ratios(&self) -> Vec<Figure> {
        let ratio = |above: &str, below: &str| {
            let (above, below) = (self.find(above)?, self.find(below)?);
            Some((above.best / below.best, above.median / below.median))
        };
        let dyn_calls = ratio("P1", "P0d").map(|(best, median)| {
            Figure::new(
                "P1",
                "proxied null call in dyn calls",
                best,
                Some(median),
                "x",
            )
            .at_most(3.0)
        });
        let system_calls = ratio("P0g", "P1").map(|(best, median)| {
            Figure::new(
                "P1",
                "getpid in proxied null calls",
                best,
                Some(median),
                "x",
            )
            .at_least(15.0)
        });
        dyn_calls.into_iter().chain(system_calls).collect()
    }
}

/// The processor that benchmarks run on if none is named: the last one.
///
/// # Errors
/// If the system does not say how many there are.
pub fn last_processor() -> Result<usize> {
    let count = std::thread::available_parallelism().context("how many processors are there?")?;
    Ok(count.get() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(id: &str, best: f64) -> Raw {
        let unit = if id.starts_with("P6") {
            "MB/s"
        } else {
            "ticks"
        };
        Raw {
            id: id.into(),
            unit: unit.into(),
            best,
            median: best,
            values: vec![best],
            ..Raw::default()
        }
    }

    fn found<'a>(figures: &'a [Figure], id: &str, unit: &str) -> &'a Figure {
        let mut figures = figures.iter();
        figures
            .find(|figure| figure.id == id && figure.unit == unit)
            .expect("the figure")
    }

    #[test]
    fn calls_are_held_against_goals_and_peers() {
        let figures = judged(
            &[
                raw("P1", 10.0),
                raw("P0d", 4.0),
                raw("P0g", 200.0),
                raw("P4", 2600.0),
            ],
            2600.0,
        );
        let call = found(&figures, "P1", "ticks");
        assert_eq!(
            (call.met, call.peers[0].clone()),
            (Some(true), ("dyn call".into(), 4.0))
        );
        assert_eq!(found(&figures, "P4", "us").best, 1.0);
        let ratios: Vec<_> = figures.iter().filter(|figure| figure.unit == "x").collect();
        assert_eq!((ratios[0].best, ratios[1].best), (2.5, 20.0));
    }

    #[test]
    fn a_table_is_held_against_the_one_in_c() {
        let figures = judged(&[raw("P7i12", 20.0), raw("C7i12", 16.0)], 2600.0);
        assert_eq!((figures.len(), figures[0].met), (1, Some(false)));
        assert_eq!(figures[0].goal, "<= 16");
    }

    #[test]
    fn packets_are_held_against_linked_ones() {
        let raws = [
            raw("P8l", 10.0),
            raw("P8d", 20.0),
            raw("P9lw", 8.0),
            raw("P9dw", 8.0),
            raw("D1", 30.0),
        ];
        let figures = judged(&raws, 2600.0);
        assert_eq!(found(&figures, "P8d", "Mpps").best, 130.0);
        assert_eq!(found(&figures, "P8d", "Mpps").peers[0].1, 30.0);
        assert_eq!(
            (
                found(&figures, "P8d", "%").best,
                found(&figures, "P8d", "%").met
            ),
            (50.0, Some(false))
        );
        assert_eq!(found(&figures, "P9dw", "%").met, Some(true));
    }

    #[test]
    fn throughput_is_held_against_that_without_crashes() {
        let figures = judged(
            &[raw("P6r0", 100.0), raw("P6r1", 99.5), raw("P6r10", 90.0)],
            2600.0,
        );
        assert_eq!(found(&figures, "P6r1", "%").met, Some(true));
        assert_eq!(found(&figures, "P6r10", "%").met, Some(false));
    }
}
