//! `cargo xtask steps`: a domain is killed at every instruction of a call, on the bare machine.
//!
//! A call is followed from the first instruction of its proxy to the one behind its return, by
//! QEMU's debugger stub ([`stage`]). For every instruction there is a round: fresh domains, a call
//! that is stopped just there, a kill on the other processor, and a look at what the call gives and
//! what is left. What must hold in each:
//!
//! - the call gives the right result or the error of a crashed domain, and the machine goes on;
//! - the killed domain is dead, the other one answers as before, and all memory comes back;
//! - there is one place on the path before which every kill gives the error, and behind which none
//!   does, and it is not before the killed domain has returned; the driver behind a shadow may be
//!   killed anywhere, and the result is right.
//!
//! The last one shows that the kernel does not take a result from the dead or return into them,
//! even where that would do no harm this time. [`mutants`] breaks the kernel, to show that all this
//! is noticed.

pub mod mutants;
pub mod stage;
pub mod sweep;
pub mod symbols;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::campaign::{Plan, Record};
use machine::qemu::Machine;
use mutants::Mutant;
use stage::{Path, Stage, Whom};
use sweep::{Sweep, Tally};
use symbols::Symbols;
use trefoil_gate::build::{self, Built};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

/// What to do.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only this call; without it all, one after the other
    #[arg(long, value_enum, value_name = "PATH")]
    pub path: Option<Path>,
    /// Kill only this one of the two domains
    #[arg(long, value_enum, value_name = "WHOM")]
    pub whom: Option<Whom>,
    /// Kill at so many instructions of each call, evenly spread; without it at every one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub kills: Option<u32>,
    /// Kill at this instruction alone; 0 is the first one of the proxy
    #[arg(long, value_name = "NUMBER", conflicts_with = "kills")]
    pub at: Option<u32>,
    /// Break the kernel in this way; then the status is 0 if that is noticed
    #[arg(long, value_enum, value_name = "HOW")]
    pub mutant: Option<Mutant>,
    /// Print the summary as a JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the ledger to this file instead of one in the output folder
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Stop after so many minutes, however much was done
    #[arg(long, default_value_t = 120, value_name = "MINUTES")]
    pub minutes: u64,
}

/// Machines that may be lost in one sweep.
const MOST_LOST: usize = 5;

/// The command; its status: 0 if everything was as it must be.
///
/// # Errors
/// If the campaign cannot be carried out.
pub fn steps(project: &Project, options: &Options) -> Result<i32> {
    let built = build::build(project, None)?;
    let symbols = Symbols::of(&built.kernel)?;
    let mut campaign = Campaign::new(project, &built, &symbols, options)?;
    let is_good = match options.mutant {
        None => campaign.carry_out()?,
        Some(mutant) => campaign.finds(mutant)?,
    };
    campaign.tell();
    campaign.clear_away()?;
    Ok(i32::from(!is_good))
}

struct Campaign<'a> {
    options: &'a Options,
    symbols: &'a Symbols,
    machine: Machine,
    stage: Option<Stage<'a>>,
    sweeps: Vec<Sweep>,
    tallies: Vec<Tally>,
    record: Record,
}

impl<'a> Campaign<'a> {
    /// Boots, and follows each call once to see how long it is.
    fn new(
        project: &Project,
        built: &Built,
        symbols: &'a Symbols,
        options: &'a Options,
    ) -> Result<Self> {
        let folder = project.out.join("steps");
        std::fs::create_dir_all(&folder)?;
        let machine = machine(built, &folder);
        let mut stage = Stage::open(&machine, symbols)?;
        let mut sweeps = Vec::new();
        for path in chosen(options.path) {
            let places = stage.survey(path)?;
            let whom = chosen(options.whom).into_iter();
            sweeps.extend(whom.map(|whom| Sweep::new(path, whom, &places, options)));
        }
        let plan = Plan {
            seed: 0,
            runs: sweeps.iter().map(|sweep| sweep.places.len() as u64).sum(),
            first: 0,
            json: options.json,
            ledger: options.ledger.clone(),
            minutes: options.minutes,
        };
        tool::step(format_args!("{} kills", plan.runs));
        Ok(Campaign {
            options,
            symbols,
            machine,
            stage: Some(stage),
            sweeps,
            tallies: Vec::new(),
            record: Record::new(project, "steps", &plan)?,
        })
    }

    /// All sweeps; whether they were done, and good.
    fn carry_out(&mut self) -> Result<bool> {
        let mut is_good = true;
        for sweep in std::mem::take(&mut self.sweeps) {
            is_good &= self.sweep(&sweep)?;
        }
        if let Some(stage) = self.stage.take() {
            stage.close()?;
        }
        Ok(is_good)
    }

    /// Whether one of the sweeps notices that the kernel is broken.
    fn finds(&mut self, mutant: Mutant) -> Result<bool> {
        for sweep in std::mem::take(&mut self.sweeps) {
            let stage = self.stage()?;
            let (name, code) = mutant.patch();
            stage.plant(name, code)?;
            if !self.sweep(&sweep)? {
                let why = self.tallies.iter().find_map(|tally| tally.first.clone());
                tool::step(format_args!("{mutant:?} was found: {why:?}"));
                return Ok(true);
            }
        }
        tool::step(format_args!("{mutant:?} was not found"));
        Ok(false)
    }

    /// The machine; booted again if the last one was lost.
    fn stage(&mut self) -> Result<&mut Stage<'a>> {
        let stage = match self.stage.take() {
            Some(stage) => stage,
            None => Stage::open(&self.machine, self.symbols)?,
        };
        Ok(self.stage.insert(stage))
    }

    /// The rounds of one call and one to be killed; whether all is as it must be.
    fn sweep(&mut self, sweep: &Sweep) -> Result<bool> {
        let mut tally = Tally::new(sweep);
        for steps in &sweep.places {
            if self.record.is_late() {
                tally.fail("out of time".into());
                break;
            }
            let number = self.record.counts().0;
            let round = sweep::play(self.stage()?, sweep, *steps);
            let (details, outcome) = match round {
                Ok(round) => {
                    let outcome = tally.take(sweep, &round);
                    (self.details(&round), outcome)
                }
                Err(error) => {
                    let report = self.stage.take().map(|stage| stage.report());
                    let text = format!("{error:#}\n{}", report.unwrap_or_default());
                    tally.lost += 1;
                    (json!({ "steps": steps }), Err(text))
                }
            };
            self.record
                .add(number, &sweep.name(), details, &outcome, &[])?;
            if let Err(text) = outcome {
                eprintln!("    {}, instruction {steps}: {text}", sweep.name());
                tally.fail(text);
            }
            let is_found = self.options.mutant.is_some() && tally.first.is_some();
            if is_found || tally.lost > MOST_LOST {
                break;
            }
        }
        tally.end();
        let is_good = tally.first.is_none();
        self.tallies.push(tally);
        Ok(is_good)
    }

    fn details(&self, round: &stage::Round) -> Value {
        let place = round.place;
        let function = match place.is_in_kernel() {
            true => self.symbols.name(place.ip).unwrap_or("?"),
            false => "a domain",
        };
        json!({
            "steps": place.steps,
            "ip": format!("{:#x}", place.ip),
            "function": function,
            "interruptible": place.interruptible,
            "exact": round.exact,
            "answer": format!("{:?}", round.answer),
            "lost": round.lost,
            "missing": round.missing,
        })
    }

    /// Ends the machine and removes what was made for it; its log stays if one was lost.
    fn clear_away(&mut self) -> Result<()> {
        self.stage = None;
        std::fs::remove_dir_all(&self.record.scratch)?;
        if let Some(socket) = self.machine.stub.as_ref().filter(|socket| socket.exists()) {
            std::fs::remove_file(socket)?;
        }
        let folder = self.machine.log.parent();
        if let Some(folder) = folder.filter(|_| self.tallies.iter().all(|tally| tally.lost == 0)) {
            std::fs::remove_dir_all(folder)?;
        }
        Ok(())
    }

    /// Prints the summary.
    fn tell(&self) {
        tool::print(&match self.options.json {
            true => {
                let sweeps: Vec<_> = self.tallies.iter().map(Tally::json).collect();
                let (runs, right) = self.record.counts();
                let seconds = self.record.seconds();
                let all =
                    json!({ "runs": runs, "right": right, "seconds": seconds, "sweeps": sweeps });
                format!("{all:#}\n")
            }
            false => {
                let lines: String = self.tallies.iter().map(ToString::to_string).collect();
                let (runs, right) = self.record.counts();
                let (seconds, path) = (self.record.seconds(), self.record.path().display());
                format!("{lines}{right} of {runs} kills right, {seconds} s; ledger: {path}\n")
            }
        });
    }
}

/// The machine, without what makes places differ from round to round.
fn machine(built: &Built, folder: &std::path::Path) -> Machine {
    let name = format!("{}", std::process::id());
    let mut machine = Machine::new(&built.kernel, &folder.join(&name));
    machine.archive = Some(built.archive.clone());
    machine.processors = 2;
    machine.stub = Some(std::env::temp_dir().join(format!("trefoil-steps-{name}")));
    let words = ["root=domains/prober", "options=steps", "panic=off"];
    machine.words.extend(words.map(String::from));
    machine
}

/// That one, or all.
fn chosen<T: ValueEnum + Copy>(one: Option<T>) -> Vec<T> {
    one.map_or_else(|| T::value_variants().to_vec(), |one| vec![one])
}
