//! Balance: what a processor takes over from others.

use core::sync::atomic::Ordering;

use crate::policy::{Guarded, Policy};
use crate::queue::Queue;
use crate::task::{Moment, Task};
use crate::{MARGIN, NEVER, SLICE};

/// How often a busy processor looks whether somebody waits elsewhere with more right, besides when
/// its thread waits for something.
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
        let group = here.next_group.load(Ordering::Relaxed);
        let limit = limit.max(self.group(group).now());
        let first = First {
            limit,
            group,
            thread: here.next_thread.load(Ordering::Relaxed),
        };
        let same = Some((first.group, first.thread));
        let fetch = |cpu| self.fetch(cpu, at, limit, same);
        let better = self.maybe_better(at, &first).and_then(fetch);
        better.or_else(|| self.sibling_behind(at, &first).and_then(fetch))
    }

    /// The processor where somebody may wait who has more right than `first`, by what the queues
    /// show of their first groups.
    ///
    /// That is as old as the queue's last change: the group may have run elsewhere since, even
    /// here. Then nobody is fetched, for the queue itself is asked; but behind that group one may
    /// wait that has just as much right as the queue shows.
    fn maybe_better(&self, at: Moment, first: &First) -> Option<usize> {
        let next = |cpu: usize| (self.processors[cpu].next(), cpu);
        let (least, cpu) = self.others(at).map(next).min()?;
        (least.saturating_add(MARGIN) < first.limit).then_some(cpu)
    }

    /// The processor where the thread of the group of `first` waits that is farthest behind it.
    fn sibling_behind(&self, at: Moment, first: &First) -> Option<usize> {
        let thread = |cpu: usize| {
            let there = &self.processors[cpu];
            let same = there.next_group.load(Ordering::Relaxed) == first.group;
            same.then(|| (there.next_thread.load(Ordering::Relaxed), cpu))
        };
        let (least, cpu) = self.others(at).filter_map(thread).min()?;
        (first.thread != NEVER && least.saturating_add(SLICE) < first.thread).then_some(cpu)
    }

    /// Whether somebody may wait elsewhere who has more right to run than `first`.
    pub(crate) fn is_behind(&self, at: Moment, first: &First) -> bool {
        self.maybe_better(at, first).is_some() || self.sibling_behind(at, first).is_some()
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
