//! The sleeping lock, and the token without which nothing may sleep.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::task::{self, AtomicContext};

/// Proof that the holder was, when it asked, in a thread that may sleep: interrupts enabled, no
/// spin lock held, preemption allowed.
///
/// Interrupt handlers are given none and cannot claim one, so they cannot name the functions that
/// need it. Having one does not prove that no spin lock was taken since: a sleep in such a place
/// is caught at run time.
#[derive(Clone, Copy)]
pub struct Sleepable {
    not_send: PhantomData<*const ()>,
}

impl Sleepable {
    /// The token, or why this context may not sleep.
    pub fn claim() -> Result<Self, AtomicContext> {
        task::may_sleep()?;
        Ok(Self {
            not_send: PhantomData,
        })
    }
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// A lock that puts waiting threads to sleep. Interruption does not end the wait.
pub struct Mutex<T: ?Sized> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives the value to one holder at a time, so sharing it only moves exclusive
// access between threads, which `T: Send` permits.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: owning the lock is owning the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, asleep while another thread holds it.
    pub fn lock(&self, _token: Sleepable) -> MutexGuard<'_, T> {
        if self.try_take().is_err() {
            while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
                task::wait_uninterrupted(&self.state, CONTENDED);
            }
        }
        MutexGuard {
            lock: self,
            not_send: PhantomData,
        }
    }

    /// Takes the lock if it is free; never sleeps.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.try_take().ok()?;
        Some(MutexGuard {
            lock: self,
            not_send: PhantomData,
        })
    }

    fn try_take(&self) -> Result<u32, u32> {
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
    }
}

/// Exclusive access to the value of a [`Mutex`]; dropping it unlocks.
pub struct MutexGuard<'a, T: ?Sized> {
    lock: &'a Mutex<T>,
    not_send: PhantomData<*const ()>,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` makes this the only reference from this guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.lock.state.swap(FREE, Ordering::Release) == CONTENDED {
            task::wake(&self.lock.state, 1);
        }
    }
}
