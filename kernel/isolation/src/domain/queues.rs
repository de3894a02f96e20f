//! Where dead domains, and drops in living ones, wait for the reaper and the undertaker, and the
//! words that those wait for.
//!
//! Whoever has work for them puts it here and wakes them; so nobody below them calls them. Room is
//! made when a domain is, so that a death needs no memory.

use super::ControlBlock;
use super::account::{Charge, Kind, thread_bytes};
use crate::lock::Lock;
use crate::platform::{STACK_BYTES, platform};
use crate::sync::AtomicU32;
use abi::RpcError;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// The dead that somebody may be inside of.
pub(crate) static DYING: Lock<Vec<Arc<ControlBlock>>> = Lock::new(Vec::new());
/// The reaper waits for it to change.
pub(crate) static REAPERS_WORK: AtomicU32 = AtomicU32::new(0);
/// Records that the last look found of calls into dead domains, less those that were left since. It
/// only says when it is worth to look again: a wrong number costs time and nothing else.
pub(crate) static INSIDE: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

/// What waits for the undertaker.
pub(crate) static QUEUE: Lock<Queue> = Lock::new(Queue {
    ready: VecDeque::new(),
    dropping: VecDeque::new(),
    helpers: 0,
    away: 0,
    idle: 0,
});
/// The helpers of the undertaker wait for it to change.
pub(crate) static HELPERS_WORK: AtomicU32 = AtomicU32::new(0);

/// Work for helpers, and how many of them there are.
pub(crate) struct Queue {
    /// Dead domains that nobody is inside of.
    pub(crate) ready: VecDeque<Arc<ControlBlock>>,
    /// Domains with drops that others left to a helper; each is there once.
    pub(crate) dropping: VecDeque<Arc<ControlBlock>>,
    /// Threads that there are, without those that are away.
    pub(crate) helpers: u32,
    /// Threads that are in a drop, which may never return. Their places are taken by others.
    pub(crate) away: u32,
    /// Those of them that look for work.
    pub(crate) idle: u32,
}

/// Makes room for `domains` domains wherever a dead one waits.
///
/// # Errors
/// [`RpcError::NoMemory`].
pub(crate) fn make_room(domains: usize) -> Result<(), RpcError> {
    make_room_to_die(domains)?;
    make_room_for_work(domains)
}

/// Makes room among the dead for `domains` domains, so that a death needs no memory.
///
/// # Errors
/// [`RpcError::NoMemory`].
fn make_room_to_die(domains: usize) -> Result<(), RpcError> {
    let mut dying = DYING.lock();
    let more = domains.saturating_sub(dying.len());
    dying.try_reserve(more).map_err(|_| RpcError::NoMemory)
}

/// Makes room in the queues for `domains` domains, each of which is in each of them once at most.
/// Who waits here later needs no memory for it.
///
/// # Errors
/// [`RpcError::NoMemory`].
fn make_room_for_work(domains: usize) -> Result<(), RpcError> {
    let mut queue = QUEUE.lock();
    let Queue {
        ready, dropping, ..
    } = &mut *queue;
    [ready, dropping].into_iter().try_for_each(|line| {
        let more = domains.saturating_sub(line.len());
        line.try_reserve(more).map_err(|_| RpcError::NoMemory)
    })
}

/// For how many domains there is room.
#[cfg(test)]
pub(crate) fn room() -> usize {
    let queue = QUEUE.lock();
    let working = queue.ready.capacity().min(queue.dropping.capacity());
    working.min(DYING.lock().capacity())
}

/// Hands a dead domain to the reaper.
pub(crate) fn dies(block: Arc<ControlBlock>) {
    DYING.lock().push(block);
    // The caller is to have its error first. It goes on to whoever makes the next instance, and
    // waits there.
    REAPERS_WORK.fetch_add(1, Ordering::Release);
    platform().wake_later(&REAPERS_WORK);
}

/// Makes the reaper look at once.
pub(crate) fn look_again() {
    REAPERS_WORK.fetch_add(1, Ordering::Release);
    platform().wake(&REAPERS_WORK, 1);
}

/// Notes that the running thread has left a call into a dead domain. The last one to leave has the
/// reaper look again.
pub(crate) fn has_left() {
    let one_less = |inside: u32| inside.checked_sub(1);
    let before = INSIDE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    if before == Ok(1) {
        look_again();
    }
}

/// Has everything freed that the dead domain `block` owned. Nobody is inside.
pub(crate) fn clear_away(block: Arc<ControlBlock>) {
    QUEUE.lock().ready.push_back(block);
    work_waits();
}

/// Has a helper carry out the drops that were left to it in `block`, which none does yet.
pub(crate) fn drop_for(block: Arc<ControlBlock>) {
    QUEUE.lock().dropping.push_back(block);
    work_waits();
}

/// Runs `body`, drops of the domain `block` that may never return, in a helper. Meanwhile it does
/// not count as one, and `block` pays for it, whatever its limit says: an object must not stay
/// because its domain is at its limit.
pub(crate) fn away(block: &Arc<ControlBlock>, body: impl FnOnce()) {
    let _charge = Charge::anyway(block.clone(), Kind::Notes, thread_bytes(STACK_BYTES));
    let go = |queue: &mut Queue| (queue.helpers, queue.away) = (queue.helpers - 1, queue.away + 1);
    let come =
        |queue: &mut Queue| (queue.helpers, queue.away) = (queue.helpers + 1, queue.away - 1);
    go(&mut QUEUE.lock());
    body();
    come(&mut QUEUE.lock());
}

/// Wakes a helper.
pub(crate) fn work_waits() {
    HELPERS_WORK.fetch_add(1, Ordering::Release);
    platform().wake(&HELPERS_WORK, 1);
    look_again();
}
