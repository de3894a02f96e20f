//! Threads of this domain.

use abi::api::api;
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
    let body: Body = Box::new(body);
    let data = Box::into_raw(Box::new(body));
    // SAFETY: `run` takes exactly this box; the name is lent for the call.
    let thread = unsafe { (api().spawn)(run, data.cast(), name.as_ptr(), name.len()) };
    if thread == 0 {
        // SAFETY: the thread was not started, so the box is still ours.
        drop(unsafe { Box::from_raw(data) });
        return Err(RpcError::NoMemory);
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
