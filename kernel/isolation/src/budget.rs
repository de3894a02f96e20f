//! How much of the shared heap a domain may own.
//!
//! An object changes its owner with one plain store, so nobody keeps a sum of what a domain owns. Instead each
//! domain has an *allowance*: bytes that it may allocate before it is counted anew. Frees and gifts do not
//! change it. When it is used up, the owner tables are read, and what the limit leaves is the next allowance;
//! if it leaves nothing, the allocation fails. So a domain pays for its own counting, and the more the closer
//! it comes to its limit.
//!
//! A domain that only receives and never allocates is not met there. Whenever the heap has grown by
//! [`AUDIT_EVERY`], all domains are counted in one pass, and who owns more than twice its limit is ended: it
//! accepted what it got, and whoever gave it is not to suffer.

use crate::domain::{self, ControlBlock, Reason};
use crate::heap::{OBJECTS, PROXIES, SharedHeap};
use crate::owner::Owner;
use crate::relief;
use crate::sync::{AtomicBool, AtomicUsize};
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// Growth of the heap, in bytes, after which everybody is counted.
const AUDIT_EVERY: usize = 4 * 1024 * 1024;

/// Bytes of the heap at the last audit, or the least since then.
static AUDITED: AtomicUsize = AtomicUsize::new(0);
static WAITS: AtomicBool = AtomicBool::new(false);

/// As [`SharedHeap::allocate`], within the budget of `owner`. Waits where others may give memory back.
pub(crate) fn allocate(
    heap: &SharedHeap,
    bytes: usize,
    owner: &ControlBlock,
) -> Option<NonNull<u8>> {
    if !charge(owner, SharedHeap::footprint(bytes)) {
        return None;
    }
    let object = relief::or_wait(SharedHeap::footprint(bytes), || {
        heap.allocate(bytes, owner.owner())
    });
    if has_grown(OBJECTS.bytes() + PROXIES.bytes()) && !WAITS.swap(true, Ordering::Relaxed) {
        crate::undertaker::work_waits();
    }
    object
}

/// Takes `bytes` from the allowance of `owner`; whether the limit lets it.
pub(crate) fn charge(owner: &ControlBlock, bytes: usize) -> bool {
    let limit = owner.shared_limit();
    let allowance = &owner.counters.allowance;
    let spend = |left: usize| left.checked_sub(bytes);
    if limit == 0
        || allowance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend)
            .is_ok()
    {
        return true;
    }
    let left = limit.saturating_sub(owned_by(owner.owner()));
    let rest = left.checked_sub(bytes);
    // Two threads that count at once may both write what they found: too much by what one of them allocates.
    allowance.store(rest.unwrap_or(left), Ordering::Relaxed);
    rest.is_some()
}

/// Bytes that `owner` owns on the shared heap, its handles included.
pub(crate) fn owned_by(owner: Owner) -> usize {
    OBJECTS.bytes_of(owner) + PROXIES.bytes_of(owner)
}

/// Whether the heap, which has `bytes` now, has grown enough for an audit.
fn has_grown(bytes: usize) -> bool {
    let audited = AUDITED.fetch_min(bytes, Ordering::Relaxed).min(bytes);
    bytes - audited >= AUDIT_EVERY
}

/// Whether [`audit`] has something to do.
pub(crate) fn audit_waits() -> bool {
    WAITS.load(Ordering::Relaxed)
}

/// Counts what every domain with a limit owns, if it is time for that, and ends those that own far too much.
pub(crate) fn audit() {
    if !WAITS.swap(false, Ordering::Relaxed) {
        return;
    }
    AUDITED.store(OBJECTS.bytes() + PROXIES.bytes(), Ordering::Relaxed);
    let mut sums = limited();
    for heap in [&OBJECTS, &PROXIES] {
        heap.for_each_owner(|owner, bytes| {
            if let Ok(index) = sums.binary_search_by_key(&owner, |(id, _)| *id) {
                sums[index].1 += bytes;
            }
        });
    }
    for (id, bytes) in sums {
        if let Some(block) = domain::find(id)
            && bytes / 2 > block.shared_limit()
        {
            crate::kill::kill(&block, Reason::OverBudget);
        }
    }
}

/// The numbers of all domains with a limit, ascending, each with a sum of 0. If there is no memory for all of
/// them, the youngest are left out.
fn limited() -> Vec<(u32, usize)> {
    let mut sums = Vec::new();
    let mut from = 0;
    while let Some(block) = domain::next(from) {
        from = block.id + 1;
        if block.shared_limit() == 0 {
            continue;
        }
        if sums.try_reserve(1).is_err() {
            break;
        }
        sums.push((block.id, 0));
    }
    sums
}
