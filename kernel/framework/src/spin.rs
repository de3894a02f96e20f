//! The framework's innermost lock: spins with interrupts off.
//!
//! Used only below the level where tasks exist (log, heap, page tables, claims). Holders must not
//! wait for another processor, which might be spinning on the same lock with interrupts off.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A value that one processor at a time may touch, with interrupts disabled meanwhile.
pub struct IrqLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out the value to one holder at a time, so sharing the lock between
// processors only ever moves exclusive access between them, which `T: Send` permits.
unsafe impl<T: Send> Sync for IrqLock<T> {}

impl<T> IrqLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Disables interrupts, then spins until the lock is free.
    pub fn lock(&self) -> IrqGuard<'_, T> {
        let interrupts_were_on = interrupts::disable();
        while self.locked.swap(true, Ordering::Acquire) {
            while self.locked.load(Ordering::Relaxed) {
                interrupts::relax();
            }
        }
        IrqGuard {
            lock: self,
            interrupts_were_on,
        }
    }

    /// Like [`lock`](Self::lock), but gives up at once if the lock is held.
    pub fn try_lock(&self) -> Option<IrqGuard<'_, T>> {
        let interrupts_were_on = interrupts::disable();
        if self.locked.swap(true, Ordering::Acquire) {
            interrupts::restore(interrupts_were_on);
            return None;
        }
        Some(IrqGuard {
            lock: self,
            interrupts_were_on,
        })
    }
}

/// Exclusive access to the value of an [`IrqLock`]; dropping it unlocks.
pub struct IrqGuard<'a, T> {
    lock: &'a IrqLock<T>,
    interrupts_were_on: bool,
}

impl<T> Deref for IrqGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this holder has the lock, so nobody else has a
        // reference to the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for IrqGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference from this guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for IrqGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
        interrupts::restore(self.interrupts_were_on);
    }
}

#[cfg(target_os = "none")]
mod interrupts {
    //! Interrupt masking on the machine.
    use crate::arch::interrupts;
    pub use crate::sync::relax;

    pub fn disable() -> bool {
        interrupts::disable()
    }

    pub fn restore(on: bool) {
        if on {
            interrupts::enable();
        }
    }
}

#[cfg(not(target_os = "none"))]
mod interrupts {
    //! Hosted tests have no interrupts to mask.
    pub fn disable() -> bool {
        false
    }

    pub fn restore(_on: bool) {}

    pub fn relax() {
        core::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn try_lock_fails_while_held_and_works_after() {
        let lock = IrqLock::new(1);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        *lock.try_lock().unwrap() += 1;
        assert_eq!(*lock.lock(), 2);
    }
}
