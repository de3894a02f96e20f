//! Replacing a running domain by another image.
//!
//! 1. Everything that can be known beforehand is checked: the file, its ports, and that all calls
//!    to the domain pass a gate.
//! 2. If the domain hands its state over and has no hardware, the new instance starts beside the
//!    old one.
//! 3. The gates are closed. Calls that run longer than [`PATIENCE`] are unwound with the old
//!    instance, and the shadow repeats them with the new one; but if there is state to be handed
//!    over, the update ends here.
//! 4. A new instance that was started gets the state, and the old one is ended when it has agreed
//!    to that. Otherwise the old one is ended first, since a device has one driver and a disk one
//!    file system; if the new one does not come up then, the old image is started again and gets
//!    its state back.
//! 5. The gates are opened, and what waited goes on.
//!
//! From then on restarts use the new image. If it uses its restart budget up, the one before is
//! gone back to.

use crate::estate::Keeper;
use crate::failure::Failure;
use crate::service::{self, Running, State, Unstarted};
use crate::system::System;
use crate::version::Version;
use crate::{fit, images, limit};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{log, thread, time};
use interfaces::{
    Closed, DomainState, Estate, Gate, Handle, RRef, RVec, RpcError, RpcResult, Text, UpdateError,
    Updated, Updater,
};
use manifest::{DomainIndex, Source};

/// How long calls that run are waited for, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
/// How long a new instance may take to start, in nanoseconds.
const START_LIMIT: u64 = 5_000_000_000;

type Answer = Result<Updated, UpdateError>;

/// Why a domain was not replaced, as in [`UpdateError`].
enum Trouble {
    NoSuchDomain,
    BadImage(String),
    Unfit(String),
    NoShadow(String),
    Kept(String),
    Lost(String),
}

impl Trouble {
    fn text(&self) -> &str {
        match self {
            Trouble::NoSuchDomain => "no such domain",
            Trouble::BadImage(why)
            | Trouble::Unfit(why)
            | Trouble::NoShadow(why)
            | Trouble::Kept(why)
            | Trouble::Lost(why) => why,
        }
    }
}

impl From<Trouble> for UpdateError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoSuchDomain => UpdateError::NoSuchDomain,
            Trouble::BadImage(why) => UpdateError::BadImage(Text::new(&why)),
            Trouble::Unfit(why) => UpdateError::Unfit(Text::new(&why)),
            Trouble::NoShadow(why) => UpdateError::NoShadow(Text::new(&why)),
            Trouble::Kept(why) => UpdateError::Kept(Text::new(&why)),
            Trouble::Lost(why) => UpdateError::Lost(Text::new(&why)),
        }
    }
}

/// Authority to replace domains.
pub struct Replacer(pub Arc<System>);

impl Updater for Replacer {
    /// A thread of `init`'s own does it, so that an update that was begun does not depend on who
    /// asked for it.
    fn update(&self, name: Text<32>, file: RVec<u8>, options: Option<RVec<u8>>) -> Answer {
        let answered = Arc::new((Mutex::new(None::<Answer>), Condvar::new()));
        let (of_thread, system) = (answered.clone(), self.0.clone());
        thread::spawn("update", move || {
            let answer = system.update(name.as_str(), file, options);
            *of_thread.0.lock() = Some(answer.map_err(UpdateError::from));
            of_thread.1.notify_all();
        })?;
        let mut answer = answered.0.lock();
        loop {
            if let Some(answer) = answer.take() {
                return answer;
            }
            let wait;
            (answer, wait) = answered.1.wait(answer);
            if wait == Wait::Interrupted {
                return Err(UpdateError::Rpc(RpcError::Interrupted));
            }
        }
    }
}

/// How a hand-over ended that did not succeed: what became of the state, and why.
struct Unmoved {
    estate: Option<RRef<Estate>>,
    why: String,
}

/// What a refused start says, without the name of the domain, which the user has typed.
fn words(unstarted: Unstarted, name: &str) -> String {
    match unstarted {
        Unstarted::Crashed => String::from("it crashed while it started"),
        Unstarted::Failed(Failure::Cause(text)) => {
            let own = text
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(": "));
            own.map_or(text.clone(), String::from)
        }
        Unstarted::Failed(failure) => failure.text(),
    }
}

impl System {
    fn update(
        self: &Arc<Self>,
        name: &str,
        file: RVec<u8>,
        options: Option<RVec<u8>>,
    ) -> Result<Updated, Trouble> {
        let _alone = self.updating.lock();
        let index = self.manifest.index_of(name);
        let index = index.ok_or(Trouble::NoSuchDomain)?;
        let gates = fit::gates(self, index);
        let gates = gates.map_err(Trouble::NoShadow)?;
        let version = self.version(index, file, options)?;
        let image = version.image.name;
        let updated = self.replace_behind(&gates, index, version);
        match &updated {
            Ok(Updated { id, waited, .. }) => log!(
                "{name}: updated to image {image}, instance {id}, in {} us",
                waited / 1000
            ),
            Err(trouble) => log!("{name}: not updated to image {image}: {}", trouble.text()),
        }
        updated
    }

    /// Replaces the instance while the gates are closed.
    fn replace_behind(
        self: &Arc<Self>,
        gates: &[Arc<Handle<dyn Gate>>],
        index: DomainIndex,
        version: Version,
    ) -> Result<Updated, Trouble> {
        let image = version.image.name;
        let is_beside = self.hands_over(index) && !self.has_hardware(index);
        let early = is_beside.then(|| self.begin(index, &version)).transpose();
        let early = early.map_err(Trouble::Kept)?;
        let began = time::now();
        let closed: RpcResult<Vec<_>> = gates.iter().map(|gate| gate.close(PATIENCE)).collect();
        let closed = match closed {
            Ok(closed) => closed,
            Err(error) => {
                early.into_iter().for_each(|early| self.end(index, early));
                return Err(Trouble::Kept(format!("its shadow: {error}")));
            }
        };
        let repeated = closed.iter().map(under_way).sum();
        let (id, handed_over) = self.replace(index, version, early, repeated == 0)?;
        drop(closed);
        Ok(Updated {
            id,
            image,
            waited: time::now() - began,
            repeated,
            handed_over,
        })
    }

    /// Whether the present instance hands its state over.
    fn hands_over(&self, index: DomainIndex) -> bool {
        let state = self.services[index].state.lock();
        state.running.as_ref().and_then(Keeper::of).is_some()
    }

    /// The new version, checked.
    fn version(
        &self,
        index: DomainIndex,
        file: RVec<u8>,
        options: Option<RVec<u8>>,
    ) -> Result<Version, Trouble> {
        let image = images::verify(&self.kernel, file);
        let image = image.map_err(Trouble::BadImage)?;
        let old = self.services[index].image.as_ref();
        let old = old.map_err(|why| Trouble::Unfit(why.clone()))?;
        fit::check(&self.manifest[index], old, &image).map_err(Trouble::Unfit)?;
        let options = options.map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(Version {
            image: Arc::new(image),
            options,
        })
    }

    /// Puts an instance of `version`, perhaps one that was started early, in the place of the
    /// present one; its number, and whether it got the state.
    fn replace(
        self: &Arc<Self>,
        index: DomainIndex,
        version: Version,
        early: Option<Running>,
        is_quiet: bool,
    ) -> Result<(u32, bool), Trouble> {
        let mut state = self.services[index].state.lock();
        let dead = |running: &mut Running| !service::is_alive(&running.control);
        if let Some(dead) = state.running.take_if(dead) {
            self.services[index].status.lock().crashes += 1;
            self.retire(index, dead);
        }
        let keeper = state.running.as_ref().and_then(Keeper::of);
        match (keeper, early) {
            (Some(old), Some(new)) if is_quiet => {
                self.replace_beside(index, &mut state, version, &old, new)
            }
            // The old one has crashed meanwhile, or its calls do not end.
            (keeper, Some(new)) => {
                self.end(index, new);
                self.replace_alone(index, &mut state, version, keeper, is_quiet)
            }
            (keeper, None) => self.replace_alone(index, &mut state, version, keeper, is_quiet),
        }
    }

    /// As [`replace`](Self::replace), without an instance that was started early.
    fn replace_alone(
        self: &Arc<Self>,
        index: DomainIndex,
        state: &mut State,
        version: Version,
        keeper: Option<Keeper>,
        is_quiet: bool,
    ) -> Result<(u32, bool), Trouble> {
        match keeper {
            Some(_) if !is_quiet => Err(Trouble::Kept(String::from(
                "calls to it take too long for its state to be handed over",
            ))),
            keeper => self.replace_in_turn(index, state, version, keeper),
        }
    }

    /// Whether the domain was granted what only one instance can have.
    fn has_hardware(&self, index: DomainIndex) -> bool {
        let mut grants = self.manifest[index].grants.iter();
        grants.any(|grant| {
            matches!(
                grant.source,
                Source::Claim { .. }
                    | Source::Ports { .. }
                    | Source::Interrupt(_)
                    | Source::Mmio { .. }
            )
        })
    }

    /// With both instances alive until the new one has agreed to the state.
    fn replace_beside(
        self: &Arc<Self>,
        index: DomainIndex,
        state: &mut State,
        version: Version,
        old: &Keeper,
        new: Running,
    ) -> Result<(u32, bool), Trouble> {
        let moved = old.give().map_err(|why| Unmoved { estate: None, why });
        // The old one still has its state if it did not give it.
        let has_given = moved.is_ok();
        let moved = moved.and_then(|estate| settle(&new, estate));
        let Err(Unmoved { estate, why }) = moved else {
            if let Some(old) = state.running.take() {
                self.retire(index, old);
            }
            return Ok((self.adopt(index, state, version, new), true));
        };
        self.end(index, new);
        match estate.map(|estate| old.take(estate)) {
            None if has_given => Err(self.lose(index, state, why)),
            Some(Err(second)) => {
                Err(self.lose(index, state, format!("{why}; the old one: {second}")))
            }
            None | Some(Ok(())) => Err(Trouble::Kept(why)),
        }
    }

    /// After the state was lost the old instance must not go on as if it had it: to all others it
    /// crashed.
    fn lose(&self, index: DomainIndex, state: &mut State, why: String) -> Trouble {
        if let Some(old) = state.running.take() {
            self.services[index].status.lock().crashes += 1;
            self.retire(index, old);
        }
        Trouble::Lost(format!("{why}; its state is lost"))
    }

    /// With the old instance ended before the new one starts.
    fn replace_in_turn(
        self: &Arc<Self>,
        index: DomainIndex,
        state: &mut State,
        version: Version,
        old: Option<Keeper>,
    ) -> Result<(u32, bool), Trouble> {
        let estate = old.map(|old| old.give()).transpose();
        let estate = estate.map_err(Trouble::Kept)?;
        let has_state = estate.is_some();
        if let Some(old) = state.running.take() {
            self.retire(index, old);
        }
        let new = match self.begin(index, &version) {
            Ok(new) => new,
            Err(why) => return Err(self.go_back(index, state, Unmoved { estate, why })),
        };
        let settled = estate.map_or(Ok(()), |estate| settle(&new, estate));
        match settled {
            Ok(()) => Ok((self.adopt(index, state, version, new), has_state)),
            Err(unmoved) => {
                self.end(index, new);
                Err(self.go_back(index, state, unmoved))
            }
        }
    }

    /// Starts the old image again and gives it its state back; what is then to be said.
    fn go_back(
        self: &Arc<Self>,
        index: DomainIndex,
        state: &mut State,
        Unmoved { estate, why }: Unmoved,
    ) -> Trouble {
        let name = &self.manifest[index].name;
        let lost = |second: String| Trouble::Lost(format!("{why}; the old one: {second}"));
        if state.budget.gave_up() {
            return lost(String::from("it stays down"));
        }
        let old = match self.start_once(index, state.versions.present.as_ref()) {
            Ok(old) => old,
            Err(unstarted) => return lost(words(unstarted, name)),
        };
        let restored = estate.map_or(Ok(()), |estate| settle(&old, estate));
        self.put_in_place(index, &old);
        log!("{name}: instance {} of the old image serves again", old.id);
        state.running = Some(old);
        match restored {
            Ok(()) => Trouble::Kept(why),
            Err(unmoved) => lost(unmoved.why),
        }
    }

    /// Starts an instance that may take [`START_LIMIT`] for it.
    fn begin(self: &Arc<Self>, index: DomainIndex, version: &Version) -> Result<Running, String> {
        let name = &self.manifest[index].name;
        let (system, starting) = (self.clone(), Text::new(name));
        let end = move || system.end_starting(starting);
        let started = limit::within(START_LIMIT, end, || self.start_once(index, Some(version)));
        let (started, in_time) = started.map_err(|error| error.to_string())?;
        started.map_err(|unstarted| match in_time {
            true => words(unstarted, name),
            false => format!(
                "its start took longer than {} s",
                START_LIMIT / 1_000_000_000
            ),
        })
    }

    /// Ends what we are starting under this name.
    fn end_starting(&self, name: Text<32>) {
        let mut from = 0;
        while let Ok(Some(info)) = self.kernel.monitor.next(from) {
            from = info.id + 1;
            let is_ours = info.parent == domain_rt::self_id() && info.name == name;
            if !is_ours || info.state != DomainState::Starting {
                continue;
            }
            log!("{name}: instance {} does not finish its start", info.id);
            if let Ok(Some(domain)) = self.kernel.control.domain(info.id) {
                // It fails only if it has just ended.
                let _ = domain.kill();
            }
        }
    }

    /// Makes a new instance known as the one that serves.
    fn put_in_place(&self, index: DomainIndex, running: &Running) {
        let mut status = self.services[index].status.lock();
        status.id = running.id;
        status.image = running.image;
        status.starts += 1;
        status.by_update += 1;
    }

    /// As [`put_in_place`](Self::put_in_place), and restarts use `version` from now on; the number
    /// of the instance.
    fn adopt(
        &self,
        index: DomainIndex,
        state: &mut State,
        version: Version,
        running: Running,
    ) -> u32 {
        let id = running.id;
        self.put_in_place(index, &running);
        let mut status = self.services[index].status.lock();
        status.updates += 1;
        status.gave_up = false;
        drop(status);
        state.budget = service::budget(self.manifest[index].limits);
        state.refused = None;
        state.versions.adopt(version);
        state.running = Some(running);
        id
    }
}

/// Has a new instance go on with the state.
fn settle(new: &Running, estate: RRef<Estate>) -> Result<(), Unmoved> {
    let Some(heir) = Keeper::of(new) else {
        let why = String::from("it takes no state over");
        return Err(Unmoved {
            estate: Some(estate),
            why,
        });
    };
    if let Err(why) = heir.check(&estate) {
        return Err(Unmoved {
            estate: Some(estate),
            why,
        });
    }
    let taken = heir.take(estate);
    taken.map_err(|why| Unmoved { estate: None, why })
}

/// Calls that a gate still waits for; none if its shadow is dead, and they with it.
fn under_way(closed: &Handle<dyn Closed>) -> u32 {
    closed.under_way().unwrap_or(0)
}
