//! Writes what a tally counts to the log: the second example of `docs/guide/write-a-domain.md`.
#![no_std]
#![forbid(unsafe_code)]

use domain_rt::{log, thread, time};
use interfaces::{Handle, RpcResult, Tally};

/// Time between two looks, in nanoseconds.
const PAUSE: u64 = 50_000_000;

/// Starts the thread that watches. It lives as long as the domain.
///
/// # Errors
/// There is no memory for a thread.
pub fn start(tally: Handle<dyn Tally>) -> RpcResult<()> {
    thread::spawn("watch", move || watch(&tally))
}

fn watch(tally: &Handle<dyn Tally>) {
    let mut seen = (0, 0);
    loop {
        match tally.counts() {
            Ok(counts) if (counts.read, counts.written) != seen => {
                log!("{} sectors read, {} written", counts.read, counts.written);
                seen = (counts.read, counts.written);
            }
            Ok(_) => {}
            // The domain that counts has crashed. `init` starts both anew, so this instance just
            // ends its thread.
            Err(error) => return log!("nobody counts any more: {error}"),
        }
        time::sleep(PAUSE);
    }
}
