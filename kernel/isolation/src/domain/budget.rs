//! How much of the shared heap a domain may own, and what its group is charged for it.
//!
//! An object changes its owner with one plain store, so nobody keeps a sum of what a domain owns.
//! Instead each domain is *granted* bytes in steps, and its group is charged for them. Of a step it
//! has an *allowance* left: bytes that it may allocate before the next step. Frees and gifts change
//! neither. When a limit would be passed - its own, or its group's - the owner tables are read, and
//! what it owns is what was granted from then on; if that leaves nothing, the allocation fails. So
//! a domain pays for its own counting, and the more the closer it comes to its limit.
//!
//! A domain that only receives and never allocates is not met there. Whenever the heap has grown by
//! [`AUDIT_EVERY`], all domains are counted in one pass, and who owns more than twice its limit is
//! ended: it accepted what it got, and whoever gave it is not to suffer.

use crate::domain::group::Group;
use crate::domain::{self, Claim, ControlBlock, queues};
use crate::memory::heap::{OBJECTS, PROXIES, SharedHeap};
use crate::memory::owner::Owner;
use crate::memory::relief;
use crate::sync::{AtomicBool, AtomicUsize};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// Growth of the heap, in bytes, after which everybody is counted.
const AUDIT_EVERY: usize = 4 * 1024 * 1024;

/// Bytes that a domain is granted at a time, where it asks for less and the limits let it.
const STEP: usize = 64 * 1024;

/// Bytes of the heap at the last audit, or the least since then.
static AUDITED: AtomicUsize = AtomicUsize::new(0);
static WAITS: AtomicBool = AtomicBool::new(false);

/// As [`SharedHeap::allocate`], within the budget of `owner`. Waits where others may give memory
/// back.
pub(crate) fn allocate(
    heap: &SharedHeap,
    bytes: usize,
    owner: &ControlBlock,
) -> Option<NonNull<u8>> {
    if charge(owner, SharedHeap::footprint(bytes)) == Claim::Refused {
        return None;
    }
    let object = relief::or_wait(SharedHeap::footprint(bytes), || {
        heap.allocate_if(bytes, owner.owner(), |pages| owner.may_take(pages))
    });
    if has_grown(OBJECTS.bytes() + PROXIES.bytes()) && !WAITS.swap(true, Ordering::Relaxed) {
        queues::work_waits();
    }
    object
}

/// Takes `bytes` from the allowance of `owner`, if the limits let it.
pub(crate) fn charge(owner: &ControlBlock, bytes: usize) -> Claim {
    if !owner.is_bounded() {
        return Claim::Granted;
    }
    let spend = |left: usize| left.checked_sub(bytes);
    let allowance = &owner.counters.allowance;
    let spent = allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
    match spent {
        Ok(_) => Claim::Granted,
        Err(_) => grant(owner, bytes),
    }
}

/// Grants `owner` another step, of which `bytes` are spent, if the limits let it.
fn grant(owner: &ControlBlock, bytes: usize) -> Claim {
    let Some(group) = owner.group() else {
        return Claim::Granted;
    };
    let mut step = bytes.max(STEP);
    if own_left(owner) < step {
        settle(owner, group, owned_by(owner.owner()));
        step = step.min(own_left(owner));
    }
    if step >= bytes && group.take_at_once(step) == Claim::Refused {
        // What is left says all.
        let _ = count_group(group);
        step = step.min(group.memory_left());
        if step >= bytes && group.take_at_once(step) == Claim::Refused {
            return Claim::Refused;
        }
    }
    if step < bytes {
        return Claim::Refused;
    }
    let counters = &owner.counters;
    counters.granted.fetch_add(step, Ordering::AcqRel);
    give_up_if_closed(owner, group);
    // Two threads that are granted a step at once have both.
    counters
        .allowance
        .fetch_add(step - bytes, Ordering::Relaxed);
    Claim::Granted
}

/// Bytes that `owner` may still be granted by its own limit.
fn own_left(owner: &ControlBlock) -> usize {
    match owner.shared_limit() {
        0 => usize::MAX,
        limit => limit.saturating_sub(owner.counters.granted.load(Ordering::Relaxed)),
    }
}

/// From here on `owner` has been granted the `owned` bytes that it was found to own, and nothing
/// else. Whoever allocates meanwhile may come away with a step too much or too little, until the
/// next time.
fn settle(owner: &ControlBlock, group: &Group, owned: usize) {
    owner.counters.allowance.store(0, Ordering::Relaxed);
    // In this order, so that others who settle at the same time do not give back what has not been
    // added yet.
    group.add_memory(owned);
    let granted = owner.counters.granted.swap(owned, Ordering::AcqRel);
    group.give_memory(granted);
    if owned != 0 {
        give_up_if_closed(owner, group);
    }
}

/// Takes off again what was granted to a domain that was cleared away meanwhile: nobody would do it
/// later.
fn give_up_if_closed(owner: &ControlBlock, group: &Group) {
    if owner.counters.closed.load(Ordering::Acquire) {
        settle(owner, group, 0);
    }
}

/// Gives back what the group of `owner`, who is dead and has been cleared away, was charged for its
/// shared memory.
pub(crate) fn close(owner: &ControlBlock) {
    if let Some(group) = owner.group() {
        owner.counters.closed.store(true, Ordering::Release);
        settle(owner, group, 0);
    }
}

/// Counts what a domain owns on the shared heap, its handles included, for which its group is
/// charged from here on; bytes.
pub fn count(owner: &ControlBlock) -> usize {
    let owned = owned_by(owner.owner());
    if let Some(group) = owner.group() {
        settle(owner, group, owned);
    }
    owned
}

/// Bytes that `owner` owns on the shared heap, its handles included.
fn owned_by(owner: Owner) -> usize {
    OBJECTS.bytes_of(owner) + PROXIES.bytes_of(owner)
}

/// What a domain was found to own.
struct Sum {
    block: Arc<ControlBlock>,
    bytes: usize,
}

/// What [`count_group`] has found.
#[must_use = "only if there is less can what was refused be asked for again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recount {
    /// Less is charged for the group now.
    Less,
    /// As much as before, or more.
    Same,
}

/// Counts what the domains of `group` own on the shared heap, and charges it for that.
pub(crate) fn count_group(group: &Group) -> Recount {
    let before = group.memory_used();
    for Sum { block, bytes } in sums(|block| {
        let own = block.group();
        own.is_some_and(|own| core::ptr::eq(&**own, group))
    }) {
        settle(&block, group, bytes);
    }
    match group.memory_used() < before {
        true => Recount::Less,
        false => Recount::Same,
    }
}

/// Whether the heap, which has `bytes` now, has grown enough for an audit.
fn has_grown(bytes: usize) -> bool {
    // Every allocation comes here, and next to none makes it less: only that one pays for it.
    let mut audited = AUDITED.load(Ordering::Relaxed);
    if bytes < audited {
        audited = AUDITED.fetch_min(bytes, Ordering::Relaxed).min(bytes);
    }
    bytes.saturating_sub(audited) >= AUDIT_EVERY
}

/// Whether [`audit`] has something to do.
pub(crate) fn audit_waits() -> bool {
    WAITS.load(Ordering::Relaxed)
}

/// Counts what every domain with a limit owns, if it is time for that, and has `end` end those that
/// own far too much.
pub(crate) fn audit(end: impl Fn(&Arc<ControlBlock>)) {
    if !WAITS.swap(false, Ordering::Relaxed) {
        return;
    }
    AUDITED.store(OBJECTS.bytes() + PROXIES.bytes(), Ordering::Relaxed);
    for Sum { block, bytes } in sums(|block| block.shared_limit() != 0) {
        if bytes / 2 > block.shared_limit() {
            end(&block);
        }
    }
}

/// What each domain that `wanted` chooses owns, ascending by number. If there is no memory for all
/// of them, the youngest are left out.
fn sums(wanted: impl Fn(&ControlBlock) -> bool) -> Vec<Sum> {
    let mut sums: Vec<Sum> = Vec::new();
    let mut from = 0;
    while let Some(block) = domain::next(from) {
        from = block.id + 1;
        if !wanted(&block) {
            continue;
        }
        if sums.try_reserve(1).is_err() {
            break;
        }
        sums.push(Sum { block, bytes: 0 });
    }
    for heap in [&OBJECTS, &PROXIES] {
        heap.for_each_owner(|owner, bytes| {
            if let Ok(index) = sums.binary_search_by_key(&owner, |sum| sum.block.id) {
                sums[index].bytes += bytes;
            }
        });
    }
    sums
}
