//! Clearing away what dead domains owned, ending objects for which there was no stack elsewhere,
//! and looking who owns too much.
//!
//! The first two run drops in domains that live, which may take their time or never return. So
//! threads of their own do it, not the reaper's: whoever blocks one of them delays what that one
//! clears away, and if he is ended in turn, the reaper gets the thread out of him. A helper is
//! added when work waits for ten milliseconds and none is idle, and leaves when it finds no more.
//! Who is in a drop of a living domain does not count ([`crate::call::drops`]): of those there may
//! be as many as there are domains.

use super::kill;
use crate::call::thread::with_root;
use crate::call::{drops, handle};
use crate::domain::queues::{HELPERS_WORK, QUEUE, away};
use crate::domain::{ControlBlock, Reason, State, budget};
use crate::platform::{Attributes, platform};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Most helpers.
const MOST_HELPERS: u32 = 16;

/// Starts the first helper. Called once at boot.
///
/// # Panics
/// If there is no memory for its thread.
pub(crate) fn init() {
    let first = add_helper();
    assert!(first == NewHelper::Added, "memory for the first helper");
}

/// Whether there is more work than idle helpers, so that [`add_helper`] should be called if it
/// stays so.
pub(crate) fn is_behind() -> bool {
    let queue = QUEUE.lock();
    let waits = queue.ready.len() + queue.dropping.len() + usize::from(other_work());
    waits > queue.idle as usize
}

/// Whether there is work that is not in the queue.
fn other_work() -> bool {
    handle::any_buried() || budget::audit_waits()
}

/// Threads that there are.
#[cfg(feature = "faults")]
pub(crate) fn helpers() -> u32 {
    let queue = QUEUE.lock();
    queue.helpers + queue.away
}

/// What becomes of a wish for one more helper.
#[must_use = "work may wait without one"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewHelper {
    /// It looks for work from here on.
    Added,
    /// There are as many as there may be, or there is no memory for its thread.
    NotNow,
}

/// One more helper, unless there are enough, or no memory for it.
pub(crate) fn add_helper() -> NewHelper {
    {
        let mut queue = QUEUE.lock();
        if queue.helpers >= MOST_HELPERS {
            return NewHelper::NotNow;
        }
        queue.helpers += 1;
        queue.idle += 1;
    }
    let added = platform().spawn("undertaker", help, 0, &Attributes::KERNEL);
    if added.is_some() {
        return NewHelper::Added;
    }
    let mut queue = QUEUE.lock();
    queue.helpers -= 1;
    queue.idle -= 1;
    NewHelper::NotNow
}

/// The first function of every helper.
extern "C" fn help(_: usize) {
    with_root(|| {
        loop {
            let seen = HELPERS_WORK.load(Ordering::Acquire);
            while work() == Work::Done {}
            if leave_or_stay() == Idle::Leaves {
                return;
            }
            platform().wait(&HELPERS_WORK, seen, None);
        }
    })
}

/// What a helper without work does.
#[must_use = "a helper that leaves is not counted any more"]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Idle {
    /// Its thread ends.
    Leaves,
    /// It waits for work.
    Stays,
}

/// Counts off the helper that asks, who has no work, if it is not needed any more: one stays, the
/// others give their stacks back.
fn leave_or_stay() -> Idle {
    let mut queue = QUEUE.lock();
    // Work that came since it looked for some was not given to anybody else, who counted on it.
    let work = !queue.ready.is_empty() || !queue.dropping.is_empty() || other_work();
    let leaves = queue.helpers > 1 && !work;
    #[cfg(test)]
    let leaves = leaves || crate::model::is_over();
    if !leaves {
        return Idle::Stays;
    }
    queue.helpers -= 1;
    queue.idle -= 1;
    Idle::Leaves
}

/// A piece of work.
enum Piece {
    /// To clear away what a dead domain owned.
    Dead(Arc<ControlBlock>),
    /// To carry out drops in a living one.
    Drops(Arc<ControlBlock>),
    /// What is not in the queue.
    Other,
}

/// The next piece of work; whoever takes it is not idle.
fn next() -> Option<Piece> {
    let mut queue = QUEUE.lock();
    let piece = match queue.dropping.pop_front() {
        Some(block) => Some(Piece::Drops(block)),
        None => queue.ready.pop_front().map(Piece::Dead),
    };
    let piece = piece.or_else(|| other_work().then_some(Piece::Other))?;
    queue.idle -= 1;
    Some(piece)
}

/// Whether there was work.
#[must_use = "who finds none rests"]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// One piece of it is done.
    Done,
    /// There is none.
    None,
}

/// Does a piece of work, if there is one.
fn work() -> Work {
    let Some(piece) = next() else {
        return Work::None;
    };
    match &piece {
        Piece::Dead(block) => kill::reclaim(block),
        Piece::Drops(block) => away(block, || drops::help(block)),
        Piece::Other => {
            handle::end_buried();
            budget::audit(|block| kill::kill(block, Reason::OverBudget));
        }
    }
    QUEUE.lock().idle += 1;
    // Idle first: whoever waits for this may have the next domain die at once, which needs no other
    // helper.
    if let Piece::Dead(block) = piece {
        block.enter_state(State::Gone);
    }
    Work::Done
}
