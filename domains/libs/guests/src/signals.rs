//! What others tell a process and its threads: signals, and that something has changed that a
//! thread may wait for.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{Handle, UserThread};
use linux::errno::{SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
use linux::frame::Info;

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

/// The most signals that wait in a queue with what is told of each. Of standard ones there is one
/// at a time.
const MOST_QUEUED: usize = 1024;
/// The first signal of which several wait (SIGRTMIN).
const FIRST_QUEUED: u32 = 32;

/// Signals that are to come: a bit each, and what is told of them.
struct Pending {
    bits: AtomicU64,
    told: Mutex<Vec<Info>>,
}

impl Pending {
    fn new() -> Self {
        Pending {
            bits: AtomicU64::new(0),
            told: Mutex::new(Vec::new()),
        }
    }

    #[inline]
    fn bits(&self) -> u64 {
        self.bits.load(Ordering::Acquire)
    }

    /// Notes a signal; `false`: as many wait as may, or there is no memory. One of the standard
    /// ones is noted even so, without what is told of it.
    fn note(&self, info: Info) -> bool {
        let mut told = self.told.lock();
        let is_queued = info.signal >= FIRST_QUEUED;
        let is_there = self.bits() & bit(info.signal) != 0;
        let has_room = told.len() < MOST_QUEUED && told.try_reserve(1).is_ok();
        match (is_there && !is_queued, has_room) {
            (true, _) => {}
            (_, true) => told.push(info),
            (_, false) if is_queued => return false,
            _ => {}
        }
        self.bits.fetch_or(bit(info.signal), Ordering::AcqRel);
        true
    }

    /// Takes a signal, if it is there.
    fn take(&self, signal: u32) -> Option<Info> {
        let mut told = self.told.lock();
        if self.bits() & bit(signal) == 0 {
            return None;
        }
        let found = told.iter().position(|info| info.signal == signal);
        let info = found.map(|at| told.remove(at));
        if !told.iter().any(|info| info.signal == signal) {
            self.bits.fetch_and(!bit(signal), Ordering::AcqRel);
        }
        Some(info.unwrap_or(Info {
            signal,
            ..Info::default()
        }))
    }

    /// Takes back signals; which there were.
    fn withdraw(&self, signals: u64) -> u64 {
        let mut told = self.told.lock();
        told.retain(|info| signals & bit(info.signal) == 0);
        self.bits.fetch_and(!signals, Ordering::AcqRel) & signals
    }

    /// Sets a bit that stays.
    #[inline]
    fn set(&self, signal: u32) {
        self.bits.fetch_or(bit(signal), Ordering::AcqRel);
    }
}

/// Signals of a process, for whichever of its threads: a bit each. Once SIGKILL is there it stays,
/// and all threads end. SIGSTOP is there as long as the process is stopped, and all threads rest.
pub struct Signals {
    pending: Pending,
    /// Those that are not wanted.
    ignored: AtomicU64,
}

impl Signals {
    /// None.
    pub fn new(ignored: u64) -> Self {
        Signals {
            pending: Pending::new(),
            ignored: AtomicU64::new(ignored),
        }
    }

    /// Notes a signal that somebody sends; whether a thread has to be told.
    #[inline]
    pub fn note(&self, info: Info) -> bool {
        self.ignored.load(Ordering::Acquire) & bit(info.signal) == 0 && self.pending.note(info)
    }

    /// Notes SIGKILL or SIGSTOP, of which nothing is told, and which stay.
    #[inline]
    pub fn set(&self, signal: u32) {
        self.pending.set(signal);
    }

    /// Takes back signals that have not been taken; which there were.
    #[inline]
    pub fn withdraw(&self, signals: u64) -> u64 {
        self.pending.withdraw(signals)
    }

    /// Those that are to come.
    #[inline]
    pub fn pending(&self) -> u64 {
        self.pending.bits()
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
    pending: Pending,
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
            pending: Pending::new(),
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

    /// Notes a signal for this thread; `false`: as many wait as may.
    pub fn note(&self, info: Info) -> bool {
        self.pending.note(info)
    }

    /// Notes SIGKILL for this thread.
    #[inline]
    pub fn set(&self, signal: u32) {
        self.pending.set(signal);
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
        let pending = self.pending.bits() | self.common.pending();
        pending & self.open.load(Ordering::Relaxed)
    }

    /// Signals that have come and wait, since they are put off.
    pub fn waiting(&self) -> u64 {
        let pending = self.pending.bits() | self.common.pending();
        pending & self.mask()
    }

    /// Takes one of them, unless another thread is faster. SIGKILL and SIGSTOP stay.
    #[inline]
    pub fn take(&self) -> Option<Info> {
        loop {
            let ready = self.ready();
            if ready == 0 {
                return None;
            }
            for stays in [SIGKILL, SIGSTOP] {
                if ready & bit(stays) != 0 {
                    return Some(Info {
                        signal: stays,
                        ..Info::default()
                    });
                }
            }
            let signal = ready.trailing_zeros() + 1;
            for place in [&self.pending, &self.common.pending] {
                if let Some(info) = place.take(signal) {
                    return Some(info);
                }
            }
        }
    }

    /// Whether this thread alone is to end.
    #[inline]
    pub fn ends_alone(&self) -> bool {
        self.pending.bits() & bit(SIGKILL) != 0
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
