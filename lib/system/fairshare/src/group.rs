//! What all processors know of a group: its virtual time, and what is left of its limit.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::{GROUP_WEIGHTS, NORMAL_WEIGHT, PERIOD, ROUND, SHORTEST_SLICE, SLICE, scaled};

/// What a group gets. Any value is allowed and brought into bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Its part of what all get together who want to run.
    pub weight: u32,
    /// Most that it gets, in hundredths of one processor's time; 0: no limit.
    pub percent: u32,
}

impl Share {
    /// Of a group for which nothing else is said.
    pub const NORMAL: Self = Self {
        weight: NORMAL_WEIGHT,
        percent: 0,
    };
}

/// A group. All fields are independent; who reads two of them gets what was so at about that time.
pub(crate) struct Group {
    virtual_time: AtomicU64,
    weight: AtomicU32,
    /// Threads that are ready or run.
    active: AtomicU32,
    /// The greatest virtual time that a thread had when it was picked: where others wake up.
    threads_at: AtomicU64,
    /// Nanoseconds that it has used since it was opened.
    used: AtomicU64,
    /// Nanoseconds in each period; 0: no limit.
    quota: AtomicU64,
    /// Number of the period that `spent` is of.
    period: AtomicU64,
    /// Nanoseconds used in it, with what earlier ones had too much.
    spent: AtomicU64,
}

impl Group {
    pub(crate) const fn new() -> Self {
        Self {
            virtual_time: AtomicU64::new(0),
            weight: AtomicU32::new(NORMAL_WEIGHT),
            active: AtomicU32::new(0),
            threads_at: AtomicU64::new(0),
            used: AtomicU64::new(0),
            quota: AtomicU64::new(0),
            period: AtomicU64::new(0),
            spent: AtomicU64::new(0),
        }
    }

    /// Begins a new life with this share.
    pub(crate) fn open(&self, share: Share) {
        self.active.store(0, Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
        self.spent.store(0, Ordering::Relaxed);
        self.set(share);
    }

    pub(crate) fn set(&self, share: Share) {
        let weight = share.weight.clamp(GROUP_WEIGHTS.0, GROUP_WEIGHTS.1);
        self.weight.store(weight, Ordering::Relaxed);
        let quota = u64::from(share.percent) * (PERIOD / 100);
        self.quota.store(quota, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.virtual_time.load(Ordering::Relaxed)
    }

    /// Virtual time if it had run `more` nanoseconds longer.
    pub(crate) fn after(&self, more: u64) -> u64 {
        let more = scaled(more, self.weight.load(Ordering::Relaxed));
        self.now().saturating_add(more)
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Its virtual time is at least `to` from now on.
    pub(crate) fn raise(&self, to: u64) {
        if self.now() < to {
            self.virtual_time.fetch_max(to, Ordering::Relaxed);
        }
    }

    pub(crate) fn threads_at(&self) -> u64 {
        self.threads_at.load(Ordering::Relaxed)
    }

    pub(crate) fn threads_reach(&self, to: u64) {
        if self.threads_at() < to {
            self.threads_at.fetch_max(to, Ordering::Relaxed);
        }
    }

    /// One more thread is ready; whether it is the only one.
    pub(crate) fn enters(&self) -> bool {
        self.active.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// One less. A thread may outlive what its group's number stood for when it entered.
    pub(crate) fn leaves(&self) {
        let less = |active: u32| active.checked_sub(1);
        let _ = self
            .active
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// For how long one of its threads runs while others wait: the shorter the more there are for
    /// each processor.
    pub(crate) fn slice(&self, online: usize) -> u64 {
        let active = u64::from(self.active.load(Ordering::Relaxed));
        (ROUND * online as u64 / active.max(1)).clamp(SHORTEST_SLICE, SLICE)
    }

    /// Its threads have run `used` nanoseconds until `now`.
    pub(crate) fn charge(&self, used: u64, now: u64) {
        let weight = self.weight.load(Ordering::Relaxed);
        self.virtual_time
            .fetch_add(scaled(used, weight), Ordering::Relaxed);
        self.used.fetch_add(used, Ordering::Relaxed);
        if self.quota.load(Ordering::Relaxed) != 0 {
            self.begin_period(now);
            self.spent.fetch_add(used, Ordering::Relaxed);
        }
    }

    /// Gives it the quota of all periods that have begun.
    fn begin_period(&self, now: u64) {
        let (quota, period) = (self.quota.load(Ordering::Relaxed), now / PERIOD);
        let before = self.period.fetch_max(period, Ordering::Relaxed);
        if before < period {
            let given = quota.saturating_mul(period - before);
            let less = |spent: u64| Some(spent.saturating_sub(given));
            let _ = self
                .spent
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Nanoseconds that it may run now; `None`: no limit.
    pub(crate) fn left(&self, now: u64) -> Option<u64> {
        let quota = self.quota.load(Ordering::Relaxed);
        if quota == 0 {
            return None;
        }
        self.begin_period(now);
        Some(quota.saturating_sub(self.spent.load(Ordering::Relaxed)))
    }

    /// When it may run again, if it may not run now.
    pub(crate) fn held_until(&self, now: u64) -> Option<u64> {
        if self.left(now)? > 0 {
            return None;
        }
        let quota = self.quota.load(Ordering::Relaxed).max(1);
        let periods = self.spent.load(Ordering::Relaxed) / quota;
        Some((now / PERIOD + periods.max(1)) * PERIOD)
    }
}
