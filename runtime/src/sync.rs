//! Locks and condition variables between the threads that run through this domain.
//!
//! There is no poisoning: a panic crashes the whole domain, lock and all.

use abi::api::{INTERRUPTIBLE, NO_DEADLINE, UNINTERRUPTED, WAIT_INTERRUPTED, WAIT_TIMED_OUT, api};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

mod rwlock;
#[cfg(test)]
mod tests;

pub use rwlock::{ReadGuard, RwLock, WriteGuard};

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;

/// Data behind a lock. Waiting for it by [`lock`](Self::lock) is not interrupted by kills: holders
/// are expected to be quick. Where they are not, wait by
/// [`lock_interruptible`](Self::lock_interruptible).
pub struct Mutex<T> {
    state: AtomicU32,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives out one `&mut T` at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Mutex<T> {
    /// A free lock.
    pub const fn new(data: T) -> Self {
        Mutex {
            state: AtomicU32::new(FREE),
            data: UnsafeCell::new(data),
        }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.lock_by(UNINTERRUPTED)
    }

    /// Waits for a lock whose holders need nobody's help to let go: the heap's. A drop that does so
    /// stays one that does not wait.
    #[cfg(target_os = "none")]
    pub(crate) fn lock_briefly(&self) -> MutexGuard<'_, T> {
        self.lock_by(abi::api::BRIEF)
    }

    fn lock_by(&self, how: u32) -> MutexGuard<'_, T> {
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        while self.state.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            // SAFETY: a word of our own.
            unsafe { (api().wait)(&self.state, WAITED_FOR, NO_DEADLINE, how) };
        }
        MutexGuard::new(self)
    }

    /// Waits for the lock; `None` if a domain on whose behalf the thread waits is ended meanwhile.
    ///
    /// For a lock that is held while others are called, who may themselves wait for what the dead
    /// domain leaves only when this thread has left it.
    pub fn lock_interruptible(&self) -> Option<MutexGuard<'_, T>> {
        if let Some(guard) = self.try_lock() {
            return Some(guard);
        }
        while self.state.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            // SAFETY: a word of our own.
            let result =
                unsafe { (api().wait)(&self.state, WAITED_FOR, NO_DEADLINE, INTERRUPTIBLE) };
            if result == WAIT_INTERRUPTED {
                // That the lock is waited for stays said: it costs its holder one needless wake-up.
                pass_on(&self.state);
                return None;
            }
        }
        Some(MutexGuard::new(self))
    }

    /// The lock, if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let taken = self
            .state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        taken.then(|| MutexGuard::new(self))
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

/// The right to use the data. Dropping it unlocks.
///
/// Threads may share a guard only if they may share the data, which need not be so for data behind
/// a lock:
///
/// ```compile_fail,E0277
/// fn shareable<T: Sync>(_: T) {}
/// let mutex = domain_rt::sync::Mutex::new(core::cell::Cell::new(1));
/// shareable(mutex.lock());
/// ```
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// Takes away the `Sync` that the reference alone would give.
    _data: PhantomData<&'a mut UnsafeCell<T>>,
}

// SAFETY: a shared guard gives out `&T` only.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T> MutexGuard<'a, T> {
    /// For whoever has just taken the lock.
    fn new(mutex: &'a Mutex<T>) -> Self {
        MutexGuard {
            mutex,
            _data: PhantomData,
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while it holds the lock.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` excludes other borrows through this guard.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.mutex.state.swap(FREE, Ordering::Release) == WAITED_FOR {
            // SAFETY: a word of our own.
            unsafe { (api().wake)(&self.mutex.state, 1) };
        }
    }
}

/// For whoever was interrupted and does not go on to wait: he may have been woken as well, by the
/// only wake-up that there was, and whoever else waits would wait for ever.
fn pass_on(word: &AtomicU32) {
    // SAFETY: a word of our own.
    unsafe { (api().wake)(word, 1) };
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Somebody notified, or nobody did: look at the condition again.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// A domain on whose behalf the thread waits was ended: undo, and return an error.
    Interrupted,
}

/// A place to wait until a condition on locked data holds.
pub struct Condvar {
    /// Counts notifications.
    count: AtomicU32,
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    /// One that nobody waits at.
    pub const fn new() -> Self {
        Condvar {
            count: AtomicU32::new(0),
        }
    }

    /// Unlocks, waits for a notification, locks again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> (MutexGuard<'a, T>, Wait) {
        self.wait_until(guard, NO_DEADLINE)
    }

    /// As [`wait`](Self::wait), at most until `deadline`, in nanoseconds since boot.
    pub fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: u64,
    ) -> (MutexGuard<'a, T>, Wait) {
        let mutex = guard.mutex;
        let seen = self.count.load(Ordering::Relaxed);
        drop(guard);
        // SAFETY: a word of our own.
        let result = unsafe { (api().wait)(&self.count, seen, deadline, INTERRUPTIBLE) };
        let wait = match result {
            WAIT_INTERRUPTED => {
                pass_on(&self.count);
                Wait::Interrupted
            }
            WAIT_TIMED_OUT => Wait::TimedOut,
            _ => Wait::Woken,
        };
        (mutex.lock(), wait)
    }

    /// Wakes one thread that waits.
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Wakes every thread that waits.
    pub fn notify_all(&self) {
        self.notify(u32::MAX);
    }

    fn notify(&self, count: u32) {
        self.count.fetch_add(1, Ordering::Release);
        // SAFETY: a word of our own.
        unsafe { (api().wake)(&self.count, count) };
    }
}
