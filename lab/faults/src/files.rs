//! The campaign against file systems: `ext2`, the driver of its disk, the shadow between those two,
//! the shadow in front of it (`vfs`) and its keeper (`vfs-keep`), or files in memory (`ramfs`, or
//! `keep`, which keeps them), is made to fail under clients that write files, read them again, and
//! know what must be in them. The real shadows stand in between.
//!
//! Where a keeper has failed by the middle of a run, who has something there dies as well, when the
//! next keeper has had the time to be found: so it shows whether all was kept again.
//!
//! Each run begins with new instances and without files, so that all of it has to be back behind
//! it. What was acknowledged must be there, whichever of them has died; the other one lives. `ext2`
//! gets its disk with it, as it left it, and ends with the shadow that its queue is of. Of a device
//! of the machine the driver and all that stands on it are new in each run.

use crate::counts::Counts;
use crate::engine::{Ground, plant, prepare};
use crate::ledger::{Course, Found, stuck};
use crate::parts::{Part, Parts, respawn};
use crate::plan::{Fault, Kind, Random};
use crate::reach::{Reach, Way};
use crate::stages::{Stage, stage};
use crate::store::pause;
use abi::{Handle, RVec, RpcError, Text};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use interfaces::{FileKind, FileSystem, FsError, Renaming};
use isolation::call::thread::with_root;
use isolation::death::kill::kill;
use isolation::domain::{ControlBlock, Limits};
use isolation::load::loader::MOST_GRANTS;
use isolation::lock::Lock;
use isolation::platform::{Attributes, platform};
use isolation::{Reason, State};

/// Runs without a fault before the first one.
const WARM_UP: u64 = 20;
/// Nanoseconds that a run may take, and memory to come back. A commit has a budget of a minute.
const PATIENCE: u64 = 100_000_000_000;
/// Nanoseconds in which nobody wants anything before an instruction is replaced.
const REST: u64 = 10_000_000;
const CLIENTS: usize = 2;
/// Files of each.
const FILES: usize = 4;
/// Operations of each in one run.
const OPERATIONS: u32 = 24;
/// Nanoseconds in which a keeper's death is found, and everything kept again.
const KEPT_AGAIN: u64 = 400_000_000;
/// Bytes that a file has at most.
const LONGEST: u64 = 20_000;

/// What the clients and the campaign share.
struct Shared {
    reach: Reach,
    /// Who dies in the middle of a run, if what was to fail has.
    midway: Option<&'static Part>,
    victim: Lock<Option<Arc<ControlBlock>>>,
    /// Clients that came there, and how often it has died; waited for.
    there: AtomicU32,
    deaths: AtomicU32,
    seed: Lock<u64>,
    /// The number of the run, and how many clients are done with it; waited for.
    round: AtomicU32,
    done: AtomicU32,
    next: AtomicUsize,
    outcomes: Lock<[Found; CLIENTS]>,
}

/// The first function of a client's thread. `argument` is the address of a `&'static Shared`.
extern "C" fn client(argument: usize) {
    // SAFETY: `run` passed it.
    let shared = unsafe { &*(argument as *const Shared) };
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    with_root(|| {
        let mut seen = 0;
        loop {
            while shared.round.load(Ordering::Acquire) == seen {
                platform().wait(&shared.round, seen, None);
            }
            seen = shared.round.load(Ordering::Acquire);
            let random = Random::new(*shared.seed.lock() ^ (number as u64 + 1) << 56);
            let mut client = Client {
                shared,
                files: Way::new(&shared.reach, number),
                number,
                random,
                contents: [const { None }; FILES],
                outcome: Found::default(),
            };
            client.batch();
            shared.outcomes.lock()[number] = client.outcome;
            shared.done.fetch_add(1, Ordering::Release);
            platform().wake(&shared.done, 1);
        }
    })
}

impl Shared {
    /// Called by each client in the middle of its work. When all have come, and the keeper's death,
    /// if it has died, has been found and seen to, somebody else dies.
    fn come_midway(&self) {
        let Some(part) = self.midway else {
            return;
        };
        let deaths = self.deaths.load(Ordering::Acquire);
        if self.there.fetch_add(1, Ordering::AcqRel) + 1 < CLIENTS as u32 {
            while self.deaths.load(Ordering::Acquire) == deaths {
                platform().wait(&self.deaths, deaths, None);
            }
            return;
        }
        let has_failed = |victim: &Arc<ControlBlock>| !victim.is_alive();
        if self.victim.lock().as_ref().is_some_and(has_failed) {
            pause(KEPT_AGAIN);
            if let Some(block) = part.block() {
                kill(&block, Reason::Killed);
            }
        }
        self.there.store(0, Ordering::Release);
        self.deaths.fetch_add(1, Ordering::Release);
        platform().wake(&self.deaths, u32::MAX);
    }
}

struct Client<'a> {
    shared: &'a Shared,
    files: Way<'a>,
    number: usize,
    random: Random,
    /// What is in each file, if it is there.
    contents: [Option<Vec<u8>>; FILES],
    outcome: Found,
}

impl Client<'_> {
    /// Work at random, then a look at everything, then nothing is left.
    fn batch(&mut self) {
        let root = match self.files.ask(|files| files.root()) {
            Ok(root) => root,
            Err(error) => return self.wrong(&format!("no root: {error:?}")),
        };
        for number in 0..OPERATIONS {
            if number == OPERATIONS / 2 {
                self.shared.come_midway();
            }
            self.count(|client| client.operation(root));
        }
        for file in 0..FILES {
            self.count(|client| client.look(root, file));
            self.count(|client| client.remove(root, file));
        }
    }

    fn count(&mut self, work: impl FnOnce(&mut Self) -> Result<(), FsError>) {
        self.outcome.calls += 1;
        let start = platform().now();
        let result = work(self);
        self.outcome.longest = self.outcome.longest.max(platform().now() - start);
        if let Err(error) = result {
            self.outcome.errors += 1;
            let note = Text::new(&format!("{error:?}"));
            self.outcome.note.get_or_insert(note);
        }
    }

    fn wrong(&mut self, what: &str) {
        self.outcome.is_wrong = true;
        self.outcome.note = Some(Text::new(what));
    }

    fn name(&self, file: usize) -> Result<RVec<u8>, FsError> {
        let name = format!("client {} file {file}", self.number);
        Ok(RVec::from_slice(name.as_bytes())?)
    }

    fn operation(&mut self, root: u64) -> Result<(), FsError> {
        let file = self.random.below(FILES as u64) as usize;
        if self.contents[file].is_none() {
            let name = self.name(file)?;
            self.files.change(
                |files| files.create(root, &name, FileKind::Regular, 0o644),
                |outcome| outcome.first,
            )?;
            self.contents[file] = Some(Vec::new());
            return Ok(());
        }
        match self.random.below(12) {
            0 => self.remove(root, file),
            1 => self.cut(root, file),
            2 => self.rename(root, file),
            10 => self.files.ask(|files| files.commit()),
            11 => self.append(root, file),
            3..5 => self.look(root, file),
            _ => self.write(root, file),
        }
    }

    fn write(&mut self, root: u64, file: usize) -> Result<(), FsError> {
        let offset = self.random.below(LONGEST - 6000) as usize;
        let length = 1 + self.random.below(6000) as usize;
        let byte = self.random.below(255) as u8 + 1;
        let inode = self.find(root, file)?;
        let data = RVec::filled(byte, length)?;
        let count = self
            .files
            .ask(|files| files.write(inode, offset as u64, &data))?;
        if count != length as u64 {
            self.wrong(&format!("{count} of {length} bytes written"));
        }
        if let Some(content) = &mut self.contents[file] {
            content.resize(content.len().max(offset + length), 0);
            content[offset..offset + length].fill(byte);
        }
        Ok(())
    }

    /// Writes a little at the end, once.
    fn append(&mut self, root: u64, file: usize) -> Result<(), FsError> {
        let size = self.contents[file].as_ref().map_or(0, Vec::len);
        let length = 1 + self.random.below(600) as usize;
        if size + length > LONGEST as usize {
            return Ok(());
        }
        let byte = self.random.below(255) as u8 + 1;
        let inode = self.find(root, file)?;
        let data = RVec::filled(byte, length)?;
        let written = self.files.change(
            |files| files.append(inode, &data),
            |outcome| (outcome.first, outcome.second),
        )?;
        if written != (size as u64, length as u64) {
            self.wrong(&format!("{length} bytes at {size}: {written:?}"));
        }
        if let Some(content) = &mut self.contents[file] {
            content.resize(size + length, byte);
        }
        Ok(())
    }

    fn find(&mut self, root: u64, file: usize) -> Result<u64, FsError> {
        let name = self.name(file)?;
        self.files.ask(|files| files.lookup(root, &name))
    }

    fn cut(&mut self, root: u64, file: usize) -> Result<(), FsError> {
        let size = self.random.below(LONGEST);
        let inode = self.find(root, file)?;
        self.files.ask(|files| files.truncate(inode, size))?;
        if let Some(content) = &mut self.contents[file] {
            content.resize(size as usize, 0);
        }
        Ok(())
    }

    fn rename(&mut self, root: u64, file: usize) -> Result<(), FsError> {
        let other = (file + 1) % FILES;
        let (name, new_name) = (self.name(file)?, self.name(other)?);
        let rename = |files: &Handle<dyn FileSystem>| {
            files.rename(root, &name, root, &new_name, Renaming::Replace)
        };
        self.files.change(rename, |_| ())?;
        self.contents[other] = self.contents[file].take();
        Ok(())
    }

    fn remove(&mut self, root: u64, file: usize) -> Result<(), FsError> {
        if self.contents[file].is_some() {
            let name = self.name(file)?;
            self.files
                .change(|files| files.unlink(root, &name), |_| ())?;
            self.contents[file] = None;
        }
        Ok(())
    }

    /// Compares a file with what must be in it.
    fn look(&mut self, root: u64, file: usize) -> Result<(), FsError> {
        let read = |files: &Handle<dyn FileSystem>, inode| {
            files.read(inode, 0, RVec::filled(7, LONGEST as usize)?)
        };
        let found = match self.find(root, file) {
            Ok(inode) => Some(self.files.ask(|files| read(files, inode))?),
            Err(FsError::NotFound) => None,
            Err(error) => return Err(error),
        };
        if found.as_deref() != self.contents[file].as_deref() {
            let lengths = [found.as_deref(), self.contents[file].as_deref()];
            let [found, expected] = lengths.map(|bytes| bytes.map(<[u8]>::len));
            self.wrong(&format!("file {file}: {found:?} bytes, of {expected:?}"));
        }
        Ok(())
    }
}

/// The shadow that lives through all runs, in front of the part `files`.
fn begin_shadow(
    ground: &Ground,
    parts: &'static Parts,
    files: &str,
    options: &str,
) -> Result<(Handle<dyn FileSystem>, Arc<ControlBlock>), String> {
    let said = |error: RpcError| format!("{error:?}");
    let mut grants = [const { None }; MOST_GRANTS];
    grants[0] = Some(respawn(parts, files).map_err(said)?);
    let options = RVec::from_slice(options.as_bytes()).map_err(said)?;
    let image = prepare(ground, "domains/vfs-shadow")?;
    let mut shadow = image
        .start("shadow", Limits::default(), grants, options)
        .map_err(|error| format!("the shadow does not start: {error:?}"))?;
    let files = shadow.offers[0].take().ok_or("the shadow offers nothing")?;
    let files = files
        .downcast::<dyn FileSystem>()
        .map_err(|_| "the shadow offers no file system")?;
    Ok((files, shadow.block))
}

/// Carries out the faults in `lines` on the stage of `target`.
///
/// # Errors
/// If it cannot begin or go on.
pub fn run<'a>(
    target: &str,
    lines: impl Iterator<Item = &'a str>,
    ground: &Ground,
) -> Result<(), String> {
    let mut campaign = Campaign::new(target, ground)?;
    for run in 0..WARM_UP {
        campaign.one(&Fault::harmless(run))?;
    }
    campaign.baseline = Some(campaign.counts());
    for line in lines.filter(|line| !line.is_empty()) {
        let fault = crate::plan::parse(line).ok_or_else(|| format!("no fault: {line}"))?;
        let report = campaign.one(&fault)?;
        (ground.report)(&report);
    }
    Ok(())
}

struct Campaign<'a> {
    ground: &'a Ground,
    /// The domain that is to fail.
    name: String,
    parts: &'static Parts,
    shared: &'static Shared,
    /// The shadow that lives through all runs, if there is one.
    shadow: Option<Arc<ControlBlock>>,
    baseline: Option<Counts>,
}

impl<'a> Campaign<'a> {
    fn new(target: &str, ground: &'a Ground) -> Result<Self, String> {
        let Stage {
            victim,
            plans,
            shadow,
            midway,
        } = stage(target)?;
        let files = plans.last().map_or("", |plan| plan.name);
        let all = plans.into_iter().map(|plan| Part::new(ground, plan));
        let parts: &'static Parts = crate::engine::keep(Parts {
            all: all.collect::<Result<_, _>>()?,
            ground: *ground,
        });
        let (reach, shadow) = match shadow {
            None => (Reach::Dying(parts, files), None),
            Some(options) => {
                let (files, block) = begin_shadow(ground, parts, files, options)?;
                (Reach::Lasting(files), Some(block))
            }
        };
        let shared = crate::engine::keep(Shared {
            reach,
            midway: midway.and_then(|name| parts.named(name)),
            victim: Lock::new(None),
            there: AtomicU32::new(0),
            deaths: AtomicU32::new(0),
            seed: Lock::new(0),
            round: AtomicU32::new(0),
            done: AtomicU32::new(0),
            next: AtomicUsize::new(0),
            outcomes: Lock::new(Default::default()),
        });
        let argument = core::ptr::from_ref(shared) as usize;
        let spawn = |_| platform().spawn("client", client, argument, &Attributes::KERNEL);
        if !(0..CLIENTS).all(|number| spawn(number).is_some()) {
            return Err("no memory for the clients".into());
        }
        Ok(Campaign {
            ground,
            name: victim.into(),
            parts,
            shared,
            shadow,
            baseline: None,
        })
    }

    fn counts(&self) -> Counts {
        Counts::now(self.ground, self.shadow_id())
    }

    fn shadow_id(&self) -> u32 {
        self.shadow.as_ref().map_or(0, |shadow| shadow.id)
    }

    /// What is to fail.
    fn victim(&self) -> Result<Arc<ControlBlock>, String> {
        let part = self.parts.named(&self.name);
        let block = part.and_then(Part::block);
        Ok(block.ok_or("what is to fail does not run")?)
    }

    /// Lets the clients work while the victim fails.
    fn work(&self, fault: &Fault, victim: &Arc<ControlBlock>) -> Result<[Found; CLIENTS], String> {
        // Threads that answer interrupts go to rest.
        pause(REST);
        plant(victim, fault);
        *self.shared.victim.lock() = Some(victim.clone());
        self.begin(fault.seed);
        if fault.kind == Kind::Kill {
            pause(u64::from(fault.amount) * 1000 * self.ground.stretch);
            kill(victim, Reason::Killed);
        }
        let found = self.finish();
        self.shared.victim.lock().take();
        found.ok_or_else(|| {
            (self.ground.report)(&stuck(fault, "the clients do not come back"));
            format!("run {}: the clients hang", fault.run)
        })
    }

    /// One run; its line of the ledger. An error ends the campaign.
    fn one(&mut self, fault: &Fault) -> Result<String, String> {
        let before = self.baseline.unwrap_or_else(|| self.counts());
        self.shared.reach.begin();
        let victim = self.victim()?;
        let clients = self.work(fault, &victim)?;
        let found = Found::joined(clients);
        // What is planted in code that nobody runs is not reached.
        let reason = victim.reason();
        let reached = !victim.is_alive() && reason != Reason::Exited;
        self.shared.reach.end();
        let restarts = self.clear_away(fault)?;
        let after = self.settled(&before);
        let is_back = after.is_back(&before, self.ground.slack);
        if self.baseline.is_some() && !is_back {
            // This loss is told once.
            self.baseline = Some(after);
        }
        let course = Course {
            fault,
            domain: &self.name,
            amount: fault.amount,
            id: victim.id,
            reason,
            reached,
            latency: reached.then_some(found.longest),
            restarts,
            found,
            before,
            after,
            slack: self.ground.slack,
        };
        Ok(course.line())
    }

    fn begin(&self, seed: u64) {
        *self.shared.seed.lock() = seed;
        self.shared.done.store(0, Ordering::Relaxed);
        self.shared.round.fetch_add(1, Ordering::Release);
        platform().wake(&self.shared.round, u32::MAX);
    }

    fn finish(&self) -> Option<[Found; CLIENTS]> {
        let deadline = platform().now() + PATIENCE;
        let done = &self.shared.done;
        loop {
            let now = done.load(Ordering::Acquire);
            if now as usize == CLIENTS {
                return Some(core::mem::take(&mut *self.shared.outcomes.lock()));
            }
            if platform().now() > deadline {
                return None;
            }
            platform().wait(done, now, Some(deadline));
        }
    }

    /// The counts when what is dead has been cleared away.
    fn settled(&self, before: &Counts) -> Counts {
        let patience = self.baseline.map_or(100_000_000, |_| PATIENCE);
        let slack = self.ground.slack;
        Counts::settled(self.ground, self.shadow_id(), before, slack, patience)
    }

    /// Ends all that does not stay, and waits until nothing of them is left; how many were replaced
    /// before.
    fn clear_away(&self, fault: &Fault) -> Result<usize, String> {
        let goes = |part: &&Part| !part.plan.stays;
        let going: Vec<_> = self.parts.all.iter().rev().filter(goes).collect();
        let ended: Vec<_> = going.iter().flat_map(|part| part.end()).collect();
        match ended.iter().find(|block| block.state() != State::Gone) {
            None => Ok(ended.len().saturating_sub(going.len())),
            Some(block) => {
                (self.ground.report)(&stuck(fault, "a dead domain is not cleared away"));
                Err(format!("run {}: {} does not go", fault.run, block.name()))
            }
        }
    }
}
