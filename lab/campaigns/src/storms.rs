//! `cargo xtask storms`: the file system, or the shadow in front of it, crashes or is replaced
//! again and again under programs that use it, at times the disk's driver with it, and what they
//! did is compared with what the host makes of it.
//!
//! A storm is one boot in which several such strikes come at random moments. Those that come when
//! the program has ended already do not count. The kinds of work:
//! - `copy`: `cp -r` of a tree of 2,000 files;
//! - `sort`: `sort` of a large file into another;
//! - `build`: small files made, written, renamed, linked and removed (`lib/testing/workload`);
//! - `map`: a Linux program in ring 3 that writes to a file through a mapping, and has a private
//!   one of another ([`mapped`]).
//!
//! With `--linux`, Debian's own programs work meanwhile: see [`debian`].
//!
//! After the machine is off, the result must be right to the byte and `e2fsck -fn` content, with a
//! journal and without.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use workload::{Found, History, Random, Tree};

use crate::campaign::{Outcome, Plan, Record};
use strikes::{At, Blow, Driver, NOT_UPDATED, Strike, script};

use crate::cuts::guest;
use crate::cuts::survey::{self, WORK};
use machine::disk;
use machine::qemu::{Ended, Event, Machine};
use trefoil_gate::build::{self, Built};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

mod debian;
pub mod mapped;
pub mod strikes;

/// What to do.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which strikes.
    #[command(flatten)]
    pub plan: Plan,
    /// What works meanwhile
    #[arg(long, value_enum, default_value = "copy", value_name = "WORK")]
    pub work: Work,
    /// Files in the tree that is copied, of 10 KiB each on average
    #[arg(long, default_value_t = 2000, value_name = "N")]
    pub files: u32,
    /// What happens to the file system and to the driver
    #[arg(long, value_enum, default_value = "crash", value_name = "STRIKE")]
    pub strike: Strike,
    /// What is struck, at times the disk's driver with it
    #[arg(long, value_enum, default_value = "all", value_name = "DOMAIN")]
    pub domain: At,
    /// Debian's own programs, on a disk of Debian's packages, while the driver, the file system and
    /// the file service crash in turn
    #[arg(long, conflicts_with_all = ["work", "files", "domain", "nvme"])]
    pub linux: bool,
    /// With --linux: seconds from one strike to the next
    #[arg(
        long,
        default_value_t = 3.0,
        value_name = "SECONDS",
        requires = "linux"
    )]
    pub every: f64,
    /// Have the disk behind an NVMe controller
    #[arg(long)]
    pub nvme: bool,
    /// Processors of the machine
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub smp: u32,
}

impl Options {
    fn driver(&self) -> Driver {
        match self.nvme {
            true => Driver::Nvme,
            false => Driver::Virtio,
        }
    }
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// `cp -r` of a tree
    Copy,
    /// `sort` of a large file
    Sort,
    /// Small files made, renamed and removed
    Build,
    /// A program that has files mapped, shared and private
    Map,
}

/// Strikes in one boot; [`WITH_DRIVER`] of them at the driver, too.
const STRIKES: usize = 5;
const WITH_DRIVER: usize = 3;
/// How long a system may take for its work.
const LIMIT: Duration = Duration::from_secs(300);
/// What the shell prints when the work is done.
const DONE: &str = "work done";
/// What it prints after each strike.
const STRUCK: &str = "struck now";
/// Lines of the file that is sorted.
const LINES: usize = 60_000;
/// Bytes of the file that is mapped to be read.
const MAPPED: usize = 2_000_000;
/// Operations of the work `build`.
const OPERATIONS: usize = 3000;

/// The file systems that take turns: their name, and options of mke2fs.
const KINDS: [(&str, &[&str]); 4] = [
    ("ext3, 4096", &["-b", "4096", "-j", "-J", "size=4"]),
    ("ext2, 4096", &["-b", "4096"]),
    ("ext3, 1024", &["-b", "1024", "-j", "-J", "size=4"]),
    ("ext2, 1024", &["-b", "1024"]),
];

/// The command; its status: 0 if everything was right.
///
/// # Errors
/// If the campaign cannot be carried out.
pub fn storms(project: &Project, options: &Options) -> Result<i32> {
    if options.linux {
        let updates =
            "with --linux domains are struck by crashes alone: --strike update goes without it";
        let is_time = options.every.is_finite() && options.every > 0.0;
        if options.strike == Strike::Update || !is_time {
            let text = if is_time {
                updates
            } else {
                "--every wants a time"
            };
            return Err(tool::UsageError(text.into()).into());
        }
        return Ok(debian::campaign(project, options)?.finish());
    }
    let record = campaign(project, &build::build(project, None)?, options)?;
    Ok(record.finish())
}

/// Carries the campaign out.
///
/// # Errors
/// If that is not possible. Runs that went wrong are no error.
pub fn campaign(project: &Project, built: &Built, options: &Options) -> Result<Record> {
    let plan = &options.plan;
    let mut record = Record::new(project, "storms", plan)?;
    tool::step(format_args!(
        "{} times {:?} of the file system under {:?}, seed {}",
        plan.runs, options.strike, options.work, plan.seed
    ));
    let folder = record.scratch.clone();
    let archive = folder.join("archive.cpio");
    let manifest = options.driver().patient_manifest(project, options.domain)?;
    let program = match options.work {
        Work::Map => Some(mapped::program(project, &folder)?),
        _ => None,
    };
    let packed = match &program {
        Some(program) => mapped::archive(project, &manifest, program)?,
        None => build::packed(project, manifest.as_bytes())?,
    };
    fs::write(&archive, packed)?;
    let scene = Scene {
        built: &Built {
            archive,
            ..built.clone()
        },
        options,
        folder: &folder,
        program: program.as_deref(),
    };
    let mut struck: BTreeMap<&str, u32> = BTreeMap::new();
    let mut next = plan.first;
    let mut storm = plan.first / STRIKES as u64;
    while next < plan.numbers().end && !record.is_late() {
        let (kind, _) = KINDS[(storm % KINDS.len() as u64) as usize];
        let image = folder.join("image");
        let (hits, outcome) = scene.storm(storm, &image)?;
        for Blow { pause, domains } in hits {
            if next < plan.numbers().end {
                for domain in &domains {
                    *struck.entry(domain).or_default() += 1;
                }
                let details = json!({ "storm": storm, "pause_ms": pause, "struck": domains });
                let kind = format!("{kind}: {}", domains.join(" + "));
                record.add(next, &kind, details, &outcome, &[&image])?;
                next += 1;
            }
        }
        storm += 1;
    }
    let counts = struck
        .iter()
        .map(|(domain, count)| format!("{domain} {count}"));
    let counts: Vec<_> = counts.collect();
    tool::step(format_args!("struck under work: {}", counts.join(", ")));
    fs::remove_dir_all(&folder)?;
    Ok(record)
}

/// What a storm needs.
struct Scene<'a> {
    built: &'a Built,
    options: &'a Options,
    folder: &'a Path,
    /// Of the work `map`.
    program: Option<&'a Path>,
}

impl Scene<'_> {
    /// One boot. The strikes that came while the work was under way, and whether everything was
    /// right then.
    fn storm(&self, number: u64, image: &Path) -> Result<(Vec<Blow>, Outcome)> {
        let mut random = Random::new(self.options.plan.seed, number);
        let blows = self.blows(&mut random);
        let seed = random.below(1 << 40);
        let expected = self.prepare(number, seed, image)?;
        // What never served may be said to be down when it is struck.
        let line = format!(
            "ls / > /dev/null; {{ {} && echo {DONE}; }} & {} wait; sync",
            self.line(seed),
            script(self.options.strike, &blows, &mut random, STRUCK)
        );
        let (printed, ended) = self.boot(image, &line)?;
        // Two programs print, so a line of one may stand within one of the other.
        let before = printed.split(DONE).next().unwrap_or_default();
        let count = before.matches(STRUCK).count();
        let is_right = self.program.is_none() || printed.contains(mapped::RIGHT);
        let result = match (printed.contains(DONE) && is_right, &ended) {
            (true, Ok(())) => Ok(()),
            (_, Err(text)) => Err(anyhow::anyhow!("{text}")),
            (false, _) => Err(anyhow::anyhow!("the work failed: {printed}")),
        };
        let result = result.and_then(|()| self.check(image, &expected));
        let result = result.and_then(|()| clean(image));
        let outcome = result.map_err(|error| format!("storm {number}, {line}: {error:#}"));
        // A storm that went wrong counts, whenever its strikes came.
        let count = if outcome.is_err() { blows.len() } else { count };
        let hits = blows[..count.min(blows.len())].to_vec();
        Ok((hits, outcome))
    }

    fn blows(&self, random: &mut Random) -> Vec<Blow> {
        // About as long as the work takes, all together.
        let longest = match self.options.work {
            Work::Copy => 100 + u64::from(self.options.files) / 2,
            Work::Sort | Work::Build | Work::Map => 400,
        };
        let at = self.options.domain;
        let driver = self.options.driver();
        let first = random.below(STRIKES as u64) as usize;
        let blow = |number: usize| {
            let with_driver = (number + first) % STRIKES < WITH_DRIVER;
            Blow::draw(random, longest, at, with_driver.then_some(driver))
        };
        (0..STRIKES).map(blow).collect()
    }

    fn line(&self, seed: u64) -> String {
        match self.options.work {
            Work::Copy => "cp -r /tree /copy".into(),
            Work::Sort => "sort /tree/lines > /tree/sorted".into(),
            Work::Build => {
                format!("cd /{WORK} && /boot/testing/workload {seed} {OPERATIONS} | tail -n 1")
            }
            Work::Map => mapped::line(),
        }
    }

    /// Makes the image; what must be in it afterwards, and where.
    fn prepare(&self, number: u64, seed: u64, image: &Path) -> Result<Expected> {
        let root = self.folder.join("root");
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let tree = root.join("tree");
        fs::create_dir_all(&tree)?;
        let expected = match self.options.work {
            Work::Copy => {
                fill(&tree, self.options.files, seed)?;
                Expected::Tree("copy", survey::folder_tree(&tree)?)
            }
            Work::Sort => {
                let mut random = Random::new(seed, 1);
                let line = |_| format!("{:08} {:x}\n", random.below(100_000_000), random.draw());
                let mut lines: Vec<String> = (0..LINES).map(line).collect();
                let unsorted = lines.concat();
                fs::write(tree.join("lines"), &unsorted)?;
                lines.sort_unstable();
                let file = |text: String| Found::File(text.into_bytes());
                let tree = [("lines", unsorted), ("sorted", lines.concat())];
                let tree = tree.map(|(name, text)| (name.to_string(), file(text)));
                Expected::Tree("tree", tree.into())
            }
            Work::Build => {
                fs::create_dir_all(root.join(WORK))?;
                Expected::Work(Box::new(History::of(seed, OPERATIONS)))
            }
            Work::Map => {
                fs::write(tree.join("big"), Random::new(seed, 3).bytes(MAPPED))?;
                Expected::Tree("tree", [].into())
            }
        };
        let (_, options) = KINDS[(number % KINDS.len() as u64) as usize];
        disk::make_with(&root, image, "80M", options)?;
        match self.program {
            None => Ok(expected),
            Some(program) => {
                mapped::work(program, &tree)?;
                Ok(Expected::Tree("tree", survey::folder_tree(&tree)?))
            }
        }
    }

    /// Has the system run the line; what it printed, and what was wrong with how it ended.
    fn boot(&self, image: &Path, line: &str) -> Result<(String, Outcome)> {
        let mut machine = guest::machine(self.built, self.folder, line);
        let disk = match self.options.driver() {
            Driver::Virtio => &mut machine.disk,
            Driver::Nvme => &mut machine.nvme,
        };
        *disk = Some(image.to_path_buf());
        machine.processors = self.options.smp;
        let Ran {
            printed,
            ended,
            errors,
            log,
            stacks,
        } = run(&machine, LIMIT)?;
        let lines: Vec<_> = log.lines().collect();
        let log_end = lines[lines.len().saturating_sub(12)..].join("\n") + "\n" + &stacks;
        let outcome = match ended {
            Some(Ended::Status(0)) if errors.is_empty() && self.is_as_meant(&printed, &log) => {
                Ok(())
            }
            ended => Err(format!("{ended:?}; {errors}{printed}log:\n{log_end}")),
        };
        Ok((printed, outcome))
    }

    /// Whether nothing was lost and, where domains are replaced, each was and none crashed.
    fn is_as_meant(&self, printed: &str, log: &str) -> bool {
        let replaced = !printed.contains(NOT_UPDATED) && !log.contains("crashed in");
        !log.contains("are lost") && (self.options.strike == Strike::Crash || replaced)
    }

    fn check(&self, image: &Path, expected: &Expected) -> Result<()> {
        match expected {
            Expected::Tree(name, tree) => {
                compare(&survey::host_tree(image, name, self.folder)?, tree)
            }
            Expected::Work(history) => {
                let found = survey::host_tree(image, WORK, self.folder)?;
                let checked = history.check(OPERATIONS, OPERATIONS, &found);
                checked.map_err(anyhow::Error::msg)
            }
        }
    }
}

fn clean(image: &Path) -> Result<()> {
    match disk::complaints(image)? {
        None => Ok(()),
        Some(text) => bail!("e2fsck -fn says: {text}"),
    }
}

/// What must be on an image.
enum Expected {
    /// This tree, in this directory of the root.
    Tree(&'static str, Tree),
    /// The last moment of this work.
    Work(Box<History>),
}

/// Fills a folder with `count` files, 10 KiB each on average.
fn fill(folder: &Path, count: u32, seed: u64) -> Result<()> {
    let mut random = Random::new(seed, 2);
    for number in 0..count {
        let path: PathBuf = folder.join(format!("d{}/e{}", number % 7, number % 40));
        fs::create_dir_all(&path)?;
        let length = [0, 100, 3000, 9000, 20_000, 30_000][random.below(6) as usize];
        fs::write(path.join(format!("file{number}")), random.bytes(length))?;
    }
    Ok(())
}

fn compare(found: &Tree, expected: &Tree) -> Result<()> {
    for (path, what) in expected {
        let there = found.get(path).with_context(|| format!("no {path}"))?;
        ensure!(there == what, "{path} is not right");
    }
    let strange = found.keys().find(|path| !expected.contains_key(*path));
    match strange {
        None => Ok(()),
        Some(path) => bail!("{path} should not be there"),
    }
}
/// What came of a machine.
struct Ran {
    printed: String,
    /// `None`: it did not end in time.
    ended: Option<Ended>,
    errors: String,
    log: String,
    /// Of all threads, where it did not end.
    stacks: String,
}

/// Starts a machine that nobody types at, and waits for its end.
fn run(machine: &Machine, limit: Duration) -> Result<Ran> {
    let mut guest = machine.start()?;
    guest.close_input();
    let deadline = Instant::now() + limit;
    let mut printed = String::new();
    while let Event::Bytes(bytes) = guest.receive(deadline) {
        printed += &String::from_utf8_lossy(&bytes);
    }
    let ended = guest.wait(Some(deadline))?;
    let stacks = match ended {
        None => guest.stacks(),
        Some(_) => String::new(),
    };
    Ok(Ran {
        printed,
        ended,
        errors: fs::read_to_string(&guest.errors)?,
        log: guest.log(),
        stacks,
    })
}
