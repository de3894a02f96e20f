//! A bound on the time that a call into a domain may take, whether it computes or waits.

use alloc::sync::Arc;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{thread, time};
use interfaces::RpcResult;

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
