//! A lock that many hold to read, or one to write.
//!
//! The word counts who reads; its highest bit says that somebody writes or waits to. With the bit
//! set nobody new begins to read, so a writer waits only for those who read already. Writers have
//! turns by a lock of their own.
//!
//! ```text
//!   read:   wait while WRITER is set; count + 1            ends: count - 1; the last wakes a writer
//!   write:  take the turn; set WRITER; wait for count = 0  ends: clear WRITER; wake all; give up the turn
//! ```
//!
//! What a step does with the word is in the functions below, which the model of all orders of steps
//! (`model.rs`) uses as well.

use super::{Mutex, MutexGuard};
use abi::api::{NO_DEADLINE, UNINTERRUPTED, api};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

#[cfg(test)]
mod model;

/// Somebody writes, or waits to.
const WRITER: u32 = 1 << 31;
/// The most who read. Guards can be forgotten, so it is looked at.
const MOST: u32 = WRITER - 1;

/// The word once one more reads; `None`: he has to wait.
const fn with_reader(word: u32) -> Option<u32> {
    if word & WRITER != 0 {
        return None;
    }
    assert!(word < MOST, "too many readers of a lock");
    Some(word + 1)
}

/// Whether who has set [`WRITER`] may write.
const fn is_left_by_readers(word: u32) -> bool {
    word == WRITER
}

/// Whether somebody waits for the reader who has left just now; `word` is from before that.
const fn was_waited_for(word: u32) -> bool {
    word == WRITER | 1
}

/// Data behind a lock that many can hold to read at once, or one to write. Writers go first: who
/// comes to read while one waits, waits behind him. So a thread that reads must not begin to read
/// once more: it would wait for a writer, and he for it.
///
/// A wait is not interrupted by kills, as with [`Mutex`]: holders are expected to be quick. A
/// holder that panics ends the domain, lock and all; one that is told of a kill leaves, and lets
/// go. It wins over a [`Mutex`] where readers are many and hold it for long.
pub struct RwLock<T> {
    word: AtomicU32,
    turn: Mutex<()>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives out `&T` to many threads, or one `&mut T`.
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> RwLock<T> {
    /// A free lock.
    pub const fn new(data: T) -> Self {
        RwLock {
            word: AtomicU32::new(0),
            turn: Mutex::new(()),
            data: UnsafeCell::new(data),
        }
    }

    /// Waits until nobody writes.
    ///
    /// # Panics
    /// If 2^31 guards exist, or were forgotten.
    pub fn read(&self) -> ReadGuard<'_, T> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let Some(next) = with_reader(word) else {
                self.wait(word);
                word = self.word.load(Ordering::Relaxed);
                continue;
            };
            let order = (Ordering::Acquire, Ordering::Relaxed);
            match self
                .word
                .compare_exchange_weak(word, next, order.0, order.1)
            {
                Ok(_) => return ReadGuard { lock: self },
                Err(now) => word = now,
            }
        }
    }

    /// Waits until nobody reads or writes.
    pub fn write(&self) -> WriteGuard<'_, T> {
        let turn = self.turn.lock();
        let mut word = self.word.fetch_or(WRITER, Ordering::Acquire) | WRITER;
        while !is_left_by_readers(word) {
            self.wait(word);
            word = self.word.load(Ordering::Acquire);
        }
        WriteGuard {
            lock: self,
            _turn: turn,
        }
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    fn wait(&self, word: u32) {
        // SAFETY: a word of our own.
        unsafe { (api().wait)(&self.word, word, NO_DEADLINE, UNINTERRUPTED) };
    }

    fn wake(&self) {
        // SAFETY: a word of our own.
        unsafe { (api().wake)(&self.word, u32::MAX) };
    }
}

/// The right to read the data. Dropping it gives it up.
///
/// ```compile_fail,E0277
/// fn shareable<T: Sync>(_: T) {}
/// shareable(domain_rt::sync::RwLock::new(core::cell::Cell::new(1)));
/// ```
pub struct ReadGuard<'a, T> {
    lock: &'a RwLock<T>,
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: while the guard exists its reader is counted, and nobody writes.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        if was_waited_for(self.lock.word.fetch_sub(1, Ordering::Release)) {
            self.lock.wake();
        }
    }
}

/// The right to use the data. Dropping it gives it up.
pub struct WriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    /// Given up last: only then another one sets the bit.
    _turn: MutexGuard<'a, ()>,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: while the guard exists nobody else reads or writes.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` excludes other borrows through this guard.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.word.fetch_and(!WRITER, Ordering::Release);
        self.lock.wake();
    }
}
