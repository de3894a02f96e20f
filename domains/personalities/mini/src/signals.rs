//! What others tell a process: signals, and that something has changed that it may wait for.

use crate::errno::SIGKILL;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{Handle, UserThread};

/// Signals that do nothing unless they are caught: of children, of going on, urgent data and
/// windows.
pub const HARMLESS: u64 = bit(17) | bit(18) | bit(23) | bit(28);

pub const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// What is to be done at a signal.
#[derive(Clone, Copy, Default)]
pub struct Handler {
    /// 0: the usual; 1: nothing; else the function.
    pub function: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

/// The handlers of a process, by the signals' numbers.
pub type Handlers = Box<[Handler; 65]>;

/// What a process shares with those who signal it, or wake it.
pub struct Ears {
    /// Signals that are to come, that wait, and that are not wanted: a bit each.
    pending: AtomicU64,
    masked: AtomicU64,
    ignored: AtomicU64,
    /// How often something has changed that the process may wait for.
    changes: AtomicU32,
    is_asleep: Mutex<bool>,
    bell: Condvar,
    /// What its program runs in, which another one takes the place of.
    thread: Mutex<Handle<dyn UserThread>>,
}

impl Ears {
    /// Of a new process, whose program runs in `thread`.
    pub fn new(thread: Handle<dyn UserThread>, masked: u64, ignored: u64) -> Self {
        Ears {
            pending: AtomicU64::new(0),
            masked: AtomicU64::new(masked),
            ignored: AtomicU64::new(ignored),
            changes: AtomicU32::new(0),
            is_asleep: Mutex::new(false),
            bell: Condvar::new(),
            thread: Mutex::new(thread),
        }
    }

    /// The program runs in another thread from now on; gives the one before.
    pub fn follow(&self, thread: Handle<dyn UserThread>) -> Handle<dyn UserThread> {
        core::mem::replace(&mut *self.thread.lock(), thread)
    }

    /// Notes a signal that somebody sends; whether the process has to be told.
    pub fn note(&self, signal: u32) -> bool {
        if self.ignored.load(Ordering::Acquire) & bit(signal) != 0 {
            return false;
        }
        self.pending.fetch_or(bit(signal), Ordering::AcqRel);
        true
    }

    /// Has the process look at its signals, whether it runs or waits.
    pub fn call(&self) {
        let _ = self.thread.lock().kick();
        self.ring();
    }

    /// Something has changed that the process may wait for.
    pub fn ring(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        let is_asleep = *self.is_asleep.lock();
        if is_asleep {
            self.bell.notify_all();
        }
    }

    /// How often something has changed so far.
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Waits until more has changed than `seen`, to a time at most.
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
    pub fn ready(&self) -> u64 {
        self.pending.load(Ordering::Acquire) & !self.masked.load(Ordering::Relaxed)
    }

    /// Takes one of them.
    pub fn take(&self) -> Option<u32> {
        let ready = self.ready();
        let signal = (ready != 0).then(|| ready.trailing_zeros() + 1)?;
        self.pending.fetch_and(!bit(signal), Ordering::AcqRel);
        Some(signal)
    }

    /// Signals that wait.
    pub fn mask(&self) -> u64 {
        self.masked.load(Ordering::Relaxed)
    }

    /// Sets which signals wait; those that cannot be put off do not. Gives those of before.
    pub fn set_mask(&self, mask: u64) -> u64 {
        self.masked.swap(mask & !bit(SIGKILL), Ordering::Relaxed)
    }

    /// Signals that are not wanted.
    pub fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// Sets whether a signal is wanted.
    pub fn ignore(&self, signal: u32, ignores: bool) {
        match ignores {
            true => self.ignored.fetch_or(bit(signal), Ordering::AcqRel),
            false => self.ignored.fetch_and(!bit(signal), Ordering::AcqRel),
        };
    }
}
