//! A bound on the time that a call into a domain may take, whether it computes or waits.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{thread, time};
use interfaces::{RpcError, RpcResult};

#[derive(Default)]
struct State {
    is_done: bool,
    is_late: bool,
}

#[derive(Default)]
struct Watch {
    state: Mutex<State>,
    done: Condvar,
}

/// Does `work`. If that takes more than `limit` nanoseconds, `end` is called by another thread,
/// which is to bring it to its end. What came of `work`, and whether it was in time.
///
/// # Errors
/// No memory for that thread; nothing was done.
pub fn within<R>(
    limit: u64,
    end: impl FnOnce() + Send + 'static,
    work: impl FnOnce() -> R,
) -> RpcResult<(R, bool)> {
    let watch = Arc::new(Watch::default());
    let of_thread = watch.clone();
    let deadline = time::now().saturating_add(limit);
    thread::spawn("limit", move || {
        if !of_thread.is_done_by(deadline) {
            end();
        }
    })?;
    let result = work();
    let mut state = watch.state.lock();
    state.is_done = true;
    let in_time = !state.is_late;
    drop(state);
    watch.done.notify_all();
    Ok((result, in_time))
}

/// Threads that were left to themselves and have not come back.
static LEFT: AtomicU32 = AtomicU32::new(0);
/// The most of them.
const MOST_LEFT: u32 = 8;

/// What came of work on a thread of its own.
enum Outcome<R> {
    Awaited,
    Done(R),
    /// Nobody waits for it any more.
    Left,
}

/// Does `work` on a thread of its own. If that takes more than `limit` nanoseconds, `end` is
/// called, which may bring it to its end, and the thread is left to itself: `None`.
///
/// # Errors
/// No memory for the thread; [`RpcError::Busy`] if [`MOST_LEFT`] were left and are still at it.
/// Nothing was done.
pub fn apart<R: Send + 'static>(
    limit: u64,
    end: impl FnOnce(),
    work: impl FnOnce() -> R + Send + 'static,
) -> RpcResult<Option<R>> {
    if LEFT.load(Ordering::Relaxed) >= MOST_LEFT {
        return Err(RpcError::Busy);
    }
    let shared = Arc::new((Mutex::new(Outcome::Awaited), Condvar::new()));
    let of_thread = shared.clone();
    let deadline = time::now().saturating_add(limit);
    thread::spawn("apart", move || {
        let result = work();
        let mut outcome = of_thread.0.lock();
        if let Outcome::Left = *outcome {
            LEFT.fetch_sub(1, Ordering::Relaxed);
            // What is late is undone by its drop, outside of the lock.
            drop(outcome);
            return drop(result);
        }
        *outcome = Outcome::Done(result);
        drop(outcome);
        of_thread.1.notify_all();
    })?;
    let mut outcome = shared.0.lock();
    while let Outcome::Awaited = *outcome {
        let wait;
        (outcome, wait) = shared.1.wait_until(outcome, deadline);
        if wait == Wait::TimedOut {
            break;
        }
    }
    if let Outcome::Done(result) = core::mem::replace(&mut *outcome, Outcome::Left) {
        return Ok(Some(result));
    }
    LEFT.fetch_add(1, Ordering::Relaxed);
    drop(outcome);
    end();
    Ok(None)
}

impl Watch {
    fn is_done_by(&self, deadline: u64) -> bool {
        let mut state = self.state.lock();
        while !state.is_done {
            let wait;
            (state, wait) = self.done.wait_until(state, deadline);
            if wait == Wait::TimedOut && !state.is_done {
                state.is_late = true;
                return false;
            }
        }
        true
    }
}
