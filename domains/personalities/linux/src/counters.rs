//! Counters that programs wait at (`eventfd(2)`).

use crate::bells::{Bell, READS, WRITES, Waiters};
use crate::errno::{EAGAIN, EINVAL, Error};
use crate::task::Task;
use crate::users::{Held, User};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::sync::Mutex;
use linux::counter::Counter;

/// What one costs its user: about what it takes of memory.
const COST: u64 = 512;

/// A counter.
pub struct EventCounter {
    state: Mutex<(Counter, Waiters)>,
    never_waits: AtomicBool,
    _held: Held,
}

impl EventCounter {
    /// One of a user's.
    ///
    /// # Errors
    /// `ENFILE`: the user has too much already.
    pub fn new(user: &Arc<User>, counter: Counter, never_waits: bool) -> Result<Self, Error> {
        Ok(EventCounter {
            state: Mutex::new((counter, Waiters::default())),
            never_waits: AtomicBool::new(never_waits),
            _held: user.hold(COST)?,
        })
    }

    /// Does something with it, or waits for `event` until it can be done.
    fn change<T>(
        &self,
        task: &Task,
        (event, makes): (u64, u64),
        mut act: impl FnMut(&mut Counter) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let bell = Bell::of(&task.ears);
        task.until(|| {
            let mut state = self.state.lock();
            let (counter, waiters) = &mut *state;
            match act(counter) {
                Ok(Some(done)) => {
                    let rung = waiters.take(makes);
                    drop(state);
                    rung.ring();
                    Some(Ok(done))
                }
                Ok(None) if self.never_waits() => Some(Err(EAGAIN)),
                Ok(None) => waiters.add(&bell, event).err().map(Err),
                Err(error) => Some(Err(error)),
            }
        })?
    }

    /// Reads what it has counted.
    pub fn read(&self, task: &Task, to: &mut [u8]) -> Result<usize, Error> {
        let place: &mut [u8; 8] = to.first_chunk_mut().ok_or(EINVAL)?;
        let taken = self.change(task, (READS, WRITES), |counter| Ok(counter.take()))?;
        *place = taken.to_le_bytes();
        Ok(8)
    }

    /// Adds the number that is written.
    pub fn write(&self, task: &Task, bytes: &[u8]) -> Result<usize, Error> {
        let number = u64::from_le_bytes(*bytes.first_chunk().ok_or(EINVAL)?);
        self.change(task, (WRITES, READS), |counter| {
            Ok(counter.add(number)?.then_some(8))
        })
    }

    /// Whether it has counted (1) and has room (4); if not, `bell` hears of a change.
    pub fn ready(&self, bell: &Bell) -> u64 {
        let mut state = self.state.lock();
        let (counter, waiters) = &mut *state;
        let reads = if counter.has_some() { READS } else { 0 };
        let writes = if counter.has_room() { WRITES } else { 0 };
        waiters.look(bell, READS | WRITES, reads | writes)
    }

    /// Whether what would wait is an error.
    pub fn never_waits(&self) -> bool {
        self.never_waits.load(Ordering::Relaxed)
    }

    /// Sets whether what would wait is an error.
    pub fn set_never_waits(&self, never_waits: bool) {
        self.never_waits.store(never_waits, Ordering::Relaxed);
    }
}
