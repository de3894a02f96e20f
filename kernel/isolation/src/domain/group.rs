//! Groups: domains that share one budget of memory, threads and processor time.
//!
//! A domain belongs to one group all its life. Its starter chooses which, by a number of the
//! starter's own: 0 makes a group for that domain alone, any other number names the group which
//! this very starter has under it. So nobody can get into, or use up, the group of another's
//! domains. Whoever makes a group sets its limits; they never change. Its weight is at most that of
//! the starter's own group. It is found by its number as long as anything has a share of it: a
//! domain, or memory that is charged to one, dead or alive. So who gives memory away, dies and is
//! started again under the same number begins with what it still pays for.
//!
//! The scheduler sees a group as a number, a weight and a share
//! ([`Attributes`](crate::platform::Attributes)).

mod promise;
#[cfg(test)]
mod tests;

pub(crate) use promise::Promise;

use crate::domain::account::may_take;
use crate::domain::budget::{self, Recount};
use crate::domain::{Claim, ControlBlock, Limits};
use crate::lock::Lock;
pub use crate::platform::USUAL_WEIGHT;
use crate::platform::{PAGE, platform};
use crate::sync::{AtomicU64, AtomicUsize};
use abi::RpcError;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// Which group a new domain belongs to, and the limits of the group if this domain is its first.
#[derive(Clone, Copy, Debug)]
pub struct GroupSpec {
    /// The starter's number for it; 0: one of the domain's own.
    pub number: u32,
    /// Memory of all kinds that its domains have together, in pages. 0: no limit.
    pub pages: usize,
    /// Threads that its domains have created. 0: no limit.
    pub threads: u32,
    /// Its share of the processors, beside those of others; at most the starter's. 0: the usual
    /// one.
    pub weight: u32,
    /// Processor time that it may have in all, in percent of one processor. 0: no limit.
    pub percent: u32,
    /// Processor time that its threads may be promised, in percent of one processor, as part of
    /// what the starter's group may. 0: none.
    pub deadline_percent: u32,
}

impl GroupSpec {
    /// A group of the domain's own, without limits.
    pub const NONE: GroupSpec = GroupSpec {
        number: 0,
        pages: 0,
        threads: 0,
        weight: 0,
        percent: 0,
        deadline_percent: 0,
    };
    /// Of the first domain, which bounds what others can have.
    pub const FIRST: GroupSpec = GroupSpec {
        weight: FIRST_WEIGHT,
        deadline_percent: MOST_PERCENT,
        ..GroupSpec::NONE
    };
}

impl Default for GroupSpec {
    fn default() -> Self {
        GroupSpec::NONE
    }
}

/// Least and greatest weight of a group. Whoever schedules may have narrower ends.
const WEIGHTS: (u32, u32) = (1, 1 << 16);

/// The weight of the first domain, and so the greatest that others can have.
const FIRST_WEIGHT: u32 = 4 * USUAL_WEIGHT;

/// The greatest limit of a group's processor time, in percent of one processor: more than any
/// machine has.
const MOST_PERCENT: u32 = 100 * 1024;

/// An amount that is used and its limit.
struct Budget {
    used: AtomicUsize,
    /// `usize::MAX`: none.
    limit: usize,
}

impl Budget {
    /// 0 as `limit`: none.
    const fn new(limit: usize) -> Self {
        let limit = if limit == 0 { usize::MAX } else { limit };
        Budget {
            used: AtomicUsize::new(0),
            limit,
        }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The limit; 0: none.
    fn limit(&self) -> usize {
        if self.limit == usize::MAX {
            0
        } else {
            self.limit
        }
    }

    /// Takes `amount` if that leaves the limit kept.
    fn take(&self, amount: usize) -> Claim {
        let within = |used: usize| used.checked_add(amount).filter(|sum| *sum <= self.limit);
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
        taken.is_ok().into()
    }

    /// Counts `amount`, whatever the limit says.
    fn add(&self, amount: usize) {
        self.change(|used| used.saturating_add(amount));
    }

    /// Gives back `amount`. What is given back too often is nothing: a figure that wrapped would
    /// refuse everything for ever.
    fn give(&self, amount: usize) {
        self.change(|used| used.saturating_sub(amount));
    }

    fn change(&self, next: impl Fn(usize) -> usize) {
        let next = |used| Some(next(used));
        let _ = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

/// A set of domains with one budget.
pub struct Group {
    /// Its own number, never used again; what the scheduler knows it by. The kernel's own threads
    /// have 0.
    pub id: u64,
    /// The instance that made it, and that instance's number for it.
    starter: u32,
    number: u32,
    /// Share of the processors, beside those of other groups.
    pub weight: u32,
    /// Most processor time, in percent of one processor; 0: no limit.
    pub percent: u32,
    /// Nanoseconds of processor time that were charged to its threads, wherever they were, at
    /// ticks.
    used_ns: AtomicU64,
    memory: Budget,
    threads: Budget,
    /// What its threads are promised.
    promises: promise::Book,
}

/// Who makes a group.
#[derive(Clone, Copy)]
struct Starter<'a> {
    /// The instance.
    id: u32,
    /// The greatest weight that it can give.
    weight: u32,
    /// Its own group, of whose promises the new one's are a part.
    group: Option<&'a Arc<Group>>,
}

impl<'a> Starter<'a> {
    /// `None`: the kernel, whom nothing bounds.
    fn of(block: Option<&'a ControlBlock>) -> Self {
        let group = block.and_then(|block| block.group());
        Starter {
            id: block.map_or(abi::shared::KERNEL_OWNER, |block| block.id),
            weight: group.map_or(WEIGHTS.1, |group| group.weight),
            group,
        }
    }

    /// The weight of a group for which it asks for `asked`. Otherwise who may start domains could
    /// take the processors from all others by a domain that it starts.
    fn bound(self, asked: u32) -> u32 {
        let asked = if asked == 0 { USUAL_WEIGHT } else { asked };
        asked.clamp(WEIGHTS.0, WEIGHTS.1).min(self.weight)
    }
}

/// All groups that have a number of their starter's, in no order.
static ALL: Lock<Vec<Arc<Group>>> = Lock::new(Vec::new());

/// The number of the next group.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Group {
    fn new(starter: Starter<'_>, spec: &GroupSpec) -> Self {
        Group {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            starter: starter.id,
            number: spec.number,
            weight: starter.bound(spec.weight),
            percent: spec.percent.min(MOST_PERCENT),
            used_ns: AtomicU64::new(0),
            memory: Budget::new(spec.pages.saturating_mul(PAGE)),
            threads: Budget::new(spec.threads as usize),
            promises: promise::Book::new(starter.group, spec),
        }
    }

    /// Charges it with `ns` nanoseconds of processor time of a thread of its.
    pub(crate) fn charge_time(&self, ns: u64) {
        self.used_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Nanoseconds of processor time that its threads have used so far, by samples: see
    /// [`crate::death::kill::tick`].
    pub fn time_used(&self) -> u64 {
        self.used_ns.load(Ordering::Relaxed)
    }

    /// Bytes of memory that are charged to it.
    pub fn memory_used(&self) -> usize {
        self.memory.used()
    }

    /// Bytes of memory that it may have; 0: no limit.
    pub fn memory_limit(&self) -> usize {
        self.memory.limit()
    }

    /// Threads that its domains have created and that still run.
    pub fn threads_used(&self) -> usize {
        self.threads.used()
    }

    /// Threads that its domains may create; 0: no limit.
    pub fn threads_limit(&self) -> usize {
        self.threads.limit()
    }

    /// Charges it with `bytes`, if its limit lets it. What its domains own on the shared heap is
    /// counted anew if there would not be enough otherwise.
    pub(crate) fn take_memory(&self, bytes: usize) -> Claim {
        let at_once = self.memory.take(bytes);
        if at_once.is_granted() || bytes > self.memory.limit {
            return at_once;
        }
        match budget::count_group(self) {
            Recount::Less => self.memory.take(bytes),
            Recount::Same => at_once,
        }
    }

    /// As [`take_memory`](Self::take_memory), but nothing is counted.
    pub(crate) fn take_at_once(&self, bytes: usize) -> Claim {
        self.memory.take(bytes)
    }

    /// Charges it with `bytes`, whatever its limit says: what there is counts.
    pub(crate) fn add_memory(&self, bytes: usize) {
        self.memory.add(bytes);
    }

    /// Bytes that may still be charged to it.
    pub(crate) fn memory_left(&self) -> usize {
        self.memory.limit.saturating_sub(self.memory.used())
    }

    /// Gives back what was charged.
    pub(crate) fn give_memory(&self, bytes: usize) {
        self.memory.give(bytes);
    }

    /// Counts one more thread, if its limit lets it.
    pub(crate) fn take_thread(&self) -> Claim {
        self.threads.take(1)
    }

    /// Counts one thread less.
    pub(crate) fn give_thread(&self) {
        self.threads.give(1);
    }
}

/// The place of a new domain in its group, with what the domain is charged for before it is there.
pub(crate) struct Seat {
    /// `None`: the domain is there.
    group: Option<Arc<Group>>,
    charged: usize,
}

impl Seat {
    /// A seat in the group that `spec` means when `starter` says it; `None`: the kernel does.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub(crate) fn new(starter: Option<&ControlBlock>, spec: &GroupSpec) -> Result<Self, RpcError> {
        // The group lies in the kernel's heap.
        if !platform().can_note() {
            return Err(RpcError::NoMemory);
        }
        Ok(Seat {
            group: Some(join(Starter::of(starter), spec)?),
            charged: 0,
        })
    }

    /// Charges the group with `bytes`, if its limit lets it.
    pub(crate) fn charge(&mut self, bytes: usize) -> Claim {
        let group = self.group.as_ref();
        let claim = group.map_or(Claim::Refused, |group| group.take_memory(bytes));
        if claim.is_granted() {
            self.charged += bytes;
        }
        claim
    }

    /// Whether the machine has `pages` pages, with which the group has been charged, for a domain
    /// with these limits.
    pub(crate) fn may_take(&self, pages: usize, limits: &Limits) -> bool {
        may_take(pages, limits.reserve, self.charged)
    }

    /// The group, for the domain that is there now. What was charged is its affair from here on.
    pub(crate) fn take(mut self) -> Arc<Group> {
        self.group.take().expect("nobody else takes it")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            group.give_memory(self.charged);
        }
    }
}

/// The group that `spec` means when `starter` says it.
///
/// # Errors
/// [`RpcError::NoMemory`].
fn join(starter: Starter<'_>, spec: &GroupSpec) -> Result<Arc<Group>, RpcError> {
    if spec.number == 0 {
        return Ok(Arc::new(Group::new(starter, spec)));
    }
    let mut all = ALL.lock();
    let is_meant = |group: &Arc<Group>| (group.starter, group.number) == (starter.id, spec.number);
    // Nobody can get a share of one that is only in here, without this lock.
    let is_unused = |group: &Arc<Group>| Arc::strong_count(group) == 1;
    let known = all.iter().position(is_meant);
    let unused = match known {
        Some(index) if !is_unused(&all[index]) => return Ok(all[index].clone()),
        // Each new one takes the place of an unused one: so there are never more than there once
        // were in use.
        known => known.or_else(|| all.iter().position(is_unused)),
    };
    let unused = unused.map(|index| all.swap_remove(index));
    all.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
    let group = Arc::new(Group::new(starter, spec));
    all.push(group.clone());
    drop(all);
    // Its memory is freed without the lock.
    drop(unused);
    Ok(group)
}
