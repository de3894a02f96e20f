//! Which instance serves, and what it has: after the engine has settled it has everything that was
//! acknowledged, of this shadow's life and of those before it.

use super::{ATTEMPTS, Change, Engine, Health, Host, Lane};
use crate::action::{Fault, Outcome, Severity, Target, is_dead};
use crate::log::Basis;

/// What came of the change that a former shadow was trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// It was trying none.
    Nothing,
    /// It is done.
    Done([Outcome; 2]),
    /// The file system would not.
    Refused,
    /// Too many died of it.
    GivenUp,
}

impl<T: Target> Engine<T> {
    /// How many changes there ever were.
    pub fn changes(&self) -> u64 {
        self.log.ever()
    }

    /// Takes a change into the log that a former shadow made, and that the instance that serves may
    /// not have; so many shadows died of it. All numbers are those of the instance before.
    /// [`resume`](Self::resume) comes next.
    ///
    /// # Errors
    /// No memory.
    pub fn restore(
        &mut self,
        (action, basis): (Change<T>, Basis),
        outcome: Outcome,
        deaths: u8,
    ) -> Result<(), T::Error> {
        if !self.log.has_place() {
            return Err(T::error(Fault::Failed));
        }
        self.log.begin(action, basis);
        self.log.set_shadows_of_last(deaths);
        self.log.commit(outcome, T::cut);
        Ok(())
    }

    /// Sees to what was [restored](Self::restore), and to the change that a former shadow was
    /// trying, if it was, and of which so many shadows died: it is done, now or then, or refused,
    /// or given up; its outcome as in [`Host::answer`].
    ///
    /// # Errors
    /// There is no working instance; nobody knows whether the change was made.
    pub fn resume<H: Host<Target = T>>(
        &mut self,
        host: &H,
        pending: Option<((Change<T>, Basis), u8)>,
    ) -> Result<Resumed, T::Error> {
        if let Some(((action, basis), deaths)) = pending {
            self.log.begin(action, basis);
            self.log.set_shadows_of_last(deaths);
        }
        self.health = Health::Behind;
        Ok(match self.recover(host)? {
            None => Resumed::Nothing,
            Some(Ok(outcome)) => Resumed::Done([outcome, host.front(|front| front.tell(outcome))]),
            Some(Err(error)) if T::severity(&error) == Severity::Trouble => Resumed::GivenUp,
            Some(Err(_)) => Resumed::Refused,
        })
    }

    /// Called by who found the instance `failed` dead: sees to it that another one serves and is up
    /// to date.
    ///
    /// # Errors
    /// There is none.
    pub fn revive<H: Host<Target = T>>(&mut self, host: &H, failed: u32) -> Result<(), T::Error> {
        if self.fs.id() == failed {
            self.health = Health::Dead;
        }
        self.settle(host)
    }

    /// Sees to it that the instance is up to date.
    pub(super) fn settle<H: Host<Target = T>>(&mut self, host: &H) -> Result<(), T::Error> {
        if self.health == Health::Sound {
            return Ok(());
        }
        if let Some(result) = self.recover(host)? {
            // Who asked for this change was told that nobody knows.
            let told = |outcome| [outcome, host.front(|front| front.tell(outcome))];
            self.answer(host, None, result.ok().map(told));
        }
        Ok(())
    }

    /// Tells what came of the change that was noted last.
    pub(super) fn answer<H: Host<Target = T>>(
        &self,
        host: &H,
        lane: Option<Lane>,
        outcome: Option<[Outcome; 2]>,
    ) {
        host.answer(lane, outcome);
        if self.log.is_empty() {
            host.forgotten(self.log.ever());
        }
    }

    /// Brings an instance up to date; what came of the change that was under way, if one was.
    pub(super) fn recover<H: Host<Target = T>>(
        &mut self,
        host: &H,
    ) -> Result<Option<Result<Outcome, T::Error>>, T::Error> {
        for _ in 0..ATTEMPTS {
            if self.health == Health::Dead {
                self.fs = host.instance(self.fs.id())?;
                self.health = Health::Behind;
            }
            let recovered = self.log.recover(host, &self.fs);
            host.again(None);
            match recovered {
                Ok(recovery) => {
                    self.health = Health::Sound;
                    let fs = self.fs.clone();
                    // What died with the old instance is let go of outside of the lock.
                    let dead = host.front(|front| front.replace(fs, &recovery.renumbered));
                    drop(dead);
                    if host.recovered(&self.fs, &recovery.report) {
                        self.log.clear();
                        // What was under way has to be answered first.
                        if recovery.pending.is_none() {
                            host.forgotten(self.log.ever());
                        }
                    }
                    return Ok(recovery.pending);
                }
                Err(error) if is_dead::<T>(&error) => self.health = Health::Dead,
                Err(error) => return Err(error),
            }
        }
        Err(T::error(Fault::Failed))
    }

    /// Has `work` done with an instance that is up to date, again if it dies. Nobody changes
    /// anything meanwhile.
    ///
    /// # Errors
    /// Those of `work`; there is no working instance.
    pub fn consult<H: Host<Target = T>, R>(
        &mut self,
        host: &H,
        work: impl Fn(&T) -> Result<R, T::Error>,
    ) -> Result<R, T::Error> {
        for _ in 0..ATTEMPTS {
            self.settle(host)?;
            match work(&self.fs) {
                Err(error) if is_dead::<T>(&error) => self.health = Health::Dead,
                result => return result,
            }
        }
        Err(T::error(Fault::Failed))
    }
}
