//! The time.

use abi::api::{INTERRUPTIBLE, NO_DEADLINE, api};
use core::sync::atomic::AtomicU32;

/// Nanoseconds since boot.
pub fn now() -> u64 {
    (api().now)()
}

/// Seconds since 1970-01-01 UTC.
pub fn wall_seconds() -> u64 {
    (api().wall)()
}

/// Sleeps for `nanoseconds`; less if a domain on whose behalf the thread sleeps is ended meanwhile.
pub fn sleep(nanoseconds: u64) {
    let word = AtomicU32::new(0);
    let deadline = now().saturating_add(nanoseconds).min(NO_DEADLINE - 1);
    // SAFETY: a word of our own that outlives the call.
    unsafe { (api().wait)(&word, 0, deadline, INTERRUPTIBLE) };
}
