//! The atomic types that this crate's protocols are made of, and the places where their order
//! matters.
//!
//! Everywhere but in this crate's own tests these are `core`'s types and empty functions: nothing
//! is added to the code that runs. In the tests every access is a point where the scheduler of the
//! model checker (see `crate::model`) may let another thread run, and the protocols can be broken
//! on purpose, one place at a time, to show that the checks would notice.

#[cfg(not(test))]
pub use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

/// A place where another thread may come in between, besides the accesses to atomics.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn point() {}

/// One round of waiting for somebody else's store.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn spin() {
    // A holder in a Linux process may have lost the processor to this very loop. On the bare
    // machine no `spin_loop` hint: under emulation `pause` gives up far more than a moment.
    #[cfg(feature = "hosted")]
    crate::platform::platform().yield_now();
}

#[cfg(test)]
pub use checked::*;

#[cfg(test)]
mod checked {
    use core::sync::atomic::{self, Ordering};

    pub(crate) use crate::model::threads::{point, spin};

    /// A step of a protocol that a test leaves out or does in the wrong order. Where that opens a
    /// window, the thread waits in it once, so that a few hundred schedules are enough to find it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Broken {
        /// None.
        Nothing,
        /// A call tests that the callee is alive before it publishes its record.
        TestFirst,
        /// The stop of the world does not make the other threads' stores visible.
        StopIsNoFence,
        /// A dead domain is cleared away without a look who is inside.
        NobodyLooks,
        /// A dead domain is taken for deserted though others have handles to its objects.
        HandlesAreNothing,
        /// A proxy unlinks its record before the result is handed over.
        LeaveFirst,
        /// The last proxy of an export is found by a load and a store instead of one subtraction.
        TornCount,
        /// A freed object loses its owner after its slot was put back.
        OwnerLate,
        /// A search takes a chunk that has gone to another place for one that was given back.
        ChunkLost,
        /// A proxy has its owner before it is whole.
        OwnerEarly,
        /// A domain that is no longer short of memory is opened by a load and a store.
        OpenedBlindly,
    }

    static BROKEN: atomic::AtomicU8 = atomic::AtomicU8::new(0);

    /// Breaks a step from now on.
    pub fn break_on_purpose(what: Broken) {
        BROKEN.store(what as u8, Ordering::SeqCst);
    }

    /// Whether this step is to be broken.
    pub fn is_broken(what: Broken) -> bool {
        BROKEN.load(Ordering::Relaxed) == what as u8
    }

    macro_rules! checked {
        ($($name:ident($value:ty)),*) => { $(
            /// `core`'s type of this name, with a [`point`] before each access.
            #[derive(Debug)]
            #[repr(transparent)]
            pub struct $name(atomic::$name);

            impl $name {
                pub const fn new(value: $value) -> Self {
                    Self(atomic::$name::new(value))
                }
                pub fn load(&self, order: Ordering) -> $value {
                    point();
                    self.0.load(order)
                }
                pub fn store(&self, value: $value, order: Ordering) {
                    point();
                    self.0.store(value, order);
                }
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.swap(value, order)
                }
                pub fn compare_exchange(
                    &self, from: $value, to: $value, good: Ordering, bad: Ordering,
                ) -> Result<$value, $value> {
                    point();
                    self.0.compare_exchange(from, to, good, bad)
                }
                pub fn compare_exchange_weak(
                    &self, from: $value, to: $value, good: Ordering, bad: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(from, to, good, bad)
                }
            }

            /// For those who take `core`'s own type; what they do with it is one step.
            impl core::ops::Deref for $name {
                type Target = atomic::$name;
                fn deref(&self) -> &atomic::$name {
                    &self.0
                }
            }
        )* };
    }

    checked!(
        AtomicBool(bool),
        AtomicU8(u8),
        AtomicU32(u32),
        AtomicU64(u64),
        AtomicUsize(usize)
    );

    macro_rules! counted {
        ($($name:ident($value:ty)),*) => { $(
            impl $name {
                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_add(value, order)
                }
                pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_sub(value, order)
                }
            }
        )* };
    }

    counted!(AtomicU32(u32), AtomicU64(u64), AtomicUsize(usize));
}
