//! Who is told when something changes: threads that wait for it, and sets (`epoll`) that it is in.
//!
//! Each is told once, and looks again then. Nobody is kept alive by waiting.

use crate::epoll::Epoll;
use crate::errno::{ENOMEM, Error};
use crate::signals::Ears;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

/// What one can do without waiting, as `poll` says it: to read, and to write.
pub const READS: u64 = 1;
/// See [`READS`].
pub const WRITES: u64 = 4;
/// Nobody reads what is written, or something has gone wrong (POLLERR).
pub const BROKEN: u64 = 8;
/// Nothing comes any more, and nothing can be sent (POLLHUP).
pub const ENDED: u64 = 16;
/// The other side sends nothing more (POLLRDHUP).
pub const HALF_ENDED: u64 = 0x2000;
/// Whatever it is.
pub const ALL: u64 = READS | WRITES | BROKEN | ENDED | HALF_ENDED;

/// Somebody who is told.
#[derive(Clone)]
pub enum Bell {
    /// A thread.
    Task(Weak<Ears>),
    /// A set, and which item of it.
    Set(Weak<Epoll>, u64),
}

impl Bell {
    /// A thread's.
    pub fn of(ears: &Arc<Ears>) -> Self {
        Bell::Task(Arc::downgrade(ears))
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Bell::Task(one), Bell::Task(other)) => one.ptr_eq(other),
            (Bell::Set(one, a), Bell::Set(other, b)) => a == b && one.ptr_eq(other),
            _ => false,
        }
    }

    /// Tells whoever it is that these events have happened.
    fn ring(&self, events: u64) {
        match self {
            Bell::Task(ears) => {
                if let Some(ears) = ears.upgrade() {
                    ears.ring();
                }
            }
            Bell::Set(set, item) => {
                if let Some(set) = set.upgrade() {
                    set.touch(*item, events);
                }
            }
        }
    }

    fn is_heard(&self) -> bool {
        match self {
            Bell::Task(ears) => ears.strong_count() > 0,
            Bell::Set(set, _) => set.strong_count() > 0,
        }
    }
}

/// Those who wait to read, and to write.
#[derive(Default)]
pub struct Waiters {
    readers: Vec<Bell>,
    writers: Vec<Bell>,
}

/// Those who are to be told, when nothing is locked.
#[must_use]
pub struct Rung([Vec<Bell>; 2], u64);

fn add(list: &mut Vec<Bell>, bell: &Bell) -> Result<(), Error> {
    if list.iter().any(|other| other.is(bell)) {
        return Ok(());
    }
    if list.len() == list.capacity() {
        list.retain(Bell::is_heard);
        list.try_reserve(1).map_err(|_| ENOMEM)?;
    }
    list.push(bell.clone());
    Ok(())
}

impl Waiters {
    /// Notes somebody who waits for one of these events.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn add(&mut self, bell: &Bell, events: u64) -> Result<(), Error> {
        if events & READS != 0 {
            add(&mut self.readers, bell)?;
        }
        if events & WRITES != 0 {
            add(&mut self.writers, bell)?;
        }
        Ok(())
    }

    /// Notes somebody who has found these events where `wanted` can be; whether that is no more
    /// than there is. A thread that has found something does not wait; a set hears of what follows,
    /// too.
    pub fn look(&mut self, bell: &Bell, wanted: u64, found: u64) -> u64 {
        let waits = match bell {
            Bell::Task(_) => wanted & !found,
            Bell::Set(..) => wanted,
        };
        match self.add(bell, waits) {
            Ok(()) => found,
            // Without memory it looks as if it were ready, and the next call says why it is not.
            Err(_) => found | wanted,
        }
    }

    /// Those who are to be told that these events have happened.
    pub fn take(&mut self, events: u64) -> Rung {
        let mut taken = [Vec::new(), Vec::new()];
        let [readers, writers] = &mut taken;
        if events & !WRITES != 0 {
            core::mem::swap(readers, &mut self.readers);
        }
        if events & !READS != 0 {
            core::mem::swap(writers, &mut self.writers);
        }
        Rung(taken, events)
    }
}

impl Rung {
    /// Nobody.
    pub fn nobody() -> Self {
        Rung([Vec::new(), Vec::new()], 0)
    }

    /// Tells them.
    pub fn ring(self) {
        let Rung(lists, events) = self;
        for list in lists {
            list.iter().for_each(|bell| bell.ring(events));
        }
    }
}
