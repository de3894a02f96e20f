//! A static that boot fills in once and everyone reads afterwards.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

/// A value that is set at most once.
pub struct SetupOnce<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by the one thread that moves the state from EMPTY to FILLING, and
// shared references exist only in state FULL; so `T` is sent to and shared with other threads.
unsafe impl<T: Send + Sync> Sync for SetupOnce<T> {}

impl<T> SetupOnce<T> {
    /// Without a value.
    pub const fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Sets the value.
    ///
    /// # Panics
    /// If it was set before.
    pub fn set(&self, value: T) {
        let before =
            self.state
                .compare_exchange(EMPTY, FILLING, Ordering::Acquire, Ordering::Relaxed);
        assert!(before.is_ok(), "set twice");
        // SAFETY: the exchange made this thread the only one to touch the value.
        unsafe { (*self.value.get()).write(value) };
        self.state.store(FULL, Ordering::Release);
    }

    /// The value, if it was set.
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != FULL {
            return None;
        }
        // SAFETY: in state FULL the value is initialised and never written again.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }
}

impl<T> Default for SetupOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_until_set() {
        let once = SetupOnce::new();
        assert_eq!(once.get(), None);
        once.set(5);
        assert_eq!(once.get(), Some(&5));
    }

    #[test]
    #[should_panic(expected = "set twice")]
    fn setting_twice_panics() {
        let once = SetupOnce::new();
        once.set(1);
        once.set(2);
    }
}
