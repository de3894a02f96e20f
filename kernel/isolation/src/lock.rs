//! A spin lock that keeps its holder from being interrupted.
//!
//! On the bare machine taking it switches interrupts off. So a holder always runs to its end, which
//! two things rely on: a thread that is stopped for a kill never holds one, and code that runs in
//! an exception or interrupt handler may take one.

use crate::sync::{AtomicBool, spin};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::Ordering;

/// Data behind a spin lock.
pub struct Lock<T> {
    held: AtomicBool,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives out one `&mut T` at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The right to use the data. Dropping it unlocks.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    interrupts: bool,
    /// Neither shared nor sent: the interrupts are those of this processor, and the data may be
    /// `!Sync`.
    _here: PhantomData<*mut T>,
}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(data: T) -> Self {
        Lock {
            held: AtomicBool::new(false),
            data: UnsafeCell::new(data),
        }
    }

    /// Waits for the lock. The holder must not block and must not call into a domain.
    pub fn lock(&self) -> Guard<'_, T> {
        loop {
            let interrupts = disable_interrupts();
            if self
                .held
                .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Guard {
                    lock: self,
                    interrupts,
                    _here: PhantomData,
                };
            }
            // Let interrupts in while waiting: another processor may be asking this one to stop.
            restore_interrupts(interrupts);
            while self.held.load(Ordering::Relaxed) {
                spin();
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while the lock is held by it.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` excludes other borrows through this guard.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
        restore_interrupts(self.interrupts);
    }
}

/// Switches interrupts off; whether they were on.
#[cfg(all(target_os = "none", not(feature = "hosted")))]
#[inline(always)]
#[must_use = "they must be restored as they were"]
fn disable_interrupts() -> bool {
    let flags: u64;
    // SAFETY: reading the flags and clearing IF touches no memory but one stack word.
    unsafe {
        core::arch::asm!("pushfq", "pop {}", "cli", out(reg) flags, options(preserves_flags))
    };
    flags & (1 << 9) != 0
}

/// Switches interrupts on again if `on`.
#[cfg(all(target_os = "none", not(feature = "hosted")))]
#[inline(always)]
fn restore_interrupts(on: bool) {
    if on {
        // SAFETY: they were on before the matching `disable_interrupts`.
        unsafe { core::arch::asm!("sti", options(nostack, preserves_flags)) };
    }
}

/// In a Linux process there are no interrupts. A thread may be stopped while it holds a lock, which
/// is harmless: whoever stops it takes none, and moves it only if its instruction pointer is a
/// domain's. What must be known is whether a fault came while a lock was held, so a word behind GS
/// counts the locks.
#[cfg(all(target_os = "none", feature = "hosted"))]
#[inline(always)]
#[must_use = "they must be restored as they were"]
fn disable_interrupts() -> bool {
    // SAFETY: GS points to the thread's own words (see `crate::call::thread`), of which this one
    // is the lock's.
    unsafe {
        core::arch::asm!("inc qword ptr gs:[{word}]", word = const abi::words::LOCKS, options(nostack))
    };
    true
}

/// The counterpart.
#[cfg(all(target_os = "none", feature = "hosted"))]
#[inline(always)]
fn restore_interrupts(on: bool) {
    if on {
        // SAFETY: as above; `disable_interrupts` counted up.
        unsafe {
            core::arch::asm!("dec qword ptr gs:[{word}]", word = const abi::words::LOCKS, options(nostack))
        };
    }
}

/// Locks that the running thread holds.
#[cfg(all(target_os = "none", feature = "hosted"))]
pub fn held() -> u64 {
    let count;
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("mov {}, gs:[{word}]", out(reg) count, word = const abi::words::LOCKS, options(nostack, readonly))
    };
    count
}

/// On the host, for tests, nothing interrupts.
#[cfg(not(target_os = "none"))]
#[must_use = "they must be restored as they were"]
fn disable_interrupts() -> bool {
    false
}

/// The counterpart.
#[cfg(not(target_os = "none"))]
fn restore_interrupts(_on: bool) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excludes() {
        extern crate std;
        static COUNT: Lock<u64> = Lock::new(0);
        let threads: std::vec::Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..1000).for_each(|_| *COUNT.lock() += 1)))
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(*COUNT.lock(), 4000);
    }
}
