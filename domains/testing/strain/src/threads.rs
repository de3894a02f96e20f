//! Taking processor time.

use core::sync::atomic::{AtomicBool, Ordering};

use domain_rt::{thread, time};
use ulib::{Env, Error, Stop, println};

/// All threads are there: they begin to compute.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// How long a thread sleeps before it looks again whether all are there, in nanoseconds.
const LOOK: u64 = 50_000_000;

/// Runs `count` threads that compute for ever, this one among them. They begin when all are there
/// and that was said: whoever makes threads beside those that compute already gets ever fewer
/// turns.
pub fn spin(env: &Env, count: u64) -> Result<i32, Stop> {
    for _ in 1..count {
        if thread::spawn("spinner", wait_and_compute).is_err() {
            return Err(Stop::about(b"spin", Error::text("no thread")));
        }
    }
    println!(env, "{count} threads")?;
    env.flush()?;
    BEGUN.store(true, Ordering::Release);
    compute()
}

fn wait_and_compute() {
    while !BEGUN.load(Ordering::Acquire) {
        time::sleep(LOOK);
    }
    compute()
}

fn compute() -> ! {
    loop {
        core::hint::spin_loop();
    }
}
