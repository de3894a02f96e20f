//! Ctrl-Z: a process that is stopped waits at its next system call until it is told to go on.
//!
//! That is all: a program that only computes is not stopped before it calls, and one that waits in
//! a call (for a pipe, a child, the disk) finishes the call first. For work at a prompt there is
//! hardly a difference, and the kernel needs no way to halt a thread at any instruction.

use core::sync::atomic::{AtomicBool, Ordering};

use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::Errno;

use crate::errors;

/// Whether a process is stopped.
pub struct Stop {
    /// As `stopped`, for who only looks.
    hint: AtomicBool,
    stopped: Mutex<bool>,
    /// Notified when it may go on.
    resumed: Condvar,
    /// It was stopped, and nobody was told yet.
    news: AtomicBool,
}

impl Stop {
    /// It runs.
    pub fn new() -> Self {
        Stop {
            hint: AtomicBool::new(false),
            stopped: Mutex::new(false),
            resumed: Condvar::new(),
            news: AtomicBool::new(false),
        }
    }

    /// Stops it.
    pub fn stop(&self) {
        *self.stopped.lock() = true;
        self.hint.store(true, Ordering::SeqCst);
        self.news.store(true, Ordering::SeqCst);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        *self.stopped.lock() = false;
        self.hint.store(false, Ordering::SeqCst);
        self.news.store(false, Ordering::SeqCst);
        self.resumed.notify_all();
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.hint.load(Ordering::SeqCst)
    }

    /// Whether it was stopped since this was last asked.
    pub fn take_news(&self) -> bool {
        self.news.swap(false, Ordering::SeqCst)
    }

    /// Waits while it is stopped.
    ///
    /// # Errors
    /// `Interrupted` if the process is ended meanwhile.
    pub fn gate(&self) -> Result<(), Errno> {
        if !self.is_stopped() {
            return Ok(());
        }
        let mut stopped = self.stopped.lock();
        while *stopped {
            let (guard, wait) = self.resumed.wait(stopped);
            if wait == Wait::Interrupted {
                return Err(errors::INTERRUPTED);
            }
            stopped = guard;
        }
        Ok(())
    }
}
