//! Clearing away what dead domains owned, ending objects for which there was no stack elsewhere, and looking
//! who owns too much.
//!
//! The first two run drops in domains that live, which may take their time or never return. So threads of their own do
//! it, not the reaper's: whoever blocks one of them delays what that one clears away, and if he is ended in
//! turn, the reaper gets the thread out of him. A helper is added when work waits for ten milliseconds and none is idle, and
//! leaves when it finds no more.

use crate::domain::{ControlBlock, State};
use crate::handle;
use crate::lock::Lock;
use crate::platform::{Attributes, platform};
use crate::sync::AtomicU32;
use crate::thread::with_root;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Most helpers.
const MOST_HELPERS: u32 = 16;
/// Room for dead domains that is reserved at boot.
const RESERVED: usize = 64;

static QUEUE: Lock<Queue> = Lock::new(Queue {
    ready: VecDeque::new(),
    helpers: 0,
    idle: 0,
});
static WORK: AtomicU32 = AtomicU32::new(0);

struct Queue {
    /// Dead domains that nobody is inside of.
    ready: VecDeque<Arc<ControlBlock>>,
    /// Threads that there are.
    helpers: u32,
    /// Those of them that look for work.
    idle: u32,
}

/// Starts the first helper. Called once at boot.
///
/// # Panics
/// If there is no memory for its thread.
pub(crate) fn init() {
    QUEUE.lock().ready.reserve(RESERVED);
    assert!(add_helper(), "memory for the first helper");
}

/// Has everything freed that the dead domain `block` owned. Nobody is inside.
pub(crate) fn clear_away(block: Arc<ControlBlock>) {
    QUEUE.lock().ready.push_back(block);
    work_waits();
}

/// Whether there is more work than idle helpers, so that [`add_helper`] should be called if it stays so.
pub(crate) fn is_behind() -> bool {
    let queue = QUEUE.lock();
    let waits = queue.ready.len() + usize::from(other_work());
    waits > queue.idle as usize
}

/// Whether there is work that is not in the queue.
fn other_work() -> bool {
    handle::any_buried() || crate::budget::audit_waits()
}

/// Wakes a helper.
pub(crate) fn work_waits() {
    WORK.fetch_add(1, Ordering::Release);
    platform().wake(&WORK, 1);
    crate::kill::look_again();
}

/// Threads that there are.
#[cfg(feature = "faults")]
pub(crate) fn helpers() -> u32 {
    QUEUE.lock().helpers
}

/// One more helper, unless there are enough, or no memory for it; whether one was added.
pub(crate) fn add_helper() -> bool {
    {
        let mut queue = QUEUE.lock();
        if queue.helpers == MOST_HELPERS {
            return false;
        }
        queue.helpers += 1;
        queue.idle += 1;
    }
    let added = platform().spawn("undertaker", help, 0, &Attributes::KERNEL);
    let added = added.is_some();
    if !added {
        let mut queue = QUEUE.lock();
        queue.helpers -= 1;
        queue.idle -= 1;
    }
    added
}

/// The first function of every helper.
extern "C" fn help(_: usize) {
    with_root(|| {
        loop {
            let seen = WORK.load(Ordering::Acquire);
            while work() {}
            if leaves() {
                return;
            }
            platform().wait(&WORK, seen, None);
        }
    })
}

/// Whether the helper that asks, who has no work, is not needed any more: one stays, the others give their
/// stacks back.
fn leaves() -> bool {
    let mut queue = QUEUE.lock();
    // Work that came since it looked for some was not given to anybody else, who counted on it.
    let work = !queue.ready.is_empty() || other_work();
    let leaves = queue.helpers > 1 && !work;
    #[cfg(test)]
    let leaves = leaves || crate::model::is_over();
    if leaves {
        queue.helpers -= 1;
        queue.idle -= 1;
    }
    leaves
}

/// Does a piece of work; whether there was one.
fn work() -> bool {
    let block = {
        let mut queue = QUEUE.lock();
        let block = queue.ready.pop_front();
        if block.is_none() && !other_work() {
            return false;
        }
        queue.idle -= 1;
        block
    };
    match &block {
        Some(block) => crate::kill::reclaim(block),
        None => {
            handle::end_buried();
            crate::budget::audit();
        }
    }
    QUEUE.lock().idle += 1;
    // Idle first: whoever waits for this may have the next domain die at once, which needs no other helper.
    if let Some(block) = block {
        block.enter_state(State::Gone);
    }
    true
}
