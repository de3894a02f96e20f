//! A thread that wakes at each beat, and notes how late: what it misses is what it was held up.

use alloc::sync::Arc;
use domain_rt::sync::{Condvar, Mutex};
use domain_rt::{thread, time};
use interfaces::{RVec, RpcResult};

/// The longest time between two beats, in nanoseconds, and the most beats: a hostile caller's, too,
/// come to an end.
const LONGEST: u64 = 1_000_000;
const MOST: usize = 4000;

/// Where the thread leaves what it has noted.
#[derive(Default)]
struct Answer {
    late: Mutex<Option<RVec<u64>>>,
    bell: Condvar,
}

/// Has a thread note by how many nanoseconds it is late at each beat.
pub fn count(period: u64, mut late: RVec<u64>) -> RpcResult<RVec<u64>> {
    let period = period.min(LONGEST);
    let answer = Arc::new(Answer::default());
    let to = answer.clone();
    thread::spawn("beats", move || {
        let mut next = time::now();
        for place in late.iter_mut().take(MOST) {
            next += period;
            time::sleep(next.saturating_sub(time::now()));
            *place = time::now().saturating_sub(next);
        }
        *to.late.lock() = Some(late);
        to.bell.notify_one();
    })?;
    let mut late = answer.late.lock();
    loop {
        if let Some(late) = late.take() {
            return Ok(late);
        }
        (late, _) = answer.bell.wait(late);
    }
}
