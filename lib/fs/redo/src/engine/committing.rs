//! Commits: what they have made safe is in the log no more.

use super::{Engine, Health, Host};
use crate::action::{Target, is_dead};

/// A commit that was begun, see [`Engine::begin_commit`].
pub struct Commit<T> {
    fs: T,
    /// How many changes the log ever had.
    changes: u64,
}

impl<T: Target> Commit<T> {
    /// Does it.
    ///
    /// # Errors
    /// The file system's.
    pub fn perform(&self) -> Result<(), T::Error> {
        self.fs.commit()
    }

    /// How many changes there ever were before it.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The instance that does it.
    pub fn by(&self) -> u32 {
        self.fs.id()
    }
}

impl<T: Target> Engine<T> {
    /// Begins a commit that is done without the engine, which others use meanwhile:
    /// [`Commit::perform`], and then [`end_commit`](Self::end_commit) with what came of it.
    ///
    /// # Errors
    /// There is no working instance.
    pub fn begin_commit<H: Host<Target = T>>(&mut self, host: &H) -> Result<Commit<T>, T::Error> {
        self.settle(host)?;
        Ok(Commit {
            fs: self.fs.clone(),
            changes: self.log.ever(),
        })
    }

    /// Forgets the changes that a commit has made safe. `false`: the instance died, and the commit
    /// has to be begun again.
    ///
    /// # Errors
    /// The file system's, as it was handed in.
    pub fn end_commit(
        &mut self,
        commit: &Commit<T>,
        result: Result<(), T::Error>,
    ) -> Result<bool, T::Error> {
        let is_this = self.fs.id() == commit.fs.id();
        match result {
            // If another instance serves, it was brought up to date with the log as it is.
            Ok(()) if is_this && self.health == Health::Sound => self.log.forget(commit.changes),
            Ok(()) => {}
            Err(error) if is_dead::<T>(&error) => {
                if is_this {
                    self.health = Health::Dead;
                }
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Whether the instance that did a commit serves, and has everything that was acknowledged:
    /// then the log begins behind a commit that has just been ended.
    pub fn serves(&self, commit: &Commit<T>) -> bool {
        self.fs.id() == commit.by() && self.health == Health::Sound
    }

    /// Makes everything survive a crash of the file system, so that nothing has to be remembered.
    ///
    /// # Errors
    /// The file system's.
    pub fn commit<H: Host<Target = T>>(&mut self, host: &H) -> Result<(), T::Error> {
        self.consult(host, T::commit)?;
        self.log.clear();
        host.forgotten(self.log.ever());
        Ok(())
    }

    /// Brings everything to the disk.
    ///
    /// # Errors
    /// The file system's.
    pub fn sync<H: Host<Target = T>>(&mut self, host: &H) -> Result<(), T::Error> {
        self.consult(host, T::sync)?;
        self.log.clear();
        host.forgotten(self.log.ever());
        Ok(())
    }
}
