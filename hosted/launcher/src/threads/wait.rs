//! The clocks, waiting for a word of memory, and waking who waits.

use super::{BLOCKED, HOLD, Thread, address_of, current, futex_wait, futex_wake};
use hosted_core::{INTERRUPTED, MISMATCH, NO_DEADLINE, TIMED_OUT, WOKEN};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering, fence};

fn start_of_time() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    *START.get_or_init(monotonic)
}

fn monotonic() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the system writes the time there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// See [`hosted_core::Host::now`].
pub extern "C" fn now() -> u64 {
    let start = start_of_time();
    monotonic() - start
}

/// Seconds since 1970-01-01 UTC; see [`hosted_core::Host::wall`].
pub extern "C" fn wall() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// See [`hosted_core::Host::wait`].
///
/// # Safety
/// `word` is the address of four bytes that stay mapped.
pub unsafe extern "C" fn wait(word: usize, expected: u32, deadline: u64) -> u32 {
    let deadline = (deadline != NO_DEADLINE).then(|| {
        let at = start_of_time()
            .saturating_add(deadline)
            .min(i64::MAX as u64);
        libc::timespec {
            tv_sec: (at / 1_000_000_000) as i64,
            tv_nsec: (at % 1_000_000_000) as i64,
        }
    });
    let Some(thread) = current() else {
        return WOKEN;
    };
    loop {
        thread.begin_block();
        let interrupted = thread.interrupt.swap(0, Ordering::SeqCst) != 0;
        let waiters = waiters_for(word);
        waiters.fetch_add(1, Ordering::SeqCst);
        let error = if interrupted {
            0
        } else {
            // SAFETY: by the caller's duty.
            unsafe { futex_wait(word, expected, deadline.as_ref()) }
        };
        waiters.fetch_sub(1, Ordering::SeqCst);
        thread.end_block();
        match error {
            _ if interrupted || thread.interrupt.swap(0, Ordering::SeqCst) != 0 => {
                return INTERRUPTED;
            }
            libc::EAGAIN => return MISMATCH,
            libc::ETIMEDOUT => return TIMED_OUT,
            libc::EINTR => {}
            _ => return WOKEN,
        }
    }
}

/// See [`hosted_core::Host::wake`].
pub extern "C" fn wake(word: usize, count: u32) -> u32 {
    // The word was changed before this is looked at, and a waiter counts itself before the system
    // compares the word: whoever is not counted here will find it changed.
    fence(Ordering::SeqCst);
    if waiters_for(word).load(Ordering::SeqCst) == 0 {
        return 0;
    }
    futex_wake(word, count)
}

/// Counts of waiting threads, for words by their addresses; several words share one.
static WAITERS: [AtomicU32; WAITER_COUNTS] = [const { AtomicU32::new(0) }; WAITER_COUNTS];
const WAITER_COUNTS: usize = 256;

fn waiters_for(word: usize) -> &'static AtomicU32 {
    &WAITERS[(word >> 2 ^ word >> 12) % WAITER_COUNTS]
}

impl Thread {
    fn begin_block(&self) {
        loop {
            let state = self.state.load(Ordering::SeqCst);
            // Whoever holds this thread has sent it a signal, which comes any moment.
            if state & HOLD != 0 {
                std::hint::spin_loop();
            } else if self.swap_state(state, state | BLOCKED) {
                return;
            }
        }
    }

    fn end_block(&self) {
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if state & HOLD != 0 {
                // SAFETY: the word is a field of this thread's own block.
                unsafe { futex_wait(address_of(&self.state), state, None) };
            } else if self.swap_state(state, state & !BLOCKED) {
                return;
            }
        }
    }

    pub(super) fn swap_state(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }
}
