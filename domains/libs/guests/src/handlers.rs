//! What a process does at signals.
//!
//! One handler is four words, each of which is read and written in one step, so a process of one
//! thread needs no lock. Where there are more, who reads or writes one has a lock meanwhile, so
//! that it is never seen half changed.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use domain_rt::sync::{Mutex, MutexGuard};

/// What is to be done at a signal.
#[derive(Clone, Copy, Default)]
pub struct Handler {
    /// 0: the usual; 1: nothing; else the function.
    pub function: u64,
    /// As `sigaction` has them.
    pub flags: u64,
    /// Where the handler goes back to.
    pub restorer: u64,
    /// The signals that wait meanwhile.
    pub mask: u64,
}

/// The handlers of a process, by the signals' numbers.
pub struct Handlers {
    words: Box<[[AtomicU64; 4]; 65]>,
    lock: Mutex<()>,
    /// There is, or was, more than one thread. The only one says so before it begins another.
    are_shared: AtomicBool,
}

impl Default for Handlers {
    fn default() -> Self {
        Self::new()
    }
}

impl Handlers {
    /// The usual.
    pub fn new() -> Self {
        Handlers {
            words: Box::new([const { [const { AtomicU64::new(0) }; 4] }; 65]),
            lock: Mutex::new(()),
            are_shared: AtomicBool::new(false),
        }
    }

    /// The same for another process.
    pub fn copy(&self) -> Self {
        let copy = Handlers::new();
        for signal in 1..65 {
            copy.set(signal, self.get(signal));
        }
        copy
    }

    /// Another thread will use them.
    pub fn share(&self) {
        self.are_shared.store(true, Ordering::SeqCst);
    }

    #[inline]
    fn lock(&self) -> Option<MutexGuard<'_, ()>> {
        let are_shared = self.are_shared.load(Ordering::Relaxed);
        are_shared.then(|| self.lock.lock())
    }

    /// That of a signal.
    #[inline]
    pub fn get(&self, signal: u32) -> Handler {
        let _lock = self.lock();
        let words = self.words[signal as usize].each_ref();
        let [function, flags, restorer, mask] = words.map(|word| word.load(Ordering::Relaxed));
        Handler {
            function,
            flags,
            restorer,
            mask,
        }
    }

    /// Sets that of a signal; the function of the one before. What it does at each place is less
    /// than to pass the words on.
    #[inline(always)]
    pub fn set(&self, signal: u32, handler: Handler) -> u64 {
        let _lock = self.lock();
        let [function, flags, restorer, mask] = &self.words[signal as usize];
        let before = function.load(Ordering::Relaxed);
        function.store(handler.function, Ordering::Relaxed);
        flags.store(handler.flags, Ordering::Relaxed);
        restorer.store(handler.restorer, Ordering::Relaxed);
        mask.store(handler.mask, Ordering::Relaxed);
        before
    }
}
