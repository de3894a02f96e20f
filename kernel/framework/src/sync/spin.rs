//! The spin lock that disables interrupts, and the guard that only disables interrupts.
//!
//! While it spins, a processor still answers requests to flush its TLB, so that the holder of the
//! lock may unmap memory.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

use super::relax;
use crate::arch::interrupts;
use crate::smp;

/// Keeps interrupts disabled on this processor while it lives; dropping it restores what it found.
///
/// Drop nested guards in the reverse order of their creation.
pub struct IrqOff {
    were_on: bool,
    not_send: PhantomData<*const ()>,
}

impl IrqOff {
    /// Disables interrupts.
    #[inline]
    pub fn new() -> Self {
        Self {
            were_on: interrupts::disable(),
            not_send: PhantomData,
        }
    }

    /// Whether interrupts were enabled when this guard was made.
    pub fn were_on(&self) -> bool {
        self.were_on
    }
}

impl Default for IrqOff {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for IrqOff {
    #[inline]
    fn drop(&mut self) {
        if self.were_on {
            interrupts::enable();
        }
    }
}

/// A value that one processor at a time may touch, with interrupts disabled meanwhile.
pub struct SpinLock<T: ?Sized> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives the value to one holder at a time, so sharing it only moves exclusive
// access between processors, which `T: Send` permits.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}
// SAFETY: owning the lock is owning the value.
unsafe impl<T: ?Sized + Send> Send for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, without the lock.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> SpinLock<T> {
    /// Disables interrupts and spins until the lock is free. Taking it twice on one processor
    /// hangs.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        let irq = IrqOff::new();
        while self.locked.swap(true, Ordering::Acquire) {
            self.wait_until_free();
        }
        SpinGuard { lock: self, irq }
    }

    /// Takes the lock if it is free now.
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        let irq = IrqOff::new();
        if self.locked.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(SpinGuard { lock: self, irq })
    }

    #[cold]
    fn wait_until_free(&self) {
        while self.locked.load(Ordering::Relaxed) {
            smp::poll_flush();
            relax();
        }
    }
}

/// Exclusive access to the value of a [`SpinLock`], with interrupts off; dropping it unlocks.
pub struct SpinGuard<'a, T: ?Sized> {
    lock: &'a SpinLock<T>,
    // Dropped after `drop` below has released the lock.
    #[expect(
        dead_code,
        reason = "held for its drop, which restores the interrupt flag"
    )]
    irq: IrqOff,
}

impl<T: ?Sized> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its holder has the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` makes this the only reference from this guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
    }
}
