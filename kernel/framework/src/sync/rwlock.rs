//! A spinning reader-writer lock for data that is read often and changed rarely.
//!
//! Interrupts are off while it is held, as with `SpinLock`. A waiting writer keeps new readers
//! out, so a reader must not take the same lock again while it reads.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

use super::{IrqOff, relax};
use crate::smp;

/// Set while a writer holds the lock or waits for the readers to leave.
const WRITER: u32 = 1 << 31;

/// A value with many readers or one writer.
pub struct RwLock<T> {
    /// Number of readers, and [`WRITER`].
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: readers share `&T` between processors (`T: Sync`), a writer takes `&mut T` over from
// another processor (`T: Send`).
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Spins until there is no writer.
    pub fn read(&self) -> ReadGuard<'_, T> {
        let irq = IrqOff::new();
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            if seen & WRITER == 0 && self.swap_state(seen, seen + 1) {
                return ReadGuard {
                    lock: self,
                    _irq: irq,
                };
            }
            smp::poll_flush();
            relax();
        }
    }

    /// Spins until there is neither a reader nor another writer.
    pub fn write(&self) -> WriteGuard<'_, T> {
        let irq = IrqOff::new();
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            if seen & WRITER == 0 && self.swap_state(seen, seen | WRITER) {
                break;
            }
            smp::poll_flush();
            relax();
        }
        while self.state.load(Ordering::Acquire) != WRITER {
            smp::poll_flush();
            relax();
        }
        WriteGuard {
            lock: self,
            _irq: irq,
        }
    }

    fn swap_state(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange_weak(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

/// Shared access to the value of an [`RwLock`].
pub struct ReadGuard<'a, T> {
    lock: &'a RwLock<T>,
    _irq: IrqOff,
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: while a reader is counted no writer gets past its wait.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.state.fetch_sub(1, Ordering::Release);
    }
}

/// Exclusive access to the value of an [`RwLock`].
pub struct WriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    _irq: IrqOff,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this writer waited until no reader was left, and keeps everybody else out.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` makes this the only reference from this guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.state.store(0, Ordering::Release);
    }
}
