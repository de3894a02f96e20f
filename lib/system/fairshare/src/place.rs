//! Where a thread that becomes ready waits for its turn, and who gives way to it.

use core::sync::atomic::Ordering;

use crate::policy::Policy;
use crate::processor::{DEADLINE, FAIR};
use crate::task::{Attributes, Moment, Why};
use crate::{GRAIN, SERVED, SIBLING_GRAIN};

/// A thread that becomes ready, as it is placed.
pub(crate) struct Candidate<'a> {
    pub asked: &'a Attributes,
    pub why: Why,
    /// Virtual time in its group, or its deadline.
    pub thread: u64,
    /// Nanoseconds that it has waited, if it did.
    pub slept: u64,
    pub rank: u32,
}

impl<C> Policy<C> {
    /// The idle processor `cpu`, if it may be used.
    pub(crate) fn claim(&self, cpu: usize, asked: &Attributes, online: usize) -> Option<usize> {
        (asked.allows(cpu, online) && self.processors[cpu].claim()).then_some(cpu)
    }

    pub(crate) fn claim_any(
        &self,
        first: usize,
        asked: &Attributes,
        online: usize,
    ) -> Option<usize> {
        (0..online).find_map(|step| self.claim((first + step) % online, asked, online))
    }

    pub(crate) fn shortest(&self, asked: &Attributes, here: usize, online: usize) -> usize {
        let length = |cpu: &usize| {
            let processor = &self.processors[*cpu];
            let runs = processor.rank.load(Ordering::Relaxed) != 0;
            processor.length.load(Ordering::Relaxed) + usize::from(runs)
        };
        let allowed = (0..online).map(|step| (here + step) % online);
        let allowed = allowed.filter(|cpu| asked.allows(*cpu, online));
        allowed.min_by_key(length).unwrap_or(here)
    }

    /// Where a thread shall wait for its turn.
    pub(crate) fn place(&self, new: &Candidate<'_>, last: usize, at: Moment) -> usize {
        let (asked, online) = (new.asked, at.online);
        let first = asked.affinity.trailing_zeros() as usize;
        let last = match asked.allows(last, online) {
            true => last,
            false => first % online,
        };
        match new.why {
            Why::New => self
                .claim_any(at.cpu, asked, online)
                .unwrap_or_else(|| self.shortest(asked, at.cpu, online)),
            // An idle processor that takes the interrupt which wakes the thread is awake already.
            Why::Woken | Why::WokenLater => self
                .claim(at.cpu, asked, online)
                .or_else(|| self.claim_any(last, asked, online))
                .or_else(|| self.beaten(new, last, at))
                .unwrap_or(last),
            Why::Ran if !asked.allows(at.cpu, online) => last,
            Why::Ran => {
                let others = self.processors[at.cpu].has_waiting();
                let elsewhere = others.then(|| self.claim_any(at.cpu, asked, online));
                elsewhere.flatten().unwrap_or(at.cpu)
            }
        }
    }

    /// A processor whose running thread gives way to the new one, `last` before others.
    pub(crate) fn beaten(&self, new: &Candidate<'_>, last: usize, at: Moment) -> Option<usize> {
        let each = (0..at.online).map(|step| (last + step) % at.online);
        let mut each = each.filter(|cpu| new.asked.allows(*cpu, at.online));
        each.find(|cpu| self.beats(new, *cpu, at.now))
    }

    /// Whether the thread that runs on `cpu` should give way to the new one.
    pub(crate) fn beats(&self, new: &Candidate<'_>, cpu: usize, now: u64) -> bool {
        let processor = &self.processors[cpu];
        let rank = processor.rank.load(Ordering::Relaxed);
        if rank == DEADLINE && new.rank == DEADLINE {
            return new.thread < processor.thread.load(Ordering::Relaxed);
        }
        if rank != FAIR || new.rank != FAIR {
            return rank != 0 && new.rank > rank;
        }
        if new.why != Why::Woken {
            return false;
        }
        let since = now.saturating_sub(processor.since.load(Ordering::Relaxed));
        let group = processor.group.load(Ordering::Relaxed);
        if group as usize == new.asked.group() {
            let runs = processor.thread.load(Ordering::Relaxed);
            let was_served = new.slept < SERVED && since < SERVED;
            let ours = new.thread.saturating_add(SIBLING_GRAIN);
            return !was_served && ours < runs.saturating_add(since);
        }
        let ours = self.groups[new.asked.group()].now();
        ours.saturating_add(GRAIN) < self.group(group).after(since)
    }
}
