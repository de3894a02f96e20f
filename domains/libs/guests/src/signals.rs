//! What others tell a process and its threads: signals, and that something has changed that a
//! thread may wait for.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{Handle, UserThread};
use linux::errno::{SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};

/// Signals that do nothing unless they are caught: of children, of going on, urgent data and
/// windows.
pub const HARMLESS: u64 = bit(17) | bit(18) | bit(23) | bit(28);

/// Signals that stop a process unless they are caught.
pub const STOPS: u64 = bit(SIGSTOP) | bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU);

/// The place of a signal among 64.
pub const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Signals that no mask puts off.
const UNMASKED: u64 = bit(SIGKILL) | bit(SIGSTOP);

/// Signals of a process, for whichever of its threads: a bit each. Once SIGKILL is there it stays,
/// and all threads end. SIGSTOP is there as long as the process is stopped, and all threads rest.
pub struct Signals {
    pending: AtomicU64,
    /// Those that are not wanted.
    ignored: AtomicU64,
}

impl Signals {
    /// None.
    pub fn new(ignored: u64) -> Self {
        Signals {
            pending: AtomicU64::new(0),
            ignored: AtomicU64::new(ignored),
        }
    }

    /// Notes a signal that somebody sends; whether a thread has to be told.
    #[inline]
    pub fn note(&self, signal: u32) -> bool {
        if self.ignored.load(Ordering::Acquire) & bit(signal) != 0 {
            return false;
        }
        self.pending.fetch_or(bit(signal), Ordering::AcqRel);
        true
    }

    /// Takes back signals that have not been taken; which there were.
    #[inline]
    pub fn withdraw(&self, signals: u64) -> u64 {
        self.pending.fetch_and(!signals, Ordering::AcqRel) & signals
    }

    /// Those that are to come.
    #[inline]
    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Acquire)
    }

    /// Signals that are not wanted.
    #[inline]
    pub fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// Sets which signals are not wanted.
    pub fn ignore_all(&self, signals: u64) {
        self.ignored.store(signals, Ordering::Release);
    }

    /// Sets whether a signal is wanted.
    #[inline]
    pub fn ignore(&self, signal: u32, ignores: bool) {
        match ignores {
            true => self.ignored.fetch_or(bit(signal), Ordering::AcqRel),
            false => self.ignored.fetch_and(!bit(signal), Ordering::AcqRel),
        };
    }
}

/// What a thread shares with those who signal it, or wake it.
pub struct Ears {
    /// Signals that are to come for this thread alone, and those that it does not put off: a bit
    /// each.
    pending: AtomicU64,
    open: AtomicU64,
    /// Those of its process.
    common: Arc<Signals>,
    /// How often something has changed that the thread may wait for.
    changes: AtomicU32,
    /// Somebody has woken it that waits at a word of the program's.
    pub is_woken: AtomicBool,
    is_asleep: Mutex<bool>,
    bell: Condvar,
    /// What its program runs in, which another one takes the place of.
    thread: Mutex<Handle<dyn UserThread>>,
}

impl Ears {
    /// Of a new thread, whose program runs in `thread`.
    pub fn new(thread: Handle<dyn UserThread>, common: &Arc<Signals>, masked: u64) -> Self {
        Ears {
            pending: AtomicU64::new(0),
            open: AtomicU64::new(!masked | UNMASKED),
            common: common.clone(),
            changes: AtomicU32::new(0),
            is_woken: AtomicBool::new(false),
            is_asleep: Mutex::new(false),
            bell: Condvar::new(),
            thread: Mutex::new(thread),
        }
    }

    /// The program runs in another thread from now on; gives the one before.
    pub fn follow(&self, thread: Handle<dyn UserThread>) -> Handle<dyn UserThread> {
        core::mem::replace(&mut *self.thread.lock(), thread)
    }

    /// Notes a signal for this thread.
    #[inline]
    pub fn note(&self, signal: u32) {
        self.pending.fetch_or(bit(signal), Ordering::AcqRel);
    }

    /// Has the thread look at its signals, whether it runs or waits.
    #[inline]
    pub fn call(&self) {
        let _ = self.thread.lock().kick();
        self.ring();
    }

    /// Something has changed that the thread may wait for.
    #[inline]
    pub fn ring(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        let is_asleep = *self.is_asleep.lock();
        if is_asleep {
            self.bell.notify_all();
        }
    }

    /// How often something has changed so far.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Waits until more has changed than `seen`, to a time at most.
    #[inline]
    pub fn sleep(&self, seen: u32, deadline: Option<u64>) -> Wait {
        let mut is_asleep = self.is_asleep.lock();
        if self.changes() != seen {
            return Wait::Woken;
        }
        *is_asleep = true;
        let (mut is_asleep, why) = match deadline {
            Some(deadline) => self.bell.wait_until(is_asleep, deadline),
            None => self.bell.wait(is_asleep),
        };
        *is_asleep = false;
        why
    }

    /// Signals that are to be taken now.
    #[inline]
    pub fn ready(&self) -> u64 {
        let pending = self.pending.load(Ordering::Acquire) | self.common.pending();
        pending & self.open.load(Ordering::Relaxed)
    }

    /// Signals that have come and wait, since they are put off.
    pub fn waiting(&self) -> u64 {
        let pending = self.pending.load(Ordering::Acquire) | self.common.pending();
        pending & self.mask()
    }

    /// Takes one of them, unless another thread is faster. SIGKILL and SIGSTOP stay.
    #[inline]
    pub fn take(&self) -> Option<u32> {
        loop {
            let ready = self.ready();
            if ready == 0 {
                return None;
            }
            for stays in [SIGKILL, SIGSTOP] {
                if ready & bit(stays) != 0 {
                    return Some(stays);
                }
            }
            let signal = ready.trailing_zeros() + 1;
            for place in [&self.pending, &self.common.pending] {
                if place.fetch_and(!bit(signal), Ordering::AcqRel) & bit(signal) != 0 {
                    return Some(signal);
                }
            }
        }
    }

    /// Whether this thread alone is to end.
    #[inline]
    pub fn ends_alone(&self) -> bool {
        self.pending.load(Ordering::Acquire) & bit(SIGKILL) != 0
    }

    /// Signals that wait.
    #[inline]
    pub fn mask(&self) -> u64 {
        !self.open.load(Ordering::Relaxed)
    }

    /// Sets which signals wait; those that cannot be put off do not.
    #[inline]
    pub fn set_mask(&self, mask: u64) {
        self.open.store(!mask | UNMASKED, Ordering::Relaxed);
    }
}
