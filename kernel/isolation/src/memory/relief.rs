//! Memory that can be had back: who is asked when there is none, and how long is waited for it.
//!
//! A *listener* is a domain that keeps memory it could do without, a cache. A thread of it waits in
//! [`listen`] until memory is short, gives back what it can, and comes again to say how much that
//! was. Who gets no memory for a domain *rings* and waits for the listeners ([`or_wait`]): for a
//! bounded time, and only as long as they give something back, so that a listener that hangs, or
//! asks itself, costs time and nothing else. Nothing here is trusted: what counts is whether the
//! next attempt finds memory.
//!
//! | word | counts |
//! | --- | --- |
//! | `SHORTAGES` | rings; listeners wait for it to change |
//! | `ANSWERS` | returns of listeners; who rang waits for it to change |

use crate::memory::kept::{self, GivenUp};
use crate::platform::{self, PAGE, WaitResult, platform};
use crate::sync::{AtomicU32, AtomicU64};
use abi::RpcError;
use core::sync::atomic::Ordering;

/// The longest that somebody waits for memory, and after which a listener that has not answered
/// counts no more, in nanoseconds.
const PATIENCE: u64 = 300_000_000;

static SHORTAGES: AtomicU32 = AtomicU32::new(0);
static ANSWERS: AtomicU32 = AtomicU32::new(0);
/// Bytes that the last one who rang needed.
static WANTED: AtomicU64 = AtomicU64::new(0);
/// Bytes that listeners say they gave back, in all.
static GIVEN: AtomicU64 = AtomicU64::new(0);
/// Listeners that wait now.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// When a listener was told of a shortage last.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// What a listener is told.
pub struct Shortage {
    /// Which one it is.
    pub number: u32,
    /// Bytes that are needed.
    pub bytes: u64,
}

/// For listeners: says that `given` bytes were given back for shortage number `answered`, and waits
/// for a later one.
///
/// # Errors
/// [`RpcError::Interrupted`] if a domain on whose behalf the thread waits was ended.
pub fn listen(answered: u32, given: u64) -> Result<Shortage, RpcError> {
    GIVEN.fetch_add(given, Ordering::Relaxed);
    ANSWERS.fetch_add(1, Ordering::Release);
    platform().wake(&ANSWERS, u32::MAX);
    WAITING.fetch_add(1, Ordering::Relaxed);
    let result = wait_for_later(answered);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    result?;
    TOLD.store(platform().now(), Ordering::Relaxed);
    Ok(Shortage {
        number: SHORTAGES.load(Ordering::Acquire),
        bytes: WANTED.load(Ordering::Relaxed),
    })
}

fn wait_for_later(answered: u32) -> Result<(), RpcError> {
    while SHORTAGES.load(Ordering::Acquire) == answered {
        if platform::wait(&SHORTAGES, answered, None) == WaitResult::Interrupted {
            return Err(RpcError::Interrupted);
        }
    }
    Ok(())
}

/// Tells listeners that `bytes` bytes are needed.
pub fn ring(bytes: usize) {
    WANTED.store(bytes as u64, Ordering::Relaxed);
    SHORTAGES.fetch_add(1, Ordering::Release);
    platform().wake(&SHORTAGES, u32::MAX);
}

/// Listeners that can be expected to answer.
fn listeners() -> u32 {
    let waiting = WAITING.load(Ordering::Relaxed);
    let told = TOLD.load(Ordering::Relaxed);
    let at_work = told != 0 && platform().now().saturating_sub(told) < PATIENCE;
    waiting + u32::from(at_work)
}

/// What `attempt` finds: `bytes` bytes of memory. While it finds none, images that are kept for
/// instances to come are given up, and listeners are asked for some. To be called without a lock.
#[inline]
pub fn or_wait<T>(bytes: usize, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let found = attempt();
    if found.is_some() {
        return found;
    }
    wait_for(bytes, &mut attempt)
}

/// What [`or_wait`] does when there was none.
#[cold]
fn wait_for<T>(bytes: usize, attempt: &mut impl FnMut() -> Option<T>) -> Option<T> {
    // What the machine does not have at all is nobody's to give.
    if bytes.div_ceil(PAGE) > platform().memory() {
        return None;
    }
    let mut found = None;
    if kept::give_up() == GivenUp::Something {
        found = attempt();
    }
    if found.is_some() || listeners() == 0 {
        return found;
    }
    let deadline = platform().now() + PATIENCE;
    // Answers in a row that brought nothing: as many as there are listeners, and one that was under
    // way.
    let (mut fruitless, most) = (0, listeners() + 1);
    while found.is_none() && fruitless < most && platform().now() < deadline {
        let seen = ANSWERS.load(Ordering::Acquire);
        let given = GIVEN.load(Ordering::Relaxed);
        ring(bytes);
        match platform::wait(&ANSWERS, seen, Some(deadline)) {
            WaitResult::Interrupted => return None,
            _ if GIVEN.load(Ordering::Relaxed) == given => fruitless += 1,
            _ => fruitless = 0,
        }
        found = attempt();
    }
    found
}
