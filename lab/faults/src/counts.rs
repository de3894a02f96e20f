//! What a death must give back: memory, shared objects, proxies.

use crate::engine::Ground;
use crate::store::pause;
use isolation::death::kill::helpers;
use isolation::memory::heap::{OBJECTS, PROXIES};
use isolation::memory::owner::Owner;
use isolation::platform::{STACK_BYTES, platform};

/// Counts at a moment when no driver lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Free memory, in bytes, with what the shared heaps keep and with the stacks of the
    /// undertaker.
    pub free: u64,
    /// Bytes of the kernel's own heap.
    pub heap: u64,
    /// Shared objects of the kernel and of `other`.
    pub objects: usize,
    /// Handles of the same.
    pub handles: usize,
}

impl Counts {
    /// The counts now. `other` is a domain that stays, or 0.
    pub fn now(ground: &Ground, other: u32) -> Self {
        let kept = (OBJECTS.bytes() + PROXIES.bytes()) as u64;
        let stacks = u64::from(helpers()) * (STACK_BYTES as u64 + ground.stack_extra);
        let of = |owner| (OBJECTS.count_of(owner), PROXIES.count_of(owner));
        let own = of(Owner::KERNEL);
        let others = isolation::domain::find(other).map_or((0, 0), |block| of(block.owner()));
        Counts {
            free: (ground.free)() + kept + stacks,
            heap: (ground.heap)(),
            objects: own.0 + others.0,
            handles: own.1 + others.1,
        }
    }

    /// Whether nothing is missing compared with `before`.
    pub fn is_back(&self, before: &Counts, slack: u64) -> bool {
        self.free + slack >= before.free
            && self.heap <= before.heap + slack
            && self.objects <= before.objects
            && self.handles <= before.handles
    }

    /// The counts, as soon as no more than `slack` bytes are missing compared with `before`, or
    /// when `patience` nanoseconds have passed.
    pub fn settled(
        ground: &Ground,
        other: u32,
        before: &Counts,
        slack: u64,
        patience: u64,
    ) -> Self {
        let deadline = platform().now() + patience;
        loop {
            let counts = Counts::now(ground, other);
            if counts.is_back(before, slack) || platform().now() > deadline {
                return counts;
            }
            pause(50_000);
        }
    }
}
