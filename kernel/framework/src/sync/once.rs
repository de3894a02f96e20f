//! A value that is set once and read by everybody afterwards.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

use super::relax;
use crate::smp;

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const READY: u8 = 2;

/// A cell that is filled at most once.
pub struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by the one who moved EMPTY to BUSY and only read after READY, so
// processors share `&T` (`T: Sync`) of a value made on another one (`T: Send`).
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The value, if it has been set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != READY {
            return None;
        }
        // SAFETY: READY is stored after the value was written, and nothing writes it again.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// The value; the first caller makes it, others spin meanwhile. `make` must not call back here.
    /// Whoever may come second comes with interrupts on, or while nothing else runs, as at boot:
    /// the first caller may lose its processor in the middle.
    pub fn call_once(&self, make: impl FnOnce() -> T) -> &T {
        let claim = self
            .state
            .compare_exchange(EMPTY, BUSY, Ordering::Acquire, Ordering::Acquire);
        if claim.is_ok() {
            let value = make();
            // SAFETY: only the caller that moved EMPTY to BUSY gets here, and nobody reads the
            // value before READY.
            unsafe { (*self.value.get()).write(value) };
            self.state.store(READY, Ordering::Release);
        }
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            smp::poll_flush();
            relax();
        }
    }

    /// Sets the value; gives it back if there was one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.call_once(|| value.take().expect("called once, with a value present"));
        value.map_or(Ok(()), Err)
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        if *self.state.get_mut() == READY {
            // SAFETY: READY means that the value was written, and `&mut self` that nobody reads.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}
