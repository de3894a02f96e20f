//! `cargo xtask cuts`: power cuts under work on files, and what is on the disk afterwards.
//!
//! - `kill`: QEMU is killed at a random moment. What it wrote stays, since the host does not lose
//!   its power.
//! - `drop`, `reorder`: the system works once on a disk that records all writes and flushes
//!   ([`machine::nbd`]). From the record any number of images is made that a cut at some event may
//!   leave ([`medium`]).
//! - `lie`: as `reorder`, but as if flushes did nothing. That shows that what is looked for would
//!   be found.
//!
//! With `--crash` the disk's driver, the file system and the shadow in front of it crash again and
//! again under the work, so the cut comes also while one of them starts.
//!
//! After each cut the journal is replayed by the host's e2fsck, and beside it by Trefoil: by
//! `lib/fs/ext2` here, and for every kill and some of the others by the booted system. After each
//! replay `e2fsck -fn` must be content, and the files must be what `workload::History` allows: all
//! that was acknowledged, byte for byte, and no name half renamed.
//!
//! Seed and number decide the work, the image and the point. How the guest's threads take turns
//! they do not decide; so what was recorded of a failed run is kept.

pub mod guest;
pub mod medium;
pub mod survey;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use workload::{History, Random, Tree};

use crate::campaign::{Outcome, Plan, Record};
use crate::storms::strikes::{At, Driver};
use guest::{Job, Recorded};
use machine::disk;
use machine::nbd::Event;
use machine::qemu::Ended;
use medium::Loss;
use survey::WORK;
use trefoil_gate::build::{self, Built};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

/// What to do.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which runs.
    #[command(flatten)]
    pub plan: Plan,
    /// How the power is cut; without it, one kill, two drops and two reorders in turn
    #[arg(long, value_enum, value_name = "HOW")]
    pub how: Option<How>,
    /// Operations in one work
    #[arg(long, default_value_t = 600, value_name = "N")]
    pub operations: usize,
    /// Have the disk's driver, the file system and its shadow crash again and again meanwhile
    #[arg(long)]
    pub crash: bool,
}

/// How the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum How {
    /// QEMU is killed
    Kill,
    /// Writes that were not flushed are lost
    Drop,
    /// Writes that were not flushed reach the medium in any order, some not at all
    Reorder,
    /// The same for all writes, as if flushes did nothing: then something must be found wrong
    Lie,
}

/// Cuts of one record.
const CUTS_OF_RECORD: u64 = 20;
/// One of so many cuts of a record is recovered by the booted system.
const BOOT_ONE_OF: u64 = 8;
const BLOCK_SIZES: [u32; 3] = [1024, 2048, 4096];
const TURN: [How; 5] = [How::Kill, How::Drop, How::Reorder, How::Drop, How::Reorder];
/// How long the system may take to recover a disk.
const RECOVERY_LIMIT: Duration = Duration::from_secs(120);

/// The command; its status: 0 if nothing was lost.
///
/// # Errors
/// If the campaign cannot be carried out.
pub fn cuts(project: &Project, options: &Options) -> Result<i32> {
    let record = campaign(project, &build::build(project, None)?, options)?;
    Ok(record.finish())
}

/// Carries the campaign out.
///
/// # Errors
/// If that is not possible. Runs that went wrong are no error.
pub fn campaign(project: &Project, built: &Built, options: &Options) -> Result<Record> {
    let plan = &options.plan;
    let record = Record::new(project, "cuts", plan)?;
    let patient = match options.crash {
        true => Some(patient(project, built, &record.scratch)?),
        false => None,
    };
    let built = patient.as_ref().unwrap_or(built);
    tool::step(format_args!("{} power cuts, seed {}", plan.runs, plan.seed));
    let mut campaign = Campaign {
        built,
        options,
        folder: record.scratch.clone(),
        record,
        recorded: None,
    };
    for number in plan.numbers() {
        if campaign.record.is_late() {
            break;
        }
        match campaign.how(number) {
            How::Kill => campaign.kill(number)?,
            How::Drop => campaign.lose(number, Loss::Drop)?,
            How::Reorder => campaign.lose(number, Loss::Reorder)?,
            How::Lie => campaign.lose(number, Loss::Lie)?,
        }
    }
    fs::remove_dir_all(&campaign.folder)?;
    Ok(campaign.record)
}

/// The system, in which what crashes may do so as often as it likes.
fn patient(project: &Project, built: &Built, folder: &Path) -> Result<Built> {
    let manifest = Driver::Virtio.patient_manifest(project, At::All)?;
    let archive = folder.join("archive.cpio");
    fs::write(&archive, build::packed(project, manifest.as_bytes())?)?;
    Ok(Built {
        archive,
        ..built.clone()
    })
}

struct Campaign<'a> {
    built: &'a Built,
    options: &'a Options,
    record: Record,
    folder: PathBuf,
    /// The last work that was recorded.
    recorded: Option<(Job, Recorded, History)>,
}

impl Campaign<'_> {
    fn how(&self, number: u64) -> How {
        let turn = TURN[(number % TURN.len() as u64) as usize];
        self.options.how.unwrap_or(turn)
    }

    fn job(&self, group: u64) -> Job {
        let mut random = Random::new(self.options.plan.seed, group);
        Job {
            seed: random.below(1 << 40),
            operations: self.options.operations,
            block_size: BLOCK_SIZES[(group % 3) as usize],
            crashes: self.options.crash,
        }
    }

    /// One run by killing QEMU.
    fn kill(&mut self, number: u64) -> Result<()> {
        // Groups of records count from 0, too.
        let job = self.job((1 << 32) + number / TURN.len() as u64);
        let mut random = Random::new(self.options.plan.seed, (1 << 40) + number);
        let history = History::of(job.seed, job.operations);
        let acknowledgements = random.below(history.acknowledgements() as u64);
        let pause = Duration::from_micros(random.below(60_000));
        let image = job.image(&self.folder)?;
        let when = (acknowledgements, pause);
        let done = guest::kill(self.built, &self.folder, &job, &image, when)?;
        let left = fs::read(&image)?;
        let outcome = self.examiner().examine(&left, &history, done, true);
        let details = json!({ "block_size": job.block_size, "acknowledged": done });
        self.note(number, "kill", details, &outcome, &left, None)
    }

    /// One run by losing writes of a record.
    fn lose(&mut self, number: u64, loss: Loss) -> Result<()> {
        let job = self.job(number / CUTS_OF_RECORD);
        let (recorded, history) = match self.recorded.take() {
            Some((last, recorded, history)) if last == job => (recorded, history),
            _ => (
                guest::record(self.built, &self.folder, &job)?,
                History::of(job.seed, job.operations),
            ),
        };
        let mut random = Random::new(self.options.plan.seed, (1 << 40) + number);
        let position = point(&recorded, &mut random);
        let (left, lost) = medium::after_cut(&recorded.tape, position, loss, &mut random);
        let before = recorded.acknowledged.iter().rev();
        let mut before = before.filter(|(at, _)| *at <= position);
        let done = before.next().map_or(0, |(_, done)| *done);
        let boots = random.below(BOOT_ONE_OF) == 0;
        let outcome = self.examiner().examine(&left, &history, done, boots);
        let details = json!({
            "block_size": job.block_size, "acknowledged": done, "event": position,
            "events": recorded.tape.events.len(), "lost": lost, "booted": boots,
        });
        let kind = match loss {
            Loss::Drop => "drop",
            Loss::Reorder => "reorder",
            Loss::Lie => "lie",
        };
        self.note(number, kind, details, &outcome, &left, Some(&recorded))?;
        self.recorded = Some((job, recorded, history));
        Ok(())
    }

    fn note(
        &mut self,
        number: u64,
        kind: &str,
        details: Value,
        outcome: &Outcome,
        left: &[u8],
        recorded: Option<&Recorded>,
    ) -> Result<()> {
        let (image, events) = (self.folder.join("left.img"), self.folder.join("events"));
        let mut kept = Vec::new();
        // With a disk that lies nothing else is to be expected.
        if outcome.is_err() && kind != "lie" {
            fs::write(&image, left)?;
            fs::write(&events, recorded.map(listing).unwrap_or_default())?;
            kept = vec![&*image, &*events];
        }
        let block_size = &details["block_size"];
        let crashes = match self.options.crash {
            true => ", crashes",
            false => "",
        };
        let kind = format!("{kind}, {block_size}{crashes}");
        self.record.add(number, &kind, details, outcome, &kept)
    }

    fn examiner(&self) -> Examiner<'_> {
        Examiner {
            built: self.built,
            folder: &self.folder,
        }
    }
}

/// Who says whether what a cut left is as it must be.
pub struct Examiner<'a> {
    /// The system that recovers an image.
    pub built: &'a Built,
    /// A folder for copies.
    pub folder: &'a Path,
}

impl Examiner<'_> {
    /// Whether what a cut left is as it must be, when `done` operations were done and acknowledged.
    /// The booted system replays it as well if it `boots`.
    pub fn examine(&self, left: &[u8], history: &History, done: usize, boots: bool) -> Outcome {
        let image = self.folder.join("replayed");
        let check = |by: &str, tree: &Tree| -> Result<()> {
            if let Some(text) = disk::complaints(&image)? {
                bail!("replayed by {by}, e2fsck -fn says: {text}");
            }
            let checked = history.check(done, history.begun(done), tree);
            checked.map_err(|text| anyhow::anyhow!("replayed by {by}, {text}"))
        };
        let by_host = || {
            fs::write(&image, left)?;
            survey::host_replay(&image)?;
            check("the host", &survey::host_tree(&image, WORK, self.folder)?)
        };
        let by_library = || {
            let (tree, after) = survey::own_tree(left.to_vec())?;
            fs::write(&image, after)?;
            check("lib/fs/ext2", &tree)
        };
        let by_system = || {
            fs::write(&image, left)?;
            self.recover(&image)?;
            check("the system", &survey::host_tree(&image, WORK, self.folder)?)
        };
        let result = by_host().and_then(|()| by_library());
        let result = match boots {
            true => result.and_then(|()| by_system()),
            false => result,
        };
        result.map_err(|error| format!("{error:#}"))
    }

    /// Boots the system with the disk and switches it off again.
    fn recover(&self, image: &Path) -> Result<()> {
        let mut machine = guest::machine(self.built, self.folder, "find /w | wc -l");
        machine.disk = Some(image.to_path_buf());
        let mut guest = machine.start()?;
        guest.close_input();
        match guest.wait(Some(Instant::now() + RECOVERY_LIMIT))? {
            Some(Ended::Status(0)) => Ok(()),
            Some(ended) => bail!("{ended:?}; the system's log:\n{}", guest.log()),
            None => bail!(
                "the system does not end; its log:\n{}\nstacks:\n{}",
                guest.log(),
                guest.stacks()
            ),
        }
    }
}

/// A point of a record: any event, or one beside a flush.
fn point(recorded: &Recorded, random: &mut Random) -> usize {
    let events = &recorded.tape.events;
    let all = events.len() as u64;
    if random.below(3) > 0 {
        return random.below(all + 1) as usize;
    }
    let is_flush = |at: &usize| matches!(events[*at], Event::Flush { .. });
    let flushes: Vec<usize> = (0..events.len()).filter(is_flush).collect();
    let flush = random.pick(&flushes).copied().unwrap_or(0);
    (flush + random.below(3) as usize).min(events.len())
}

/// The events of a record, a line each.
fn listing(recorded: &Recorded) -> String {
    let line = |event: &Event| match event {
        Event::Write { offset, data } => format!("write {offset} {}\n", data.len()),
        Event::Flush { writes } => format!("flush {writes}\n"),
    };
    recorded.tape.events.iter().map(line).collect()
}
