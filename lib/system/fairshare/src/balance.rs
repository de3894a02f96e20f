//! Balance: what a processor takes over from others.

use core::sync::atomic::Ordering;

use crate::policy::{Guarded, Policy};
use crate::queue::Queue;
use crate::task::{Moment, Task};
use crate::{MARGIN, NEVER, SLICE};

/// How often a busy processor looks whether somebody waits elsewhere with more right.
const LOOK: u64 = 1_000_000;

/// Who would run at a processor.
pub(crate) struct First {
    /// Virtual time of its group.
    pub limit: u64,
    pub group: u32,
    /// Virtual time in it.
    pub thread: u64,
}

impl<C> Policy<C> {
    pub(crate) fn others(&self, at: Moment) -> impl Iterator<Item = usize> {
        (1..at.online).map(move |step| (at.cpu + step) % at.online)
    }

    /// Looks now and then whether somebody waits elsewhere with more right than all who wait here.
    pub(crate) fn fetch_better<T: Task>(&self, at: Moment) -> Option<T>
    where
        C: Guarded<Queue<T>>,
    {
        let here = &self.processors[at.cpu];
        let due = at.now >= here.look_at.load(Ordering::Relaxed);
        let limit = here.next();
        if at.online == 1 || !due || limit == NEVER || here.urgent.load(Ordering::Relaxed) {
            return None;
        }
        here.look_at.store(at.now + LOOK, Ordering::Relaxed);
        let first = First {
            limit,
            group: here.next_group.load(Ordering::Relaxed),
            thread: here.next_thread.load(Ordering::Relaxed),
        };
        let cpu = self.better(at, &first)?;
        self.fetch(cpu, at, limit, Some((first.group, first.thread)))
    }

    /// The processor where the one waits who has most right to run instead of `first`, if there is
    /// one.
    pub(crate) fn better(&self, at: Moment, first: &First) -> Option<usize> {
        let better = |cpu: &usize| {
            let there = &self.processors[*cpu];
            let same = there.next_group.load(Ordering::Relaxed) == first.group;
            let thread = there.next_thread.load(Ordering::Relaxed);
            let ahead = thread.saturating_add(SLICE) < first.thread && first.thread != NEVER;
            there.next().saturating_add(MARGIN) < first.limit || same && ahead
        };
        let least = |cpu: &usize| self.processors[*cpu].next();
        self.others(at).filter(better).min_by_key(least)
    }

    /// Takes a thread from the longest queue.
    pub(crate) fn fetch_any<T: Task>(&self, at: Moment) -> Option<T>
    where
        C: Guarded<Queue<T>>,
    {
        let length = |cpu: &usize| self.processors[*cpu].length.load(Ordering::Relaxed);
        let others = self
            .others(at)
            .filter(|cpu| self.processors[*cpu].has_waiting());
        let cpu = others.max_by_key(length)?;
        self.fetch(cpu, at, NEVER, None)
    }

    pub(crate) fn fetch<T: Task>(
        &self,
        from: usize,
        at: Moment,
        limit: u64,
        same: Option<(u32, u64)>,
    ) -> Option<T>
    where
        C: Guarded<Queue<T>>,
    {
        self.queues[from].with(|queue| {
            let task = queue.take_for(&self.groups, at, limit, same);
            self.processors[from].show(queue.sign());
            task
        })
    }
}
