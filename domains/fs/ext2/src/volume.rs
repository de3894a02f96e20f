//! The mounted file system behind its lock, and the write-back of what was changed.
//!
//! A change is in memory first. It reaches the disk when somebody calls `sync` (the personality does so
//! when a file that was written is closed), otherwise [`DELAY`] after the first change that is not on the
//! disk. So when this domain crashes, at most the changes of that time are lost, and `lib/ext2`'s journal,
//! or its order of writes where there is none, leaves a consistent file system.
//!
//! The timer only commits, which with a journal is one write of all changes together. `sync`, and the
//! timer when nothing changed for [`QUIET`], bring everything to its place and leave the disk marked as
//! clean.

use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{log, time};

use crate::device::Disk;

/// The library's file system on the disk.
pub type Mounted = ext2::FileSystem<Disk>;

/// How long a change may stay in memory only, in nanoseconds.
const DELAY: u64 = 1_000_000_000;

/// For how long nothing must change before the disk is marked as clean, in nanoseconds.
const QUIET: u64 = 5_000_000_000;

/// A mounted file system.
pub struct Volume {
    state: Mutex<State>,
    /// Notified when `level` is raised to `Dirty`.
    changed: Condvar,
}

/// Where the changes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// In their places, and the disk is marked as clean.
    Rest,
    /// Safe, but perhaps in the journal only.
    Committed,
    /// Some are in memory only.
    Dirty,
}

struct State {
    mounted: Mounted,
    level: Level,
}

impl State {
    /// Brings all changes to `goal`.
    fn settle(&mut self, goal: Level) -> Result<(), ext2::Error> {
        match goal {
            Level::Rest if self.level != Level::Rest => self.mounted.sync()?,
            Level::Committed if self.level == Level::Dirty => self.mounted.commit()?,
            _ => return Ok(()),
        }
        self.level = goal;
        Ok(())
    }
}

impl Volume {
    /// Puts a mounted file system behind a lock.
    pub fn new(mounted: Mounted) -> Self {
        Volume {
            state: Mutex::new(State {
                mounted,
                level: Level::Rest,
            }),
            changed: Condvar::new(),
        }
    }

    /// Runs an operation that changes nothing on the disk.
    pub fn view<T>(&self, operation: impl FnOnce(&mut Mounted) -> T) -> T {
        operation(&mut self.state.lock().mounted)
    }

    /// Runs an operation that may change something.
    pub fn change<T>(&self, operation: impl FnOnce(&mut Mounted) -> T) -> T {
        let mut state = self.state.lock();
        let result = operation(&mut state.mounted);
        if state.level != Level::Dirty && !state.mounted.is_read_only() {
            state.level = Level::Dirty;
            self.changed.notify_all();
        }
        result
    }

    /// Brings everything to the disk, and marks that as clean.
    ///
    /// # Errors
    /// Those of the device.
    pub fn sync(&self) -> Result<(), ext2::Error> {
        self.state.lock().settle(Level::Rest)
    }

    /// The body of the write-back thread.
    pub fn write_back_for_ever(&self) {
        let mut failing = false;
        loop {
            let goal = self.wait_for_work();
            match self.state.lock().settle(goal) {
                Ok(()) => failing = false,
                // Said once for a row of failures; the next round tries again.
                Err(error) if !failing => {
                    log!("write-back: {error}");
                    failing = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Waits until something is to be written, and returns how far it is to go: there is a change that is
    /// [`DELAY`] old, or after [`QUIET`] without one something is not in its place.
    fn wait_for_work(&self) -> Level {
        let mut state = self.state.lock();
        while state.level != Level::Dirty {
            let (guard, wait) = match state.level {
                Level::Committed => self.changed.wait_until(state, time::now() + QUIET),
                _ => self.changed.wait(state),
            };
            state = guard;
            match (wait, state.level) {
                (Wait::TimedOut, Level::Committed) => return Level::Rest,
                (Wait::Interrupted, _) => return Level::Committed,
                _ => {}
            }
        }
        drop(state);
        time::sleep(DELAY);
        Level::Committed
    }
}
