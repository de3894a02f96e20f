//! The mounted file system behind its lock, and the write-back of what was changed.
//!
//! A change is in memory first. It reaches the disk when somebody calls `sync` (the personality does so
//! when a file that was written is closed), otherwise [`DELAY`] after the first change that is not on the
//! disk. So when this domain crashes, at most the changes of that time are lost, and `lib/ext2`'s order of
//! writes leaves a consistent file system. Each write-back leaves the disk marked as clean.

use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{log, time};

use crate::device::Disk;

/// The library's file system on the disk.
pub type Mounted = ext2::FileSystem<Disk>;

/// How long a change may stay in memory only, in nanoseconds.
const DELAY: u64 = 1_000_000_000;

/// A mounted file system.
pub struct Volume {
    state: Mutex<State>,
    /// Notified when `dirty` becomes true.
    changed: Condvar,
}

struct State {
    mounted: Mounted,
    /// There may be changes that are not on the disk.
    dirty: bool,
}

impl Volume {
    /// Puts a mounted file system behind a lock.
    pub fn new(mounted: Mounted) -> Self {
        Volume {
            state: Mutex::new(State {
                mounted,
                dirty: false,
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
        if !state.dirty && !state.mounted.is_read_only() {
            state.dirty = true;
            self.changed.notify_all();
        }
        result
    }

    /// Brings everything to the disk.
    ///
    /// # Errors
    /// Those of the device.
    pub fn sync(&self) -> Result<(), ext2::Error> {
        let mut state = self.state.lock();
        if !state.dirty {
            return Ok(());
        }
        state.mounted.sync()?;
        state.dirty = false;
        Ok(())
    }

    /// The body of the write-back thread.
    pub fn write_back_for_ever(&self) {
        let mut failing = false;
        loop {
            self.wait_for_changes();
            time::sleep(DELAY);
            match self.sync() {
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

    fn wait_for_changes(&self) {
        let mut state = self.state.lock();
        while !state.dirty {
            let (guard, wait) = self.changed.wait(state);
            state = guard;
            if wait == Wait::Interrupted {
                return;
            }
        }
    }
}
