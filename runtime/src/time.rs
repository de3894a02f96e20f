//! The time.

use abi::api::{INTERRUPTIBLE, NO_DEADLINE, api};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Nanoseconds of a second, and between two times that [`wall_coarse`] tells apart.
const SECOND: u64 = 1_000_000_000;
const BEAT: u64 = 4_000_000;

/// Nanoseconds since boot.
pub fn now() -> u64 {
    (api().now)()
}

/// Seconds since 1970-01-01 UTC.
pub fn wall_seconds() -> u64 {
    (api().wall)()
}

/// Nanoseconds since 1970-01-01 UTC.
pub fn wall() -> u64 {
    // When the machine started, in seconds since 1970, and one more; 0: not known yet.
    static BEGAN: AtomicU64 = AtomicU64::new(0);
    let mut began = BEGAN.load(Ordering::Relaxed);
    while began == 0 {
        let (before, seconds, after) = (now() / SECOND, wall_seconds(), now() / SECOND);
        // In between a second may have ended.
        if before == after {
            began = seconds.saturating_sub(before).saturating_add(1);
            BEGAN.store(began, Ordering::Relaxed);
        }
    }
    (began - 1).saturating_mul(SECOND).saturating_add(now())
}

/// As [`wall`], as it was at the last of 250 beats of each second: for the times of files, which
/// are noted anew whenever they change.
pub fn wall_coarse() -> u64 {
    let now = wall();
    now - now % BEAT
}

/// Sleeps for `nanoseconds`; less if a domain on whose behalf the thread sleeps is ended meanwhile.
pub fn sleep(nanoseconds: u64) {
    let word = AtomicU32::new(0);
    let deadline = now().saturating_add(nanoseconds).min(NO_DEADLINE - 1);
    // SAFETY: a word of our own that outlives the call.
    unsafe { (api().wait)(&word, 0, deadline, INTERRUPTIBLE) };
}
