//! Threads of this domain.

use abi::api::{SMALLEST_STACK, SPAWN_REFUSED, USUAL_STACK, api};
use abi::{RpcError, RpcResult};
use alloc::boxed::Box;

type Body = Box<dyn FnOnce() + Send>;

/// Runs `body` on a new thread of this domain.
///
/// # Errors
/// [`RpcError::NoMemory`] when memory or the domain's thread budget is used up.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> RpcResult<()> {
    spawn_numbered(name, body).map(drop)
}

/// As [`spawn`]; the kernel's number of the thread, never used again. It may run, and end, before
/// this returns.
///
/// # Errors
/// As [`spawn`].
pub fn spawn_numbered(name: &str, body: impl FnOnce() + Send + 'static) -> RpcResult<u64> {
    start(name, 0, 0, USUAL_STACK, Box::new(body))
}

/// As [`spawn_numbered`], for a thread with a stack of 48 KiB, not 128: for those of which there
/// are thousands, and that mostly wait. Every call wants 32 KiB to be left, so such a thread, with
/// all that it calls, has 16 KiB for itself before calls fail with [`RpcError::StackLow`].
///
/// # Errors
/// As [`spawn`].
pub fn spawn_small(name: &str, body: impl FnOnce() + Send + 'static) -> RpcResult<u64> {
    start(name, 0, 0, SMALLEST_STACK, Box::new(body))
}

/// As [`spawn_numbered`], for a thread that has `runtime` nanoseconds of a processor in each
/// `period` nanoseconds, before all threads that were not promised any. What it would run beyond,
/// it waits for until the next period; what it runs beyond in other domains is as with any thread.
/// It stays on one processor. It gives the promise up by its end.
///
/// `runtime` is 100 us at least, `period` 1 ms to 100 ms. A domain may have promised as much as
/// its limit `deadline_percent` says, together with those that it has started.
///
/// # Errors
/// As [`spawn`]; [`RpcError::Refused`] if that is more than the limit or the machine has left, or
/// nonsense, and where the platform cannot promise anything.
pub fn spawn_with_deadline(
    name: &str,
    runtime: u64,
    period: u64,
    body: impl FnOnce() + Send + 'static,
) -> RpcResult<u64> {
    // For the kernel a period of 0 means: no deadline.
    if period == 0 {
        return Err(RpcError::Refused);
    }
    start(name, runtime, period, USUAL_STACK, Box::new(body))
}

fn start(name: &str, runtime: u64, period: u64, stack: usize, body: Body) -> RpcResult<u64> {
    let data = Box::into_raw(Box::new(body));
    let (text, len) = (name.as_ptr(), name.len());
    // SAFETY: `run` takes exactly this box; the name is lent for the call.
    let thread = unsafe { (api().spawn)(run, data.cast(), text, len, runtime, period, stack) };
    if thread == 0 || thread == SPAWN_REFUSED {
        // SAFETY: the thread was not started, so the box is still ours.
        drop(unsafe { Box::from_raw(data) });
        return Err(if thread == 0 {
            RpcError::NoMemory
        } else {
            RpcError::Refused
        });
    }
    Ok(thread)
}

/// Lets another thread run.
pub fn yield_now() {
    (api().yield_now)()
}

/// The first function of every thread.
extern "C" fn run(data: *mut u8) {
    // SAFETY: `spawn` made the box for this thread.
    let body = unsafe { Box::from_raw(data.cast::<Body>()) };
    body();
}
