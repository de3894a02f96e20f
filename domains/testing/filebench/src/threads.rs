//! Threads that do the same at once.

use alloc::sync::Arc;

use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::thread;
use interfaces::RpcError;
use ulib::{Error, Handle, Process};

/// How the threads do.
struct Progress {
    left: u64,
    result: Result<(), Error>,
}

/// Has so many threads do `work`, each with its number.
///
/// # Errors
/// One of theirs.
pub fn at_once(
    process: &Handle<dyn Process>,
    count: u64,
    work: fn(&Handle<dyn Process>, u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let progress = Progress {
        left: count,
        result: Ok(()),
    };
    let shared = Arc::new((Mutex::new(progress), Condvar::new()));
    for number in 0..count {
        let (process, shared) = (process.duplicate()?, shared.clone());
        thread::spawn("worker", move || {
            let result = work(&process, number);
            let mut progress = shared.0.lock();
            progress.left -= 1;
            if result.is_err() {
                progress.result = result;
            }
            shared.1.notify_all();
        })?;
    }
    let mut progress = shared.0.lock();
    while progress.left > 0 {
        let wait;
        (progress, wait) = shared.1.wait(progress);
        if wait == Wait::Interrupted {
            return Err(RpcError::Interrupted.into());
        }
    }
    core::mem::replace(&mut progress.result, Ok(()))
}
