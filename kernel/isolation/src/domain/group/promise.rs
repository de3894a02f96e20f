//! Processor time that threads of a group are promised: who asks for a runtime in each period has
//! it before threads that did not ask.
//!
//! What a group may have promised is a limit that its starter sets; what it has is a part of what
//! the starter's own group has, and so on. So nobody gets beyond his limit by starting others. A
//! promise is given back when its thread has ended, however that came. Whether some processor can
//! keep one more is the scheduler's question.

#[cfg(test)]
mod tests;

use super::{Budget, Group, GroupSpec, MOST_PERCENT};
use crate::domain::Claim;
use crate::platform::Deadline;
use abi::RpcError;
use alloc::sync::Arc;

/// Shortest runtime, in nanoseconds: it is not known more exactly when one is over.
const LEAST_RUNTIME: u64 = 100_000;
/// Shortest and longest period in nanoseconds. For most of the longest one the kernel's own
/// threads may have to wait for a processor.
const PERIODS: (u64, u64) = (1_000_000, 100_000_000);
/// A hundredth of a processor in the unit that promises are counted in, millionths.
const PERCENT: usize = 10_000;
/// Most groups above one that has promises: their records stay as long as it does.
const MOST_ABOVE: usize = 8;

/// What the threads of a group, and of those that it has made, are promised.
pub(super) struct Book {
    promised: Budget,
    /// The group of which this is a part; `None`: the kernel's own promise.
    above: Option<Arc<Group>>,
    /// How many are above it.
    depth: usize,
}

impl Book {
    /// Of a group that `spec` describes and the group `above` makes; `None`: the kernel does.
    pub(super) fn new(above: Option<&Arc<Group>>, spec: &GroupSpec) -> Self {
        let whole = match spec.percent {
            0 => MOST_PERCENT,
            percent => percent.min(MOST_PERCENT),
        };
        let depth = above.map_or(0, |group| group.promises.depth + 1);
        let bound = above.map_or(usize::MAX, |group| group.promises.promised.limit);
        let asked = spec.deadline_percent.min(whole) as usize * PERCENT;
        let limit = if depth > MOST_ABOVE {
            0
        } else {
            asked.min(bound)
        };
        Book {
            // 0 is none here, not: no limit.
            promised: Budget {
                limit,
                ..Budget::new(0)
            },
            above: above.filter(|_| limit != 0).cloned(),
            depth,
        }
    }

    fn take(&self, part: usize) -> Claim {
        let own = self.promised.take(part);
        let Some(above) = self.above.as_ref().filter(|_| own.is_granted()) else {
            return own;
        };
        let claim = above.promises.take(part);
        if !claim.is_granted() {
            self.promised.give(part);
        }
        claim
    }

    fn give(&self, part: usize) {
        self.promised.give(part);
        if let Some(above) = &self.above {
            above.promises.give(part);
        }
    }
}

/// What a thread is promised, as long as this exists.
pub(crate) struct Promise {
    group: Arc<Group>,
    part: usize,
}

impl Promise {
    /// Counts `deadline` in `group` and in all above it.
    ///
    /// # Errors
    /// [`RpcError::Refused`] if it makes no sense, or is more than is left of a limit.
    pub(crate) fn new(group: &Arc<Group>, deadline: Deadline) -> Result<Self, RpcError> {
        let part = part(deadline).ok_or(RpcError::Refused)?;
        if !group.promises.take(part).is_granted() {
            return Err(RpcError::Refused);
        }
        let group = group.clone();
        Ok(Promise { group, part })
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.group.promises.give(self.part);
    }
}

/// Millionths of a processor, rounded up; `None` for what cannot be kept.
fn part(deadline: Deadline) -> Option<usize> {
    let Deadline { runtime, period } = deadline;
    let fits = (LEAST_RUNTIME..=period).contains(&runtime);
    let makes_sense = fits && (PERIODS.0..=PERIODS.1).contains(&period);
    // Neither is more than 100 ms, so nothing overflows.
    makes_sense.then(|| (runtime * 1_000_000).div_ceil(period) as usize)
}
