//! Instances of the supervised domains: how the one that serves is found, started, ended, and
//! followed by another when it has crashed. [`start`] starts one, [`grants`] finds what it is
//! granted, and [`respawn`] lets others ask for one: a start may need another domain's instance, so
//! these need each other.

pub mod grants;
mod respawn;
mod start;

pub use respawn::Respawner;

use crate::failure::Failure;
use crate::service::{Complaint, Remains, Running, State, Unstarted, budget, is_alive};
use crate::system::System;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::{log, time};
use manifest::{DomainIndex, Limits, order};
use restart::Verdict;

/// How long a start waits for memory, and how long it rests before it looks again, at first and at
/// most; in nanoseconds.
const MEMORY_PATIENCE: u64 = 5_000_000_000;
const MEMORY_PAUSE: u64 = 1_000_000;
const MEMORY_PAUSE_LATER: u64 = 50_000_000;
/// So often a start is tried again because a domain that it needs crashed meanwhile.
const ATTEMPTS: u32 = 3;
/// How long the remains of an ended instance are waited for, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;

impl System {
    /// Has `work` done with the instance that serves the domain `index`, after starting one if
    /// there is none. The kernel is asked whether that is dead. One that lives is replaced if there
    /// is a `complaint` about it, as long as the complaining domain is heard.
    ///
    /// # Errors
    /// Why there is no instance.
    pub fn with_instance<R>(
        self: &Arc<Self>,
        index: DomainIndex,
        complaint: Option<Complaint>,
        work: impl FnOnce(&Running) -> R,
    ) -> Result<R, Failure> {
        let service = &self.services[index];
        let mut state = service
            .state
            .lock_interruptible()
            .ok_or(Failure::Interrupted)?;
        let unusable = |running: &mut Running| !self.is_usable(running);
        if let Some(running) = state.running.take_if(unusable) {
            let crashed = !is_alive(&running.control);
            self.retire(index, running, &mut state);
            if crashed {
                self.count_crash(index, &mut state)?;
            }
        }
        if let Some(complaint) = complaint {
            self.answer(index, complaint, &mut state);
        }
        if state.running.is_none() {
            let launched = self.launch(index, &mut state);
            if matches!(launched, Err(Failure::Interrupted)) {
                // Who asks may be of those that have died: another one is to see to it.
                self.restarts.look_at_all();
            }
            state.running = Some(launched?);
        }
        Ok(work(state.running.as_ref().expect("launched just now")))
    }

    /// Whether an instance lives, and those that it cannot do without are still those that serve.
    fn is_usable(&self, running: &Running) -> bool {
        let serves = |&(index, id): &(DomainIndex, u32)| self.services[index].status().id == id;
        is_alive(&running.control) && running.served_by.iter().all(serves)
    }

    /// Whether one of those that an instance cannot do without has died, and perhaps nobody has
    /// noticed yet.
    fn has_lost_one(&self, running: &Running) -> bool {
        let is_dead = |id| match self.kernel.control.domain(id) {
            Ok(control) => control.is_none_or(|control| !is_alive(&control)),
            Err(_) => false,
        };
        running.served_by.iter().any(|&(_, id)| is_dead(id))
    }

    /// Ends an instance that lives, for what one of its callers says of it, if that is heard.
    fn answer(&self, index: DomainIndex, complaint: Complaint, state: &mut State) {
        let Some(running) = state.running.take_if(|running| running.id == complaint.of) else {
            return;
        };
        let (domain, by) = (&self.manifest[index], &self.manifest[complaint.by].name);
        if !self.has_lost_one(&running) && !state.hears(complaint.by, domain.limits) {
            if !state.versions.fall_back() {
                state.running = Some(running);
                return;
            }
            log!(
                "{}: the image of the update is of no use to {by}; going back to the one before",
                domain.name
            );
        }
        log!(
            "{}: instance {} lives, but is of no more use to {by}",
            domain.name,
            running.id
        );
        self.retire(index, running, state);
    }

    /// Ends an instance with all domains that it started, and waits until what it owned is free
    /// again. A caller that is itself ended meanwhile cannot: then whoever launches the next one
    /// waits.
    pub fn retire(&self, index: DomainIndex, running: Running, state: &mut State) {
        self.services[index].status.lock().id = 0;
        state.remains = Some(self.kill(index, running));
        // Whoever launches the next one is told if it fails.
        let _ = self.await_end(index, state);
    }

    /// As [`retire`](Self::retire), for an instance that does not serve.
    pub fn end(&self, index: DomainIndex, running: Running) {
        let remains = self.kill(index, running);
        let _ = self.await_end_of(index, &remains);
    }

    /// Waits for the end of the instance before, if nobody has.
    fn await_end(&self, index: DomainIndex, state: &mut State) -> Result<(), Failure> {
        if let Some(remains) = &state.remains {
            self.await_end_of(index, remains)?;
            state.remains = None;
        }
        Ok(())
    }

    /// Waits until what an ended instance owned is free again, for [`PATIENCE`] at most: a thread
    /// of it can be in another domain for longer. What that allows it to do is that one's business,
    /// as it is that of `FsVolume::begin`.
    fn await_end_of(&self, index: DomainIndex, remains: &Remains) -> Result<(), Failure> {
        let name = &self.manifest[index].name;
        match remains.control.wait_until(time::now() + PATIENCE) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let id = remains.id;
                log!("{name}: something of instance {id} does not go away");
                Ok(())
            }
            Err(error) => Err(Failure::of_call(name, error, "")),
        }
    }

    fn kill(&self, index: DomainIndex, running: Running) -> Remains {
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
        Remains { id, control }
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
        if let Some((failure, rest)) = &state.refused
            && !rest.is_over(time::now())
        {
            return Err(failure.clone());
        }
        let mut attempts = 1;
        let (patient_until, mut pause) = (time::now() + MEMORY_PATIENCE, MEMORY_PAUSE);
        loop {
            self.await_end(index, state)?;
            let began = time::now();
            let needs = self.needs(index);
            match self.start_once(index, state.versions.present.as_ref()) {
                Ok(running) if self.publish(index, &running, began) => {
                    state.refused = None;
                    return Ok(running);
                }
                Ok(running) => self.retire(index, running, state),
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
                // Who asked was ended, so it could not wait for what it needs. Others may ask.
                Err(Unstarted::Failed(failure @ (Failure::NoMemory(_) | Failure::Interrupted))) => {
                    return Err(failure);
                }
                Err(Unstarted::Failed(failure)) => {
                    state.refuse(&failure);
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
            self.with_instance(need, None, |running| running.id)
                .unwrap_or(0)
        };
        needs.into_iter().map(instance).collect()
    }

    /// Makes a new instance known. Whether it is still alive: if it died before it was known,
    /// nobody saw it die.
    fn publish(self: &Arc<Self>, index: DomainIndex, running: &Running, began: u64) -> bool {
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
        self.leave(index, running);
        is_alive(&running.control)
    }
}
