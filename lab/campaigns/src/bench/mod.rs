//! `cargo xtask bench`: measures, and shows each figure beside its goal and what others have.
//!
//! - [`native`]: on the hosted platform, natively run, with the peers in the same rounds
//!   ([`peers`]);
//! - [`bare`]: in the booted kernel, in guest instructions;
//! - [`boot`]: the time to the prompt;
//! - [`files`]: work on files, beside Debian's kernel;
//! - [`cached`]: 4 KiB of a cached file, and small files, by a static program, among those;
//! - [`storm`]: threads that change names at once, beside Debian's kernel, among those;
//! - [`memory`]: reads and writes of memory objects, in guest instructions, beside Debian's kernel;
//! - [`schedule`]: threads that wake each other, give way and spin, beside Debian's kernel;
//! - [`queue`]: reads and writes of a disk through a block queue, in guest instructions;
//! - [`threads`]: ten thousand threads that wait, and deaths beside them and beside others;
//! - [`ring3`]: what a program asks of its kernel, in guest instructions, beside Debian's kernel;
//! - [`console`]: `ls /` beside a job that takes everything;
//! - [`crashes`]: a stream through a file while the block driver crashes, booted.
//!
//! A missed goal is no error. Besides the table, each command leaves what it measured as JSON and
//! as plots in `target/trefoil/bench`.

mod bare;
mod boot;
mod cached;
mod console;
mod crashes;
mod figure;
mod files;
mod memory;
mod native;
mod peers;
mod queue;
mod ring3;
mod rounds;
mod schedule;
mod side;
mod storm;
mod threads;

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{hosted, plot};
use figure::Figure;
use rounds::Raw;
use trefoil_gate::project::Project;
use trefoil_gate::{setup, tool};

const NAMES_HELP: &str = "Benchmarks:
  calls     P1-P3  calls between domains, beside dyn, catch_unwind, wasmtime, getpid, pipes, sockets
  recovery  P4     from a crash to the error at the caller, and to the next life
  reclaim   P5     taking back 100,000 shared objects
  disk      P6     throughput of a block device while its driver crashes, with every sector checked
  hash      P7     a hash table in safe Rust in a domain, beside C, 2^12 to 2^26 entries
  nullnet   P8 P9  packets through a driver, linked, in a domain, behind a shadow, beside DPDK
  scaling          calls from 1, 2, 4 and 8 threads
  boot      P14    from the start of QEMU to the prompt, beside Debian's kernel
  files            reading, writing, making and removing files, beside Debian's kernel
  names            those rows of `files` that are about names and cached pages, in guest instructions
  schedule         threads: waking, messages, giving way, shares of the processor, beside Debian's kernel
  threads          ten thousand threads that wait for a time; a thousand that leave who dies
  memory           reading and writing memory objects, in guest instructions, beside Debian's kernel
  queue     P13    4 KiB of a virtio disk by a block queue, in guest instructions
  ring3            system calls, faults, processes of a static program, beside Debian's kernel
  console          `ls /` beside a job that takes everything, counted and by the clock
  crashes   P6     throughput of a file in the booted system while the block driver crashes
  restarts  P6     those rows of `crashes` that are counted in guest instructions

All but `boot`, `files`, `names`, `schedule`, `threads`, `memory`, `queue`, `ring3`, `console`, `crashes` and `restarts` run on the hosted platform: domains in a Linux process, in native ticks of the time-stamp
counter. `calls`, `recovery` and `reclaim` can also be had from the booted kernel, as exact counts of guest
instructions, with `--platform bare`.";

/// What to measure.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = NAMES_HELP)]
pub struct Options {
    /// What to measure; everything if nothing is named
    pub names: Vec<String>,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
    /// Where: a Linux process or the booted kernel
    #[arg(long, value_parser = ["hosted", "bare"])]
    pub platform: Option<String>,
    /// How often to measure, in turns with the peers
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// The processor that native benchmarks are bound to; the last one if none is named
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
    /// `queue`: without Debian's kernel beside it
    #[arg(long)]
    pub alone: bool,
    /// What `schedule` measures.
    #[command(flatten)]
    pub schedule: schedule::Options,
}

const NATIVE: [&str; 7] = [
    "calls", "recovery", "reclaim", "disk", "hash", "nullnet", "scaling",
];
/// Those that the kernel has itself when it is booted.
const BARE: [&str; 3] = ["calls", "recovery", "reclaim"];
/// Those that need a booted system.
const BOOTED: [&str; 11] = [
    "boot", "files", "names", "schedule", "threads", "memory", "queue", "ring3", "console",
    "crashes", "restarts",
];

/// What is to be measured where.
#[derive(Debug, PartialEq)]
struct Plan<'a> {
    native: Vec<&'a str>,
    bare: Vec<&'a str>,
    booted: Vec<&'a str>,
}

/// Sorts the names out.
///
/// # Errors
/// If there is no such benchmark, or not on that platform.
fn plan<'a>(names: &'a [String], platform: Option<&str>) -> Result<Plan<'a>> {
    let known = || NATIVE.iter().chain(&BOOTED).copied();
    if let Some(unknown) = names
        .iter()
        .find(|name| !known().any(|known| known == *name))
    {
        let known: Vec<_> = known().collect();
        let known = known.join(", ");
        return usage(format!(
            "there is no benchmark `{unknown}`; there are {known}"
        ));
    }
    let wanted = |all: &[&'static str]| -> Vec<&'static str> {
        let is_wanted = |name: &&str| names.is_empty() || names.iter().any(|wanted| wanted == name);
        all.iter().copied().filter(is_wanted).collect()
    };
    let mut plan = Plan {
        native: wanted(&NATIVE),
        bare: Vec::new(),
        booted: wanted(&BOOTED),
    };
    let is_one_of = |all: &[&str], name: &str| all.contains(&name);
    match platform {
        Some("hosted") => {
            if let Some(other) = names.iter().find(|name| is_one_of(&BOOTED, name)) {
                return usage(format!(
                    "`{other}` needs a booted system: leave --platform away"
                ));
            }
            plan.booted = Vec::new();
        }
        Some("bare") => {
            let here = |name: &str| is_one_of(&BARE, name) || is_one_of(&BOOTED, name);
            if let Some(other) = names.iter().find(|name| !here(name)) {
                return usage(format!(
                    "`{other}` runs on the hosted platform only; booted, there are {} and {}",
                    BARE.join(", "),
                    BOOTED.join(", ")
                ));
            }
            plan.native = Vec::new();
            plan.bare = wanted(&BARE);
        }
        _ => {}
    }
    Ok(plan)
}

fn usage<T>(text: String) -> Result<T> {
    Err(tool::UsageError(text).into())
}

/// The command; its status.
///
/// # Errors
/// If something cannot be measured. A missed goal is no error.
pub fn bench(project: &Project, options: &Options) -> Result<i32> {
    if options.names.iter().any(|name| name.starts_with("lives=")) {
        return hosted::bench(project, &options.names, options.json);
    }
    let plan = plan(&options.names, options.platform.as_deref())?;
    setup::machine()?;
    let mut report = Report::default();
    let rounds = options.rounds as usize;
    if !plan.native.is_empty() {
        let cpu = options.cpu.map_or_else(native::last_processor, Ok)?;
        report.note = machine(cpu, options.rounds);
        let measured = native::measure(project, &plan.native, rounds, cpu)?;
        (report.raw, report.figures) = (measured.raw, measured.figures);
    }
    if !plan.bare.is_empty() {
        report.figures.extend(bare::figures(project, &plan.bare)?);
    }
    for name in &plan.booted {
        report.figures.extend(match *name {
            "boot" => boot::figures(project, rounds)?,
            "console" => console::console(project, rounds)?,
            "crashes" => crashes::crashes(project, rounds)?,
            "restarts" if plan.booted.contains(&"crashes") => Vec::new(),
            "restarts" => crashes::restarts(project)?,
            "memory" => memory::memory(project)?,
            "queue" => queue::queue(project, options.alone)?,
            "ring3" => ring3::ring3(project, rounds)?,
            "threads" => threads::threads(project)?,
            "schedule" => schedule::schedule(project, rounds, &options.schedule)?,
            "names" if plan.booted.contains(&"files") => Vec::new(),
            "names" => files::names(project)?,
            _ => files::files(project, rounds)?,
        });
    }
    report.show(project, options.json)
}

/// Everything that one command measured.
#[derive(Debug, Default)]
struct Report {
    /// Machine and ruler.
    note: String,
    raw: Vec<Raw>,
    figures: Vec<Figure>,
}

impl Report {
    fn show(&self, project: &Project, json: bool) -> Result<i32> {
        let array = Value::from(self.figures.iter().map(Figure::json).collect::<Vec<_>>());
        tool::print(&match json {
            true => format!("{array:#}\n"),
            false => self.note.clone() + &figure::table(&self.figures),
        });
        let folder = project.out.join("bench");
        fs::create_dir_all(&folder)?;
        let whole = json!({ "machine": self.note.lines().collect::<Vec<_>>(), "figures": array });
        fs::write(folder.join("figures.json"), format!("{whole:#}\n"))?;
        for (name, plot) in self.plots() {
            fs::write(folder.join(format!("{name}.svg")), plot)?;
        }
        eprintln!("figures and plots: {}", folder.display());
        Ok(0)
    }

    /// A plot for each benchmark that was run.
    fn plots(&self) -> Vec<(&'static str, String)> {
        let of = |ids: &[&str], unit: &str| -> Vec<Figure> {
            let is_one = |figure: &&Figure| {
                figure.unit == unit && ids.iter().any(|id| figure.id.starts_with(id))
            };
            self.figures.iter().filter(is_one).cloned().collect()
        };
        let mut plots = Vec::new();
        let mut bars = |name, title: &str, figures: Vec<Figure>| {
            if !figures.is_empty() {
                plots.push((name, plot::logarithmic(title, &rows(&figures))));
            }
        };
        bars(
            "calls",
            "Calls, in ticks",
            of(&["P0", "P1", "P2", "P3", "N"], "ticks"),
        );
        bars(
            "recovery",
            "Recovery and reclaim, in microseconds",
            of(&["P4", "P5"], "us"),
        );
        bars(
            "instructions",
            "Calls, recovery and reclaim, in guest instructions",
            of(&["P"], "instructions"),
        );
        bars(
            "nullnet",
            "Packets, in millions a second",
            of(&["P8", "P9"], "Mpps"),
        );
        bars("boot", "To the prompt, in milliseconds", of(&["P14"], "ms"));
        let mut lines = |name, title: &str, across: &str, up: &str, lines: Vec<plot::Curve>| {
            if !lines.is_empty() {
                plots.push((name, plot::curves(title, across, up, &lines)));
            }
        };
        lines(
            "hash",
            "A hash table in safe Rust in a domain, and in C",
            "entries, as a power of two",
            "ticks per operation",
            self.hash_lines(),
        );
        lines(
            "disk",
            "A block device whose driver crashes",
            "seconds",
            "MB/s",
            self.course("P6"),
        );
        lines(
            "scaling",
            "Null calls from many threads",
            "threads",
            "calls per microsecond",
            self.scaling_lines(),
        );
        plots
    }

    fn hash_lines(&self) -> Vec<plot::Curve> {
        let kinds = [
            ("P7i", "Rust, insert"),
            ("P7l", "Rust, lookup"),
            ("C7i", "C, insert"),
            ("C7l", "C, lookup"),
        ];
        self.by_number(&kinds)
    }

    fn scaling_lines(&self) -> Vec<plot::Curve> {
        self.by_number(&[("S", "a handle each"), ("H", "one handle")])
    }

    /// For each kind the best values over the numbers at the end of the figures' ids.
    fn by_number(&self, kinds: &[(&str, &str)]) -> Vec<plot::Curve> {
        let line = |(mark, name): &(&str, &str)| {
            let points = self.raw.iter().filter_map(|raw| {
                let number = raw.id.strip_prefix(mark)?.parse::<f64>().ok()?;
                Some((number, raw.best))
            });
            (name.to_string(), points.collect::<Vec<_>>())
        };
        let lines = kinds.iter().map(line);
        lines.filter(|(_, points)| !points.is_empty()).collect()
    }

    /// The courses in time of the figures whose ids begin with `mark`; ten values are a second.
    fn course(&self, mark: &str) -> Vec<plot::Curve> {
        let raws = self.raw.iter().filter(|raw| raw.id.starts_with(mark));
        raws.map(|raw| {
            let values = raw.values.iter().enumerate();
            let points = values.map(|(index, value)| (index as f64 / 10.0, *value));
            (raw.name.clone(), points.collect())
        })
        .collect()
    }
}

/// A row of a plot for each figure and, marked as such, for each of its peers.
fn rows(figures: &[Figure]) -> Vec<plot::Row> {
    let mut rows = Vec::new();
    for figure in figures {
        rows.push((format!("{} {}", figure.id, figure.name), figure.best, true));
        let peers = figure.peers.iter();
        rows.extend(peers.map(|(name, value)| (name.clone(), *value, false)));
    }
    rows
}

/// What the figures were measured on, and how.
fn machine(cpu: usize, rounds: u32) -> String {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = text("/proc/cpuinfo");
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model.trim());
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = text("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    format!(
        "{model}, {count} processors, Linux {}, load {load} at the start\n\
         ruler: native ticks of the time-stamp counter on processor {cpu}; rounds: {rounds}, in turns with the peers\n",
        text("/proc/sys/kernel/osrelease").trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn names_decide_where_to_measure() {
        let named = names(&["nullnet", "calls"]);
        let here = plan(&named, None).expect("both are known");
        assert_eq!(
            (here.native, here.booted.len()),
            (vec!["calls", "nullnet"], 0)
        );
        let (calls, none) = (names(&["calls"]), []);
        let bare = plan(&calls, Some("bare")).expect("known there");
        assert_eq!((bare.native.len(), bare.bare), (0, vec!["calls"]));
        let all = plan(&none, None).expect("nothing is unknown");
        assert_eq!(
            (all.native.len(), all.booted.len()),
            (NATIVE.len(), BOOTED.len())
        );
    }

    #[test]
    fn what_there_is_not_is_refused_with_the_list() {
        let refusal = |list: &[&str], platform| {
            let list = names(list);
            let error = plan(&list, platform).expect_err("refused");
            assert!(error.is::<tool::UsageError>(), "{error:#}");
            error.to_string()
        };
        assert!(refusal(&["call"], None).contains("calls, recovery"));
        assert!(refusal(&["hash"], Some("bare")).contains("hosted platform only"));
        assert!(refusal(&["boot"], Some("hosted")).contains("booted system"));
    }
}
