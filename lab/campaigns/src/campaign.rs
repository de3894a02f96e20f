//! What campaigns of crashes have in common: seed and numbers of the runs, a ledger with a line of
//! JSON for each, progress, and a summary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use trefoil_gate::project::Project;
use trefoil_gate::tool;

/// Which runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Plan {
    /// Decides every run, together with its number
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub seed: u64,
    /// How many runs
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub runs: u64,
    /// The number of the first run; with `--runs 1` to do one run again
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub first: u64,
    /// Print the summary as a JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the ledger to this file instead of one in the output folder
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Stop after so many minutes, however many runs were done
    #[arg(long, default_value_t = 60, value_name = "MINUTES")]
    pub minutes: u64,
}

impl Plan {
    /// The numbers of the runs.
    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.runs
    }
}

/// How a run ended: right, or what was wrong.
pub type Outcome = std::result::Result<(), String>;

/// How often progress is told.
const TELL: Duration = Duration::from_secs(10);

/// Campaigns of this process.
static CAMPAIGNS: AtomicU32 = AtomicU32::new(0);

/// The record of a campaign.
pub struct Record {
    /// A folder for the campaign alone, to be removed at its end.
    pub scratch: PathBuf,
    /// Where the images of failed runs are kept.
    folder: PathBuf,
    plan: Plan,
    path: PathBuf,
    ledger: File,
    /// Runs, and those of them that were right, by kind.
    kinds: BTreeMap<String, (u64, u64)>,
    start: Instant,
    told: Instant,
}

impl Record {
    /// An empty record of the campaign `name`.
    ///
    /// # Errors
    /// If the folder or the ledger cannot be made.
    pub fn new(project: &Project, name: &str, plan: &Plan) -> Result<Self> {
        let folder = project.out.join(name);
        let campaign = CAMPAIGNS.fetch_add(1, Ordering::Relaxed);
        let scratch = folder.join(format!("work-{}-{campaign}", std::process::id()));
        fs::create_dir_all(&scratch)?;
        let usual = folder.join(format!("ledger-{}-{}.jsonl", plan.seed, plan.runs));
        let path = plan.ledger.clone().unwrap_or(usual);
        let ledger =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Record {
            scratch,
            folder,
            plan: plan.clone(),
            path,
            ledger,
            kinds: BTreeMap::new(),
            start: Instant::now(),
            told: Instant::now(),
        })
    }

    /// Whether the time for the campaign is over.
    pub fn is_late(&self) -> bool {
        self.start.elapsed() > Duration::from_secs(60 * self.plan.minutes)
    }

    /// Adds run `number`. `details` is an object with what else is to be known of it. The images of
    /// a run that went wrong are kept under names that say which it was. A run without images is
    /// not spoken of.
    ///
    /// # Errors
    /// If the ledger cannot be written, or an image not be kept.
    pub fn add(
        &mut self,
        number: u64,
        kind: &str,
        mut details: Value,
        outcome: &Outcome,
        images: &[&Path],
    ) -> Result<()> {
        details["run"] = json!(number);
        details["kind"] = json!(kind);
        details["outcome"] = json!(if outcome.is_ok() { "right" } else { "wrong" });
        if let Err(text) = outcome {
            details["note"] = json!(text);
            if !images.is_empty() {
                eprintln!("    run {number} ({kind}): {text}");
            }
            for image in images.iter().filter(|image| image.exists()) {
                let name = image.file_name().unwrap_or_default().to_string_lossy();
                let kept = format!("failed-{}-{number}-{name}", self.plan.seed);
                fs::copy(image, self.folder.join(kept))?;
            }
        }
        writeln!(self.ledger, "{details}")?;
        let (runs, right) = self.kinds.entry(kind.to_string()).or_default();
        *runs += 1;
        *right += u64::from(outcome.is_ok());
        if self.told.elapsed() > TELL {
            self.told = Instant::now();
            let (runs, right) = self.counts();
            let seconds = self.start.elapsed().as_secs();
            let all = self.plan.runs;
            eprintln!("    {runs} of {all} runs, {right} right, {seconds} s");
        }
        Ok(())
    }

    /// Runs, and those of them that were right.
    pub fn counts(&self) -> (u64, u64) {
        let add = |(a, b), (c, d): &(u64, u64)| (a + c, b + d);
        self.kinds.values().fold((0, 0), add)
    }

    /// Where the ledger is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long the campaign has taken so far.
    pub fn seconds(&self) -> u64 {
        self.start.elapsed().as_secs()
    }

    /// Prints the summary; the exit status: 0 if all runs that were asked for were right.
    pub fn finish(&self) -> i32 {
        let (runs, right) = self.counts();
        tool::print(&match self.plan.json {
            true => format!("{:#}\n", self.json()),
            false => self.text(),
        });
        i32::from(runs != self.plan.runs || right != runs)
    }

    fn json(&self) -> Value {
        let (runs, right) = self.counts();
        let kinds = self.kinds.iter();
        let kinds: BTreeMap<_, _> = kinds
            .map(|(kind, (runs, right))| (kind, json!({ "runs": runs, "right": right })))
            .collect();
        json!({
            "seed": self.plan.seed,
            "first": self.plan.first,
            "runs": runs,
            "right": right,
            "kinds": kinds,
            "seconds": self.start.elapsed().as_secs(),
        })
    }

    fn text(&self) -> String {
        let ((_, right), mut text) = (self.counts(), String::new());
        for (kind, (runs, right)) in &self.kinds {
            let _ = writeln!(text, "    {kind:<24} {right:>5} of {runs:>5}");
        }
        let seconds = self.start.elapsed().as_secs();
        let (seed, path) = (self.plan.seed, self.path.display());
        text += &format!("seed {seed}, {seconds} s; ledger: {path}\n");
        // Of those that were asked for, so that a campaign that ran out of time is none that is
        // right.
        text + &format!("{right} of {} runs right\n", self.plan.runs)
    }
}
