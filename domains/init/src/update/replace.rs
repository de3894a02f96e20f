//! The replacement itself: an instance of the new version takes the place of the present one, with
//! its state if there is some, or the present one stays.

use super::Trouble;
use crate::estate::Keeper;
use crate::failure::Failure;
use crate::limit;
use crate::service::{self, Running, State, Unstarted};
use crate::system::System;
use crate::version::Version;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use domain_rt::log;
use interfaces::{DomainState, Estate, RRef, Text};
use manifest::{DomainIndex, Source};

/// How long a new instance may take to start, in nanoseconds.
const START_LIMIT: u64 = 5_000_000_000;

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
    /// Puts an instance of `version`, perhaps one that was started early, in the place of the
    /// present one; its number, and whether it got the state.
    pub(super) fn replace(
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
            self.retire(index, dead, &mut state);
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
    pub(super) fn has_hardware(&self, index: DomainIndex) -> bool {
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
        // If `init` dies from here on, neither of them may serve as if it had all of the state.
        self.leave_nobody(index);
        let moved = old.give().map_err(|why| Unmoved { estate: None, why });
        // The old one still has its state if it did not give it.
        let has_given = moved.is_ok();
        let moved = moved.and_then(|estate| settle(&new, estate));
        let Err(Unmoved { estate, why }) = moved else {
            if let Some(old) = state.running.take() {
                self.retire(index, old, state);
            }
            return Ok((self.adopt(index, state, version, new), true));
        };
        self.end(index, new);
        match estate.map(|estate| old.take(estate)) {
            None if has_given => Err(self.lose(index, state, why)),
            Some(Err(second)) => {
                Err(self.lose(index, state, format!("{why}; the old one: {second}")))
            }
            None | Some(Ok(())) => {
                self.leave_again(index, state);
                Err(Trouble::Kept(why))
            }
        }
    }

    /// The old instance goes on, with its state.
    fn leave_again(self: &Arc<Self>, index: DomainIndex, state: &State) {
        if let Some(old) = &state.running {
            self.leave(index, old);
        }
    }

    /// After the state was lost the old instance must not go on as if it had it: to all others it
    /// crashed.
    fn lose(&self, index: DomainIndex, state: &mut State, why: String) -> Trouble {
        if let Some(old) = state.running.take() {
            self.services[index].status.lock().crashes += 1;
            self.retire(index, old, state);
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
        if old.is_some() {
            self.leave_nobody(index);
        }
        let estate = old.map(|old| old.give()).transpose();
        let estate = estate.map_err(|why| {
            self.leave_again(index, state);
            Trouble::Kept(why)
        })?;
        let has_state = estate.is_some();
        if let Some(old) = state.running.take() {
            self.retire(index, old, state);
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
    pub(super) fn begin(
        self: &Arc<Self>,
        index: DomainIndex,
        version: &Version,
    ) -> Result<Running, String> {
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
    fn put_in_place(self: &Arc<Self>, index: DomainIndex, running: &Running) {
        let mut status = self.services[index].status.lock();
        status.id = running.id;
        status.image = running.image;
        status.starts += 1;
        status.by_update += 1;
        drop(status);
        self.leave(index, running);
    }

    /// As [`put_in_place`](Self::put_in_place), and restarts use `version` from now on; the number
    /// of the instance.
    fn adopt(
        self: &Arc<Self>,
        index: DomainIndex,
        state: &mut State,
        version: Version,
        running: Running,
    ) -> u32 {
        let id = running.id;
        let mut status = self.services[index].status.lock();
        status.updates += 1;
        status.gave_up = false;
        drop(status);
        self.put_in_place(index, &running);
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
