//! One supervised domain: its state, and how it is started, ended and replaced.
//!
//! States, guarded by the lock of [`Service::state`]: no instance; an instance that serves. Work on
//! the domain itself (start, end, replace) is done under that lock, so that of all who find the
//! same instance dead only the first one replaces it; the others wait for the lock and then find
//! another instance there. That may take long, so a caller who is ended meanwhile waits no more: a
//! start can depend on what the caller's domain holds until its threads have left it, such as a
//! gate that it has closed.

use crate::failure::{self, Failure};
use crate::grants;
use crate::images::Prepared;
use crate::last_words::LogEnd;
use crate::system::System;
use crate::version::{Version, Versions};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::{log, time};
use interfaces::{
    AnyHandle, CrashReason, Domain, DomainSpec, DomainState, Gate, Handle, RVec, RpcError,
    RpcResult, StartError, Text,
};
use manifest::model::MOST_GRANTS;
use manifest::{DomainIndex, Limits, order};
use restart::{Budget, Verdict};

/// In `pass`: how much memory is free, in bytes, which is no word of the command line.
const FREE_MEMORY: &str = "free-memory";

/// A domain that does not start is not tried again before so many nanoseconds.
const RETRY_AFTER: u64 = 1_000_000_000;
/// How long a start waits for memory, and how long it rests before it looks again, at first and at
/// most; in nanoseconds.
const MEMORY_PATIENCE: u64 = 5_000_000_000;
const MEMORY_PAUSE: u64 = 1_000_000;
const MEMORY_PAUSE_LATER: u64 = 50_000_000;
/// So often a start is tried again because a domain that it needs crashed meanwhile.
const ATTEMPTS: u32 = 3;
/// Threads that a domain may create where the manifest says nothing.
const THREADS: u32 = 64;
/// Bytes in a page.
const PAGE: u64 = 4096;
/// How long the remains of an ended instance are waited for, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;

/// An instance that serves.
pub struct Running {
    /// Its number.
    pub id: u32,
    /// The name in its image.
    pub image: Text<32>,
    /// What it offers, in the order of its declaration.
    pub offers: [Option<AnyHandle>; 4],
    /// To watch and end it.
    pub control: Handle<dyn Domain>,
    /// Domains and instances without which it cannot work.
    served_by: Vec<(DomainIndex, u32)>,
}

/// What the lock of a domain guards.
pub struct State {
    /// The instance that serves.
    pub running: Option<Running>,
    /// Which images it is started from.
    pub versions: Versions,
    /// The crashes that it may have.
    pub budget: Budget,
    /// When it last did not start, and why.
    pub refused: Option<(u64, Failure)>,
}

/// What others want to know without waiting for a start to end.
#[derive(Clone, Copy, Default)]
pub struct Status {
    /// The instance that serves (0: none).
    pub id: u32,
    /// Crashes since boot.
    pub crashes: u32,
    /// Starts since boot.
    pub starts: u32,
    /// It stays down.
    pub gave_up: bool,
    /// Updates since boot.
    pub updates: u32,
    /// The name in the image of the last instance.
    pub image: Text<32>,
    /// Those of the starts that were made by updates.
    pub by_update: u32,
}

impl Status {
    /// Restarts since boot.
    pub fn restarts(&self) -> u32 {
        self.starts.saturating_sub(1 + self.by_update)
    }

    /// Nobody wants it any more, and what was is forgotten.
    pub fn forget(&mut self) {
        *self = Status {
            image: self.image,
            ..Status::default()
        };
    }

    /// Whether it serves, or did and is to do so again.
    pub fn is_wanted(&self) -> bool {
        self.starts > 0 && !self.gave_up
    }
}

/// A gate, and the number of the domain whose calls it lets through.
pub type Attached = (DomainIndex, Arc<Handle<dyn Gate>>);

/// A supervised domain.
pub struct Service {
    /// Its image, or why the kernel refused it.
    pub image: Result<Arc<Prepared>, String>,
    /// Work on the domain is done under this lock.
    pub state: Mutex<State>,
    /// Held for moments.
    pub status: Mutex<Status>,
    /// The gates of those that call it.
    gates: Mutex<Vec<Attached>>,
}

/// How a try to start ended without an instance.
pub enum Unstarted {
    /// It crashed while it started.
    Crashed,
    /// It did not crash; what was said.
    Failed(Failure),
}

impl Service {
    /// A domain that was not started yet.
    pub fn new(image: Result<Arc<Prepared>, String>, limits: Limits) -> Self {
        let state = Mutex::new(State {
            running: None,
            versions: Versions::default(),
            budget: budget(limits),
            refused: None,
        });
        Service {
            image,
            state,
            status: Mutex::new(Status::default()),
            gates: Mutex::default(),
        }
    }

    /// Notes where the domain `holder` can have its calls wait, instead of what its former
    /// instance said.
    pub fn attach(&self, holder: DomainIndex, gate: Handle<dyn Gate>) {
        let mut gates = self.gates.lock();
        let former = gates.iter().position(|(other, _)| *other == holder);
        let former = former.map(|at| gates.swap_remove(at));
        gates.push((holder, Arc::new(gate)));
        drop(gates);
        drop(former);
    }

    /// Forgets all gates: nobody calls it any more.
    pub fn detach_all(&self) {
        let gates = core::mem::take(&mut *self.gates.lock());
        drop(gates);
    }

    /// All gates in front of the domain.
    pub fn gates(&self) -> Vec<Attached> {
        self.gates.lock().clone()
    }

    /// What is known of it now.
    pub fn status(&self) -> Status {
        *self.status.lock()
    }

    /// The name in the image that it is started from.
    pub fn image_name(&self) -> Text<32> {
        self.status.lock().image
    }

    /// What its instance offers, if there is one; nothing is started.
    ///
    /// # Errors
    /// `Interrupted` if the caller is ended while he waits.
    pub fn offers(&self) -> RpcResult<Vec<AnyHandle>> {
        let state = self.state.lock_interruptible();
        let state = state.ok_or(RpcError::Interrupted)?;
        let offers = state
            .running
            .iter()
            .flat_map(|running| running.offers.iter().flatten());
        Ok(offers.filter_map(|offer| offer.duplicate().ok()).collect())
    }
}

/// A fresh budget.
pub fn budget(limits: Limits) -> Budget {
    Budget::new(limits.restarts, u64::from(limits.window_s) * 1_000_000_000)
}

/// Whether an instance can be called.
pub fn is_alive(control: &Handle<dyn Domain>) -> bool {
    control
        .info()
        .is_ok_and(|info| info.state == DomainState::Running)
}

impl System {
    /// Has `work` done with the instance that serves the domain `index`, after starting one if
    /// there is none. If the instance `failed` (0: none) serves, it is taken for dead and replaced.
    ///
    /// # Errors
    /// Why there is no instance.
    pub fn with_instance<R>(
        self: &Arc<Self>,
        index: DomainIndex,
        failed: u32,
        work: impl FnOnce(&Running) -> R,
    ) -> Result<R, Failure> {
        let service = &self.services[index];
        let mut state = service
            .state
            .lock_interruptible()
            .ok_or(Failure::Interrupted)?;
        let unusable = |running: &mut Running| {
            running.id == failed || !is_alive(&running.control) || !self.is_served(running)
        };
        if let Some(running) = state.running.take_if(unusable) {
            let crashed = running.id == failed || !is_alive(&running.control);
            self.retire(index, running);
            if crashed {
                self.count_crash(index, &mut state)?;
            }
        }
        if state.running.is_none() {
            state.running = Some(self.launch(index, &mut state)?);
        }
        Ok(work(state.running.as_ref().expect("launched just now")))
    }

    /// Whether the instances that this one cannot do without are still those that serve.
    fn is_served(&self, running: &Running) -> bool {
        running
            .served_by
            .iter()
            .all(|&(index, id)| self.services[index].status().id == id)
    }

    /// Ends an instance with all domains that it started, and waits until what it owned is free
    /// again.
    pub fn retire(&self, index: DomainIndex, running: Running) {
        self.services[index].status.lock().id = 0;
        self.end(index, running);
    }

    /// As [`retire`](Self::retire), for an instance that does not serve.
    pub fn end(&self, index: DomainIndex, running: Running) {
        let name = &self.manifest[index].name;
        let Running {
            id,
            control,
            offers,
            ..
        } = running;
        drop(offers);
        if let Err(error) = control.kill() {
            log!("{name}: instance {id} cannot be ended: {error}");
        }
        self.end_children(id);
        if control.wait_until(time::now() + PATIENCE) == Ok(false) {
            log!("{name}: something of instance {id} does not go away");
        }
    }

    /// Ends all domains that instance `parent` started, and those that they started.
    pub fn end_children(&self, parent: u32) {
        let mut ended = Vec::from([parent]);
        let mut from = parent;
        while let Ok(Some(info)) = self.kernel.monitor.next(from + 1) {
            from = info.id;
            if !ended.contains(&info.parent) {
                continue;
            }
            ended.push(info.id);
            if let Ok(Some(child)) = self.kernel.control.domain(info.id) {
                let _ = child.kill();
            }
        }
    }

    /// Counts a crash, and pauses as the budget says.
    fn count_crash(&self, index: DomainIndex, state: &mut State) -> Result<(), Failure> {
        let domain = &self.manifest[index];
        let service = &self.services[index];
        service.status.lock().crashes += 1;
        match state.budget.crashed(time::now()) {
            Verdict::RestartAfter(pause) => {
                if pause > 0 {
                    time::sleep(pause);
                }
                Ok(())
            }
            Verdict::GiveUp if state.versions.fall_back() => {
                log!(
                    "{}: the image of the update crashes too often; going back to the one before",
                    domain.name
                );
                state.budget = budget(domain.limits);
                Ok(())
            }
            Verdict::GiveUp => {
                service.status.lock().gave_up = true;
                let Limits {
                    restarts, window_s, ..
                } = domain.limits;
                log!(
                    "{}: {restarts} crashes within {window_s} s; it stays down",
                    domain.name
                );
                Err(Failure::GaveUp(domain.name.clone()))
            }
        }
    }

    /// Starts an instance, again if it crashes while it starts.
    fn launch(self: &Arc<Self>, index: DomainIndex, state: &mut State) -> Result<Running, Failure> {
        let name = &self.manifest[index].name;
        if state.budget.gave_up() {
            return Err(Failure::GaveUp(name.clone()));
        }
        if let Some((when, failure)) = &state.refused
            && time::now() < when + RETRY_AFTER
        {
            return Err(failure.clone());
        }
        let mut attempts = 1;
        let (patient_until, mut pause) = (time::now() + MEMORY_PATIENCE, MEMORY_PAUSE);
        loop {
            let began = time::now();
            let needs = self.needs(index);
            match self.start_once(index, state.versions.present.as_ref()) {
                Ok(running) if self.publish(index, &running, began) => return Ok(running),
                Ok(running) => self.retire(index, running),
                Err(Unstarted::Crashed) => log!("{name}: crashed while it started"),
                Err(Unstarted::Failed(_)) if attempts < ATTEMPTS && self.needs(index) != needs => {
                    attempts += 1;
                    continue;
                }
                Err(Unstarted::Failed(Failure::NoMemory(_))) if began < patient_until => {
                    // What the former instance had is on its way back, and caches are asked for
                    // some.
                    time::sleep(pause);
                    pause = (pause * 2).min(MEMORY_PAUSE_LATER);
                    continue;
                }
                Err(Unstarted::Failed(failure @ Failure::NoMemory(_))) => return Err(failure),
                Err(Unstarted::Failed(failure)) => {
                    state.refused = Some((time::now(), failure.clone()));
                    return Err(failure);
                }
            }
            self.count_crash(index, state)?;
        }
    }

    /// The instances of the domains that this one needs, started if need be; 0 for one that is not
    /// to be had.
    fn needs(self: &Arc<Self>, index: DomainIndex) -> Vec<u32> {
        let needs = order::needs(&self.manifest, index);
        let instance = |need| {
            self.with_instance(need, 0, |running| running.id)
                .unwrap_or(0)
        };
        needs.into_iter().map(instance).collect()
    }

    /// Makes a new instance known. Whether it is still alive: if it died before it was known,
    /// nobody saw it die.
    fn publish(&self, index: DomainIndex, running: &Running, began: u64) -> bool {
        let status = {
            let mut status = self.services[index].status.lock();
            status.id = running.id;
            status.image = running.image;
            status.starts += 1;
            *status
        };
        let name = &self.manifest[index].name;
        let microseconds = (time::now() - began) / 1000;
        match status.starts {
            1 => log!(
                "{name}: instance {} started in {microseconds} us",
                running.id
            ),
            _ => log!(
                "{name}: instance {} started in {microseconds} us: restart {} after {} crashes",
                running.id,
                status.restarts(),
                status.crashes
            ),
        }
        is_alive(&running.control)
    }

    /// Starts an instance of this version; without one, of the image that the manifest names.
    ///
    /// # Errors
    /// How it ended.
    pub fn start_once(
        self: &Arc<Self>,
        index: DomainIndex,
        version: Option<&Version>,
    ) -> Result<Running, Unstarted> {
        let domain = &self.manifest[index];
        let cause =
            |text: String| Unstarted::Failed(Failure::Cause(format!("{}: {text}", domain.name)));
        let no_memory = || Unstarted::Failed(Failure::NoMemory(domain.name.clone()));
        let named = || self.services[index].image.as_ref();
        let prepared = version.map_or_else(named, |version| Ok(&version.image));
        let prepared = prepared.map_err(|text| cause(text.clone()))?;
        let (grants, served_by) = self.grants(index, prepared).map_err(Unstarted::Failed)?;
        let own = version.and_then(|version| version.options.as_deref());
        let options = self
            .options(index, own.unwrap_or(&domain.options))
            .map_err(|error| Unstarted::Failed(Failure::of_call(&domain.name, error, "")))?;
        let log = LogEnd::now(&self.kernel.monitor);
        let started = prepared.image.start(self.spec(index), grants, options);
        let started = started.map_err(|error| match error {
            StartError::Crashed => Unstarted::Crashed,
            StartError::Rpc(RpcError::NoMemory) | StartError::Failed(RpcError::NoMemory) => {
                no_memory()
            }
            StartError::Failed(_) => {
                let said = log.last_words(&domain.name);
                cause(said.unwrap_or_else(|| failure::start(&error)))
            }
            other => cause(failure::start(&other)),
        })?;
        let info = started
            .control
            .info()
            .map_err(|error| Unstarted::Failed(Failure::of_call(&domain.name, error, "")))?;
        Ok(Running {
            id: info.id,
            image: prepared.name,
            offers: started.offers,
            control: started.control,
            served_by,
        })
    }

    /// Finds all grants, in the order of the image's wants. A grant that the image can do without
    /// is left out if it is not to be had.
    #[allow(clippy::type_complexity, reason = "two halves of one answer")]
    fn grants(
        self: &Arc<Self>,
        index: DomainIndex,
        image: &Prepared,
    ) -> Result<([Option<AnyHandle>; MOST_GRANTS], Vec<(DomainIndex, u32)>), Failure> {
        let domain = &self.manifest[index];
        let mut grants = [const { None }; MOST_GRANTS];
        let mut served_by = Vec::new();
        for (port, place) in image.wants.iter().zip(&mut grants) {
            let number = domain
                .grants
                .iter()
                .position(|grant| grant.port == port.name.as_str());
            let Some(number) = number else {
                continue;
            };
            match grants::resolve(self, index, number) {
                Ok(granted) => {
                    *place = Some(granted.handle);
                    served_by.extend(granted.served_by.filter(|_| !port.optional));
                }
                Err(failure) if port.optional => log!(
                    "{}: without `{}`: {}",
                    domain.name,
                    port.name,
                    failure.text()
                ),
                Err(failure) => return Err(failure),
            }
        }
        Ok((grants, served_by))
    }

    fn spec(&self, index: DomainIndex) -> DomainSpec {
        let domain = &self.manifest[index];
        let memory = self.kernel.monitor.memory();
        let total = memory.map_or(0, |memory| memory.total / PAGE);
        let half = total / 2;
        let or_half = |pages: u64| if pages == 0 { half } else { pages };
        let Limits {
            pages,
            shared_pages,
            threads,
            calls,
            call_ms,
            total_pages,
            reserve_pages,
            log_rate,
            weight,
            cpu_percent,
            ..
        } = domain.limits;
        let threads = if threads == 0 { THREADS } else { threads };
        DomainSpec {
            name: Text::new(&domain.name),
            page_limit: or_half(pages),
            shared_limit: or_half(shared_pages),
            thread_limit: threads,
            call_limit: calls,
            call_budget_ms: call_ms,
            reserve_pages,
            log_rate,
            group: 0,
            group_pages: if total_pages == 0 {
                total / 4 * 3
            } else {
                total_pages
            },
            group_threads: threads,
            weight,
            cpu_percent,
        }
    }

    /// The domain's options, one setting in a line: `own`, which are those of the manifest or of an
    /// update, the words passed on from the command line, how much memory is free, if it is to
    /// know, and for the personality what each program may ask for.
    fn options(&self, index: DomainIndex, own: &str) -> RpcResult<RVec<u8>> {
        let domain = &self.manifest[index];
        let mut lines = Vec::from([String::from(own)]);
        let passed = |word: &String| match word.as_str() {
            FREE_MEMORY => Some(format!(
                "{FREE_MEMORY}={}",
                self.kernel.monitor.memory().ok()?.free
            )),
            word => self.passed(index, word).map(String::from),
        };
        lines.extend(domain.pass.iter().filter_map(passed));
        if self.manifest.boot.personality.as_ref() == Some(&domain.name) {
            let line = |program: &manifest::Program| {
                format!("program {}: {}", program.name, program.services.join(" "))
            };
            lines.extend(self.manifest.programs.iter().map(line));
            lines.push(format!("command-line {}", self.words.line()));
            lines.extend(
                self.root_disk(index)
                    .map(|name| format!("root-disk {name}")),
            );
        }
        lines.retain(|line| !line.is_empty());
        RVec::from_slice(lines.join("\n").as_bytes())
    }
}

/// Why an instance ended: the name of the reason in words, `page fault` for `PageFault`.
pub fn reason(reason: CrashReason) -> String {
    let mut words = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
