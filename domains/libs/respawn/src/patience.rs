//! How long one waits for the next instance of what has served, where it is refused.
//!
//! A start that is refused says nothing of whether the next one will be: what it needs may just be
//! starting again itself. `init` answers with the refusal for a while, without a try. A client that
//! knows that the domain has worked before, and whose callers are not to notice a crash, asks again
//! for some time. When that is over, and nothing has served since, each call is told at once.

use core::sync::atomic::{AtomicU64, Ordering};

use interfaces::RpcError;

use crate::fetch::Absent;
#[cfg(test)]
use crate::tests::clock;
use crate::{ATTEMPTS, report};
#[cfg(not(test))]
use domain_rt::time as clock;

/// How long, in nanoseconds, from the first refusal on. It is longer than `init` leaves a start
/// alone that was refused for the first time, and for some times after.
const PATIENCE: u64 = 10_000_000_000;
/// How long until it is asked again.
const PAUSE: u64 = 20_000_000;

/// Since when a domain is refused; 0: it is not.
#[derive(Default)]
pub struct Patience(AtomicU64);

impl Patience {
    /// Makes `attempt` until it finds an instance of what has served, for ten seconds from the
    /// first refusal on at most.
    ///
    /// # Errors
    /// The last refusal; at once what does not pass: that it crashed too often, that there is no
    /// memory. An interrupted start is tried again a few times: that may have been another's.
    pub fn wait<T, E>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Absent<E>>,
    ) -> Result<T, Absent<E>> {
        let mut interrupted = 0;
        loop {
            let why = match attempt() {
                Ok(found) => {
                    self.0.store(0, Ordering::Relaxed);
                    return Ok(found);
                }
                Err(why) => why,
            };
            match &why {
                Absent::CannotStart(text) => {
                    if !self.may_wait(clock::now(), text.as_str()) {
                        return Err(why);
                    }
                    clock::sleep(PAUSE);
                }
                Absent::Unasked(RpcError::Interrupted) if interrupted < ATTEMPTS => {
                    interrupted += 1;
                }
                _ => return Err(why),
            }
        }
    }

    fn may_wait(&self, now: u64, why: &str) -> bool {
        let now = now.max(1);
        let order = Ordering::Relaxed;
        let since = match self.0.compare_exchange(0, now, order, order) {
            Ok(_) => {
                report(format_args!("waits for the next instance: {why}"));
                now
            }
            Err(since) => since,
        };
        now.saturating_sub(since) < PATIENCE
    }
}
