//! How often and how fast a domain that crashed is started again.
//!
//! A [`Budget`] counts crashes in a sliding window. The first crash is answered at once, the
//! following ones after a pause that doubles each time (up to the gap at which the budget lasts),
//! and when the window holds as many crashes as the budget allows, the domain stays down: a domain
//! that crashes on the same input again and again must not keep the machine busy for ever. Time is
//! an argument, so tests replay exactly.
//!
//! A start that is refused counts as no crash: its reason may pass, as that of a missing device. It
//! is tried again when somebody wants the domain, but not before a [`Rest`] is over.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::VecDeque;

/// The pause before the second restart in a window, in nanoseconds; it doubles from there.
pub const FIRST_PAUSE: u64 = 10_000_000;
/// The longest pause, in nanoseconds.
pub const LONGEST_PAUSE: u64 = 1_000_000_000;

/// A shorter pause is none: it is less than a start takes, and protects nobody.
pub const SHORTEST_PAUSE: u64 = 1_000_000;

/// How long a refused start is left alone at first, and at most, in nanoseconds.
pub const FIRST_REST: u64 = 1_000_000_000;
/// See [`FIRST_REST`].
pub const LONGEST_REST: u64 = 60_000_000_000;

/// The time after a refused start in which it is not tried again: as long as it has been refused by
/// now, so a start that was refused for a while comes late by the same while at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    since: u64,
    tried: u64,
}

impl Rest {
    /// Of a start that was refused at time `now` (nanoseconds), and not before.
    pub fn new(now: u64) -> Self {
        Rest {
            since: now,
            tried: now,
        }
    }

    /// It was refused again at time `now`.
    pub fn refused(&mut self, now: u64) {
        self.tried = now;
    }

    /// Whether it may be tried at time `now`.
    pub fn is_over(&self, now: u64) -> bool {
        let length = self.tried.saturating_sub(self.since);
        now.saturating_sub(self.tried) >= length.clamp(FIRST_REST, LONGEST_REST)
    }
}

/// What to do about a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Start again after this many nanoseconds.
    RestartAfter(u64),
    /// Leave it down, now and later.
    GiveUp,
}

/// The crashes of one domain, and how many it may have.
#[derive(Clone, Debug)]
pub struct Budget {
    most: usize,
    window: u64,
    recent: VecDeque<u64>,
    gave_up: bool,
}

impl Budget {
    /// A budget of `most` crashes in any `window` nanoseconds: at the last of them the domain stays
    /// down. With 0 or 1 it is never started again.
    pub fn new(most: u32, window: u64) -> Self {
        Budget {
            most: most as usize,
            window,
            recent: VecDeque::new(),
            gave_up: false,
        }
    }

    /// Whether the domain is to stay down.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Counts a crash at time `now` (nanoseconds; never less than before).
    pub fn crashed(&mut self, now: u64) -> Verdict {
        if self.gave_up {
            return Verdict::GiveUp;
        }
        while self
            .recent
            .front()
            .is_some_and(|&crash| now.saturating_sub(crash) >= self.window)
        {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        if self.recent.len() >= self.most {
            self.gave_up = true;
            self.recent = VecDeque::new();
            return Verdict::GiveUp;
        }
        let pause = pause(self.recent.len()).min(self.gap());
        let is_felt = pause >= SHORTEST_PAUSE;
        Verdict::RestartAfter(if is_felt { pause } else { 0 })
    }

    /// The time between crashes at which the budget just lasts. No pause need be longer: who allows
    /// many restarts wants them quickly.
    fn gap(&self) -> u64 {
        self.window / self.most.max(1) as u64
    }
}

/// The pause after crash number `count` in a window: 0, 10, 20, 40 ms and so on.
fn pause(count: usize) -> u64 {
    match count {
        0 | 1 => 0,
        _ => FIRST_PAUSE
            .saturating_mul(1u64.checked_shl(count as u32 - 2).unwrap_or(u64::MAX))
            .min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn five_crashes_in_ten_seconds_end_it() {
        let mut budget = Budget::new(5, 10 * SECOND);
        let pauses = [0, 10, 20, 40].map(|ms| Verdict::RestartAfter(ms * 1_000_000));
        for (number, pause) in pauses.into_iter().enumerate() {
            assert_eq!(budget.crashed(number as u64 * SECOND), pause);
        }
        assert_eq!(budget.crashed(9 * SECOND), Verdict::GiveUp);
        assert!(budget.gave_up());
    }

    #[test]
    fn a_crash_every_three_seconds_is_survived_for_ever() {
        let mut budget = Budget::new(5, 10 * SECOND);
        for number in 0..1000 {
            assert_ne!(
                budget.crashed(number * 3 * SECOND),
                Verdict::GiveUp,
                "crash {number}"
            );
        }
    }

    /// Tried as often as it may be, a start that is always refused is tried 15 times in ten
    /// minutes.
    #[test]
    fn a_refused_start_is_tried_ever_more_rarely() {
        let mut rest = Rest::new(7 * SECOND);
        let mut tries = Vec::new();
        for now in 8..=607 {
            if rest.is_over(now * SECOND) {
                rest.refused(now * SECOND);
                tries.push(now - 7);
            }
        }
        let first = [1, 2, 4, 8, 16, 32, 64, 124, 184];
        assert_eq!(tries[..9], first);
        assert_eq!(tries.len(), 15);
        assert!(!Rest::new(0).is_over(FIRST_REST - 1));
        assert!(Rest::new(0).is_over(FIRST_REST));
    }

    #[test]
    fn it_stays_down() {
        let mut budget = Budget::new(1, SECOND);
        assert_eq!(budget.crashed(0), Verdict::GiveUp);
        assert_eq!(budget.crashed(1000 * SECOND), Verdict::GiveUp);
    }

    #[test]
    fn no_crash_at_all_is_allowed_with_zero() {
        assert_eq!(Budget::new(0, SECOND).crashed(5), Verdict::GiveUp);
    }

    #[test]
    fn the_pause_has_an_end() {
        let mut budget = Budget::new(1000, 10_000 * SECOND);
        let last = (0..200).map(|_| budget.crashed(7)).last();
        assert_eq!(last, Some(Verdict::RestartAfter(LONGEST_PAUSE)));
    }

    #[test]
    fn a_generous_budget_restarts_quickly() {
        let mut budget = Budget::new(10_000, 10 * SECOND);
        let last = (0..200).map(|_| budget.crashed(7)).last();
        assert_eq!(last, Some(Verdict::RestartAfter(1_000_000)));
        let mut budget = Budget::new(10_001, 10 * SECOND);
        let last = (0..200).map(|_| budget.crashed(7)).last();
        assert_eq!(last, Some(Verdict::RestartAfter(0)), "too short a pause");
    }

    #[test]
    fn the_pause_starts_again_after_a_quiet_window() {
        let mut budget = Budget::new(5, SECOND);
        budget.crashed(0);
        budget.crashed(1);
        assert_eq!(budget.crashed(2 * SECOND), Verdict::RestartAfter(0));
    }
}
