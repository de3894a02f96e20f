//! All rounds of one call and one domain to be killed, and what came of them.

use std::fmt;

use anyhow::Result;
use serde_json::{Value, json};

use super::Options;
use super::stage::{Answer, Path, Place, Round, Stage, Whom};

/// Rounds at one place until no memory is missing: what is allocated once and kept, a table that
/// grows, does not count.
const TRIES: usize = 4;
const PAGE: u64 = 4096;
/// One place where interrupts are on may be missed, and one in so many: right behind `sti` the
/// interrupt waits for one more instruction.
const MISSED: usize = 10;

/// What is to be done.
pub struct Sweep {
    /// The call.
    pub path: Path,
    /// Whom to kill.
    pub whom: Whom,
    /// How many instructions the call has.
    pub length: usize,
    /// Those of them that are the domains' own.
    pub in_domains: usize,
    /// Where each instruction is, within its page: images are not always put to the same place.
    surveyed: Vec<u64>,
    /// Up to where a kill must give the error: there the called domain's own code ends.
    errors_to: usize,
    /// At which to kill; the last one is behind the call.
    pub places: Vec<usize>,
}

impl Sweep {
    /// The kills that `options` ask for, of a call with these places.
    pub fn new(path: Path, whom: Whom, places: &[Place], options: &Options) -> Self {
        let length = places.len() - 1;
        let is_domain = |place: &&Place| !place.is_in_kernel() && !place.is_over;
        let last = places.iter().rev().find(is_domain);
        Sweep {
            path,
            whom,
            length,
            in_domains: places.iter().filter(is_domain).count(),
            surveyed: places.iter().map(|place| place.ip % PAGE).collect(),
            errors_to: match whom {
                Whom::Front => last.map_or(0, |place| place.steps),
                Whom::Back => 0,
            },
            places: chosen(length, options),
        }
    }

    /// What it is called in the ledger.
    pub fn name(&self) -> String {
        format!("{:?}, {:?}", self.path, self.whom).to_lowercase()
    }

    /// Whether the call was stopped at another instruction than the first time it was followed: it
    /// took another way.
    fn is_elsewhere(&self, place: &Place) -> bool {
        self.surveyed.get(place.steps) != Some(&(place.ip % PAGE))
    }

    /// Whether nobody notices the kill: a shadow goes on with the next driver.
    fn is_unnoticed(&self) -> bool {
        (self.path, self.whom) == (Path::Shadowed, Whom::Back)
    }
}

/// The places of a call of this length that are asked for.
fn chosen(length: usize, options: &Options) -> Vec<usize> {
    match (options.at, options.kills) {
        (Some(place), _) => vec![(place as usize).min(length)],
        (None, Some(count)) => {
            let last = count as usize - 1;
            let mut all: Vec<_> = (0..=last).map(|index| index * length / last).collect();
            all.dedup();
            all
        }
        (None, None) => (0..=length).collect(),
    }
}

/// A round, again if memory is missing afterwards.
///
/// # Errors
/// If the machine was lost.
pub fn play(stage: &mut Stage<'_>, sweep: &Sweep, steps: usize) -> Result<Round> {
    let mut round = stage.round(sweep.path, sweep.whom, steps)?;
    for _ in 1..TRIES {
        if !round.leaks() || round.answer == Answer::Wrong {
            break;
        }
        round = stage.round(sweep.path, sweep.whom, steps)?;
    }
    Ok(round)
}

/// What came of a sweep.
pub struct Tally {
    name: String,
    length: usize,
    in_domains: usize,
    is_unnoticed: bool,
    errors_to: usize,
    kills: usize,
    exact: usize,
    elsewhere: usize,
    locked: usize,
    right: usize,
    crashed: usize,
    wrong: usize,
    leaks: usize,
    /// Machines that did not go on.
    pub lost: usize,
    /// The first exact place with a result, since which there must be no error.
    result_since: Option<usize>,
    /// The first thing that was not as it must be.
    pub first: Option<String>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(sweep: &Sweep) -> Self {
        Tally {
            name: sweep.name(),
            length: sweep.length,
            in_domains: sweep.in_domains,
            is_unnoticed: sweep.is_unnoticed(),
            errors_to: sweep.errors_to,
            kills: 0,
            exact: 0,
            elsewhere: 0,
            locked: 0,
            right: 0,
            crashed: 0,
            wrong: 0,
            leaks: 0,
            lost: 0,
            result_since: None,
            first: None,
        }
    }

    /// Takes the next round; what is wrong with it.
    pub fn take(&mut self, sweep: &Sweep, round: &Round) -> std::result::Result<(), String> {
        let steps = round.place.steps;
        self.kills += 1;
        self.exact += usize::from(round.exact);
        self.elsewhere += usize::from(sweep.is_elsewhere(&round.place));
        self.locked += usize::from(!round.place.interruptible);
        self.leaks += usize::from(round.leaks());
        match round.answer {
            Answer::Right => self.right += 1,
            Answer::Crashed => self.crashed += 1,
            Answer::Wrong => self.wrong += 1,
        }
        match round.answer {
            Answer::Wrong => return Err("wrong, see the kernel's log".into()),
            Answer::Crashed if self.is_unnoticed => {
                return Err("the shadow's client noticed".into());
            }
            Answer::Crashed if round.place.is_over => return Err("an error after the call".into()),
            Answer::Crashed if round.exact && self.result_since.is_some() => {
                let since = self.result_since.unwrap_or_default();
                return Err(format!(
                    "an error, though the kill at {since} left the result"
                ));
            }
            Answer::Right if steps <= self.errors_to && round.exact && !self.is_unnoticed => {
                return Err("a result, though the domain was killed before it returned".into());
            }
            Answer::Right if round.exact && self.result_since.is_none() => {
                self.result_since = Some(steps);
            }
            _ => {}
        }
        match round.leaks() {
            false => Ok(()),
            true => Err(format!(
                "{} bytes, {} objects and handles are lost every time",
                round.lost, round.missing
            )),
        }
    }

    /// Notes that something was not as it must be.
    pub fn fail(&mut self, text: String) {
        self.first.get_or_insert(text);
    }

    /// Looks at the whole: whether the places were hit as they were meant.
    pub fn end(&mut self) {
        let meant = self.kills - self.locked;
        if self.exact + 1 + meant / MISSED < meant {
            let text = format!("only {} of {meant} places were hit exactly", self.exact);
            self.fail(text);
        }
    }

    /// As an object.
    pub fn json(&self) -> Value {
        json!({
            "path": self.name,
            "instructions": self.length,
            "in_domains": self.in_domains,
            "kills": self.kills,
            "exact": self.exact,
            "elsewhere": self.elsewhere,
            "interrupts_off": self.locked,
            "right": self.right,
            "errors": self.crashed,
            "result_since": self.result_since,
            "wrong": self.wrong,
            "leaks": self.leaks,
            "hangs": self.lost,
            "first": self.first,
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "    {:<16} {:>4} instructions, {} in domains; {} kills, {} exact, {} elsewhere, {} with interrupts off: {} right, {} errors, {} wrong, {} leaks, {} hangs",
            self.name,
            self.length,
            self.in_domains,
            self.kills,
            self.exact,
            self.elsewhere,
            self.locked,
            self.right,
            self.crashed,
            self.wrong,
            self.leaks,
            self.lost
        )
    }
}
