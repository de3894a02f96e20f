//! Lets foes loose, and ends them and others at random moments.

use crate::foe::no_foe;
use crate::options::Options;
use crate::random::Random;
use crate::score::{self, Score, Watch, Whistle};
use crate::world::{self, World, limits};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::{log, time};
use hostile_calls::METHODS;
use interfaces::{
    AddressSpaces, AnyHandle, Archive, CommandLine, Domain, DomainControl, DomainState, Events,
    Foe, Handle, Hardware, HeapAudit, Image, Legacy, Loader, MemoryObjects, MemoryWatch, Monitor,
    Order, RVec, Referee, RpcError, Tracer,
};

/// What the kernel grants to the director.
pub struct Kernel {
    /// Verifies images.
    pub loader: Handle<dyn Loader>,
    /// Shows domains.
    pub monitor: Handle<dyn Monitor>,
    /// Ends domains.
    pub control: Handle<dyn DomainControl>,
    /// The boot archive.
    pub archive: Handle<dyn Archive>,
    /// The machine; not on the hosted platform.
    pub hardware: Option<Handle<dyn Hardware>>,
    /// Tells who needs memory; not on the hosted platform.
    pub memory: Option<Handle<dyn MemoryWatch>>,
    /// Makes memory objects.
    pub objects: Handle<dyn MemoryObjects>,
    /// Makes events.
    pub events: Handle<dyn Events>,
    /// Shows calls.
    pub tracer: Handle<dyn Tracer>,
    /// Makes random numbers.
    pub random: Handle<dyn interfaces::Random>,
    /// Makes address spaces; not on the hosted platform.
    pub spaces: Option<Handle<dyn AddressSpaces>>,
    /// The command line.
    pub command_line: Option<Handle<dyn CommandLine>>,
    /// Keeps a handle; not on the hosted platform.
    pub legacy: Option<Handle<dyn Legacy>>,
    /// Looks at the heaps; in kernels for tests.
    pub auditor: Option<Handle<dyn HeapAudit>>,
}

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// How long a sequence may take.
const LIMIT: u64 = 30 * MS;
/// How long it may take until all of a dead domain is taken back, or a service answers.
pub const PATIENCE: u64 = 20_000 * MS;
/// Sequences on one system, which is worn out then.
const WORLD: u64 = 120;
/// Sequences between two looks at whether everybody answers.
const PROBE: u64 = 25;
/// Every so many foes have what a driver has.
const DRIVERS: u64 = 4;
/// The run tells how far it is so often.
const TELL: u64 = 250 * MS;
/// It tells what was called so often.
const TELL_COUNTS: u64 = 20_000 * MS;
/// Findings, and it ends.
const MOST_FINDINGS: u32 = 10;
/// The number of the foe's grant.
const REFEREE: usize = 0;

/// The run.
pub struct Director {
    /// What the kernel grants.
    pub kernel: Kernel,
    /// What to do.
    pub options: Options,
    score: Arc<Score>,
    foe: Option<Handle<dyn Image>>,
    findings: u32,
    calls: u64,
    told: u64,
    told_counts: u64,
    /// Free memory without a system under attack, at the end of the first.
    pub baseline: Option<u64>,
    /// The most that was missing at the end of one, in bytes.
    pub most_missing: u64,
    /// Domains that were ended on purpose.
    pub ended: Vec<u32>,
}

/// A foe and what is known of it.
pub struct Duel {
    /// Its object.
    pub foe: Handle<dyn Foe>,
    /// Authority over it.
    pub control: Handle<dyn Domain>,
    /// Its instance.
    pub id: u32,
    /// What it has done.
    pub watch: Arc<Watch>,
    /// Its threads.
    pub threads: u32,
    /// It has what a driver has.
    pub is_driver: bool,
}

/// An error in words.
pub fn say(error: RpcError) -> String {
    format!("{error}")
}

impl Kernel {
    /// The image at `path`.
    ///
    /// # Errors
    /// In words.
    pub fn image(&self, path: &str) -> Result<Handle<dyn Image>, String> {
        world::image(self, path)
    }

    /// How many times more patience a machine needs that is emulated.
    pub fn stretch(&self) -> u64 {
        if self.hardware.is_some() { 8 } else { 1 }
    }
}

impl Director {
    /// A run that has not begun.
    pub fn new(kernel: Kernel, options: Options) -> Self {
        Director {
            kernel,
            options,
            score: Score::new(),
            foe: None,
            findings: 0,
            calls: 0,
            told: 0,
            told_counts: 0,
            baseline: None,
            most_missing: 0,
            ended: Vec::new(),
        }
    }

    /// The whole run; the status that it ends with.
    pub fn run(mut self) -> u8 {
        for (of, name, why) in score::EXCLUDED {
            log!("excluded {of}.{name}: {why}");
        }
        let begin = time::now();
        let mut next = self.options.first;
        let end = next.saturating_add(self.options.count);
        self.told_counts = begin;
        while next < end && time::now() - begin < self.options.time {
            next = match self.one_world(next, end, begin) {
                Ok(next) => next,
                Err(why) => {
                    self.find(next, &why);
                    next + 1
                }
            };
            if self.findings >= MOST_FINDINGS {
                break;
            }
        }
        self.score.tell();
        log!(
            "weighed: {} KiB missing at the end of a system, at most",
            self.most_missing >> 10
        );
        log!(
            "ended: {} sequences, {} calls, {} findings",
            next - self.options.first,
            self.calls,
            self.findings
        );
        u8::from(self.findings > 0)
    }

    fn find(&mut self, sequence: u64, why: &str) {
        self.findings += 1;
        log!("FINDING in sequence {sequence}: {why}");
    }

    /// Sequences from `next` on, on one system; the first that is left.
    fn one_world(&mut self, mut next: u64, end: u64, begin: u64) -> Result<u64, String> {
        let before = self.living();
        let world = World::start(&self.kernel)?;
        let (first, last) = (next, next.saturating_add(WORLD).min(end));
        // One at least: a machine may be so slow that the time is over when the system has started.
        let limit = self.options.time;
        let is_time = |next| next == first || time::now() - begin < limit;
        while next < last && is_time(next) && !world.is_over() {
            self.tell(next);
            let outcome = self.sequence(&world, next);
            let is_bad = outcome.is_err();
            if let Err(why) = outcome {
                self.find(next, &why);
            }
            next += 1;
            if is_bad {
                break;
            }
        }
        self.end_world(world, &before)?;
        Ok(next)
    }

    fn tell(&mut self, next: u64) {
        let now = time::now();
        if now - self.told > TELL || self.options.loud {
            self.told = now;
            log!("sequence {next}, {} calls", self.calls);
        }
        if now - self.told_counts > TELL_COUNTS {
            self.told_counts = now;
            self.score.tell();
        }
    }

    /// One foe from its start to its end.
    fn sequence(&mut self, world: &World, number: u64) -> Result<(), String> {
        let mut random = Random::of(self.options.seed, number);
        let only = self.only(number, &mut random);
        if only.is_some_and(|method| !score::is_called(method)) {
            return Ok(());
        }
        let is_driver = number.is_multiple_of(DRIVERS) || only.is_some_and(score::is_of_drivers);
        let duel = self.challenge(world, only, is_driver, &mut random)?;
        let order = Order {
            seed: random.next(),
            calls: 20 + random.below(60) as u32,
            threads: duel.threads,
            only: only.map_or(u32::MAX, |method| method as u32),
            loud: self.options.loud,
        };
        // It may have died by one of its own objects before it could answer.
        match duel.foe.attack(order) {
            Ok(()) | Err(RpcError::DomainCrashed) => {}
            Err(error) => return Err(format!("the foe does not attack: {error}")),
        }
        self.watch(world, &duel, &mut random);
        self.calls += duel.watch.calls();
        self.look(world, duel, number).map_err(|why| match only {
            Some(only) => format!("{} alone: {why}", score::name(only)),
            None => why,
        })
    }

    /// Ends the foe and looks whether all is well.
    fn look(&mut self, world: &World, duel: Duel, number: u64) -> Result<(), String> {
        let is_driver = duel.is_driver;
        self.finish(world, duel)?;
        if is_driver {
            world::forget_device_memory(&self.kernel);
        }
        self.judge(world)?;
        self.audit()?;
        match number.is_multiple_of(PROBE) {
            true => self.probe(world),
            false => Ok(()),
        }
    }

    /// The only method that is called in sequence number `number`, if it is one of those. That may
    /// depend on what was called before, so it is told with what is found.
    fn only(&self, number: u64, random: &mut Random) -> Option<usize> {
        if self.options.method.is_some() {
            return self.options.method;
        }
        let number = usize::try_from(number).ok();
        match number.filter(|it| *it < METHODS.len()) {
            Some(method) => Some(method),
            None => random.once_in(4).then(|| self.score.choose(random)),
        }
    }

    /// A new foe with handles to some of what there is.
    fn challenge(
        &mut self,
        world: &World,
        only: Option<usize>,
        is_driver: bool,
        random: &mut Random,
    ) -> Result<Duel, String> {
        if self.foe.is_none() {
            self.foe = Some(self.kernel.image("domains/hostile")?);
        }
        let image = self.foe.as_ref().ok_or("there is no image of the foe")?;
        let watch = Watch::new(self.score.clone());
        let referee = Handle::<dyn Referee>::new(Whistle(watch.clone())).map_err(no_foe)?;
        let mut grants = [const { None }; 16];
        grants[REFEREE] = Some(referee.into_any());
        let options = RVec::from_slice(b"foe").map_err(no_foe)?;
        let mut started = image
            .start(limits("foe", 4096, 8192, 8), grants, options)
            .map_err(|error| format!("the foe does not start: {error:?}"))?;
        let offer = started.offers[0].take().ok_or("the foe offers nothing")?;
        let foe = offer.downcast::<dyn Foe>();
        let foe = foe.map_err(|_| String::from("the foe offers something else"))?;
        let mut arms = targets(world, only, random);
        if is_driver {
            arms.extend(world::equipment(&self.kernel)?);
        }
        for target in arms {
            foe.arm(target).map_err(say)?;
        }
        let id = started.control.info().map_err(say)?.id;
        Ok(Duel {
            foe,
            control: started.control,
            id,
            watch,
            threads: 1 + random.below(score::THREADS) as u32,
            is_driver,
        })
    }

    /// Waits until the foe has done what it should, or has had time enough, and has others die
    /// meanwhile.
    fn watch(&mut self, world: &World, duel: &Duel, random: &mut Random) {
        let stretch = self.options.stretch;
        let begin = time::now();
        let limit = match random.once_in(4) {
            true => random.below((LIMIT / 4) as usize) as u64,
            false => LIMIT,
        };
        let mut death = random
            .once_in(5)
            .then(|| random.below((LIMIT / 4) as usize) as u64);
        while duel.watch.left() < duel.threads {
            let past = time::now() - begin;
            if past >= limit * stretch {
                break;
            }
            if death.is_some_and(|at| past >= at * stretch) {
                death = None;
                self.have_one_die(world, random);
            }
            if duel
                .control
                .info()
                .is_ok_and(|it| it.state != DomainState::Running)
            {
                break;
            }
            time::sleep(100_000 * stretch);
        }
    }

    /// Ends a domain of the system, at once or in its next call.
    fn have_one_die(&mut self, world: &World, random: &mut Random) {
        let domains = world.net.domains.lock();
        let fits = |name: &str| name != "init";
        let all: Vec<_> = domains.iter().filter(|it| fits(it.name.as_str())).collect();
        let Some(chosen) = all.get(random.below(all.len())) else {
            return;
        };
        self.ended.push(chosen.id);
        let _ = match random.once_in(2) {
            true => chosen.control.kill(),
            false => chosen.control.crash_next_call(),
        };
    }
}

/// What a foe gets: a dozen things, or what is needed to call the only method, and things that may
/// lead to it.
fn targets(world: &World, only: Option<usize>, random: &mut Random) -> Vec<AnyHandle> {
    let interface = only.map(|method| METHODS[method].interface);
    let mut found = world.net.all(|it| Some(it) != interface);
    let keep = if only.is_some() { 24 } else { 12 };
    while found.len() > keep {
        let at = random.below(found.len());
        drop(found.swap_remove(at));
    }
    found.extend(world.net.all(|it| Some(it) == interface));
    found
}
