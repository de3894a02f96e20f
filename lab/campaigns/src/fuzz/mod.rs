//! `cargo xtask fuzz TARGET`: feeds a part of the system with damaged input, on the host.
//!
//! Input number `n` of a run with seed `s` depends on `s` and `n` alone, so whatever is found can
//! be had again with `--seed S --only N`. A target fails an input by panicking or by an error; an
//! input that takes longer than the target's patience fails, too. The targets of [`guided`] run
//! under libFuzzer instead, [`interfaces`], [`queues`] and those of [`prober`] in the running
//! system. `make test` runs a few thousand inputs of each target (its unit tests).

pub mod guided;
pub mod idl;
pub mod interfaces;
pub mod loader;
pub mod prober;
pub mod queues;
pub mod sample;
mod standstill;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use trefoil_gate::project::Project;

/// What to fuzz, and for how long.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The target
    #[arg(value_parser = names())]
    pub target: String,
    /// For how long
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u64,
    /// What the inputs depend on
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// `loader`, `idl`: only this input
    #[arg(long, value_name = "N")]
    pub only: Option<u64>,
    /// `interfaces`, `ring3`, `frames`, `queues`: the first sequence, or machine
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// `interfaces`, `ring3`, `frames`, `queues`: how many at most
    #[arg(long, value_name = "N", default_value_t = u64::MAX)]
    pub count: u64,
    /// `queues`: how many domains are ended in each machine
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub kills: u64,
    /// `queues`: the driver of the disk
    #[arg(long, value_name = "NAME", default_value = "virtio-blk", value_parser = queues::drivers())]
    pub driver: String,
    /// `interfaces`: the only method that is called, as INTERFACE.METHOD
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// `interfaces`: where, a Linux process or QEMU
    #[arg(long, default_value = "hosted", value_parser = ["hosted", "bare"])]
    pub platform: String,
    /// `interfaces`: processors of the machine in QEMU
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub smp: u32,
    /// `interfaces`: the death of a victim counts as a finding, so that the run must fail
    #[arg(long)]
    pub strict: bool,
}

/// Something that takes input from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    name: &'static str,
    /// Makes what tries one input.
    start: fn(Option<&Project>) -> Result<Trial>,
    /// The longest that one input may take.
    patience: Duration,
}

/// Tries one input that is made with the numbers given; what came of it, in a word or two, or what
/// is wrong.
pub type Trial = Box<dyn FnMut(&mut Numbers) -> Result<String>>;

/// All targets.
pub const TARGETS: [Target; 2] = [
    Target {
        name: "loader",
        start: loader::start,
        patience: Duration::from_secs(10),
    },
    Target {
        name: "idl",
        start: idl::start,
        // With the compiler's time. The target has a limit of its own for `idlc`.
        patience: Duration::from_secs(300),
    },
];

/// The names of all targets, those of [`guided`] included.
fn names() -> Vec<&'static str> {
    let own = TARGETS.iter().map(|target| target.name);
    own.chain(guided::NAMES)
        .chain([interfaces::NAME, queues::NAME])
        .chain(prober::TARGETS.iter().map(|target| target.name))
        .collect()
}

/// Numbers that look random and depend on seed and input alone (SplitMix64).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Those of input `index` of the run with this seed.
    pub fn of(seed: u64, index: u64) -> Self {
        let mut numbers = Numbers(seed);
        let start = numbers.next();
        Numbers(start ^ index.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// The next one.
    #[expect(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// One of `choices`, which are not none.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// What came of how many inputs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    outcomes: BTreeMap<String, u64>,
    /// Inputs that something is wrong with, and what.
    pub failures: Vec<(u64, String)>,
}

impl Summary {
    /// How many inputs were tried.
    pub fn tried(&self) -> u64 {
        self.outcomes.values().sum::<u64>() + self.failures.len() as u64
    }

    /// How many inputs came to something that starts with `word`.
    pub fn count(&self, word: &str) -> u64 {
        let fitting = self
            .outcomes
            .iter()
            .filter(|(name, _)| name.starts_with(word));
        fitting.map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (outcome, count) in &self.outcomes {
            writeln!(f, "{count:>10}  {outcome}")?;
        }
        for (index, what) in &self.failures {
            writeln!(f, "input {index}: {what}")?;
        }
        Ok(())
    }
}

/// The command; its result is our exit status.
///
/// # Errors
/// If the target cannot be started.
pub fn fuzz(project: &Project, options: &Options) -> Result<i32> {
    if guided::NAMES.contains(&options.target.as_str()) {
        return guided::run(project, options);
    }
    if options.target == interfaces::NAME {
        return interfaces::run(project, options);
    }
    if options.target == queues::NAME {
        return queues::run(project, options);
    }
    let mut of_prober = prober::TARGETS.iter();
    if let Some(target) = of_prober.find(|target| target.name == options.target) {
        return prober::run(project, target, options);
    }
    let Some(target) = TARGETS.iter().find(|target| target.name == options.target) else {
        bail!("there is no target {}", options.target);
    };
    let mut trial = (target.start)(Some(project))?;
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut summary = Summary::default();
    match options.only {
        Some(index) => try_one(
            &mut trial,
            target.patience,
            options.seed,
            index,
            &mut summary,
        ),
        None => {
            let mut index = 0;
            while Instant::now() < end && summary.failures.len() < 10 {
                try_one(
                    &mut trial,
                    target.patience,
                    options.seed,
                    index,
                    &mut summary,
                );
                index += 1;
            }
        }
    }
    print!("{summary}");
    for (index, _) in &summary.failures {
        let (name, seed) = (target.name, options.seed);
        println!("again: cargo xtask fuzz {name} --seed {seed} --only {index}");
    }
    println!(
        "{} inputs of seed {}, {} findings",
        summary.tried(),
        options.seed,
        summary.failures.len()
    );
    Ok(i32::from(!summary.failures.is_empty()))
}

/// Tries the first `count` inputs of `seed`, with what the target needs no project for.
///
/// # Errors
/// If the target cannot be started.
pub fn first(target: &Target, seed: u64, count: u64) -> Result<Summary> {
    let mut trial = (target.start)(None)?;
    let mut summary = Summary::default();
    let patience = target.patience;
    (0..count).for_each(|index| try_one(&mut trial, patience, seed, index, &mut summary));
    Ok(summary)
}

fn try_one(trial: &mut Trial, patience: Duration, seed: u64, index: u64, summary: &mut Summary) {
    let start = Instant::now();
    let mut numbers = Numbers::of(seed, index);
    let outcome = catch_unwind(AssertUnwindSafe(|| trial(&mut numbers)));
    let failure = match outcome {
        Ok(Ok(_)) if start.elapsed() > patience => format!("took {:?}", start.elapsed()),
        Ok(Ok(outcome)) => {
            *summary.outcomes.entry(outcome).or_default() += 1;
            return;
        }
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => "panicked".into(),
    };
    summary.failures.push((index, failure));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_depend_on_seed_and_input_alone() {
        let first = |seed, index| Numbers::of(seed, index).next();
        assert_eq!(first(1, 5), first(1, 5));
        assert_ne!(first(1, 5), first(1, 6));
        assert_ne!(first(1, 5), first(2, 5));
    }

    #[test]
    fn panics_and_errors_are_failures() {
        let mut trial: Trial = Box::new(|numbers| match numbers.next() % 3 {
            0 => panic!("on purpose"),
            1 => bail!("wrong"),
            _ => Ok("fine".into()),
        });
        let mut summary = Summary::default();
        let patience = Duration::from_secs(60);
        (0..300).for_each(|index| try_one(&mut trial, patience, 1, index, &mut summary));
        assert_eq!(summary.tried(), 300);
        assert!(summary.failures.len() > 100 && summary.count("fine") > 30);
    }
}
