//! How often and how fast a domain that crashed is started again.
//!
//! A [`Budget`] counts crashes in a sliding window. The first crash is answered at once, the
//! following ones not before a time has passed since the one before, which doubles each time (up to
//! the gap at which the budget lasts), and when the window holds as many crashes as the budget
//! allows, the domain stays down: a domain that crashes on the same input again and again must not
//! keep the machine busy for ever. One that has served for longer than that in between is started
//! at once, however often it has crashed. Time is an argument, so tests replay exactly.
//!
//! What its callers say of an instance that has not crashed counts as no crash ([`Complaints`]).
//!
//! A start that is refused counts as no crash: its reason may pass, as that of a missing device. It
//! is tried again when somebody wants the domain, but not before a [`Rest`] is over.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::VecDeque;

/// The least time from one crash to the restart after the next one in a window, in nanoseconds; it
/// doubles from there.
pub const FIRST_PAUSE: u64 = 10_000_000;
/// The longest such time, in nanoseconds.
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

/// What happened in the last so many nanoseconds.
#[derive(Clone, Debug)]
struct Window {
    length: u64,
    recent: VecDeque<u64>,
}

impl Window {
    fn new(length: u64) -> Self {
        Window {
            length,
            recent: VecDeque::new(),
        }
    }

    /// How much of it is left at time `now`.
    fn count(&mut self, now: u64) -> usize {
        let is_over = |&then: &u64| now.saturating_sub(then) >= self.length;
        while self.recent.front().is_some_and(is_over) {
            self.recent.pop_front();
        }
        self.recent.len()
    }
}

/// The complaints of one domain about another that has not crashed, and how many of them are heard.
///
/// An instance that lives may be of no more use, as a driver whose device was pulled out is, and
/// only its callers know that. But a caller may also be wrong, or mean harm. So a complaint is no
/// crash: the domain never stays down for it, and a domain that complains too often is not heard.
#[derive(Clone, Debug)]
pub struct Complaints {
    most: usize,
    heard: Window,
}

impl Complaints {
    /// `most` complaints are heard in any `window` nanoseconds.
    pub fn new(most: u32, window: u64) -> Self {
        Complaints {
            most: most as usize,
            heard: Window::new(window),
        }
    }

    /// Whether a complaint at time `now` (nanoseconds; never less than before) is heard.
    pub fn is_heard(&mut self, now: u64) -> bool {
        let is_heard = self.heard.count(now) < self.most;
        if is_heard {
            self.heard.recent.push_back(now);
        }
        is_heard
    }
}

/// The crashes of one domain, and how many it may have.
#[derive(Clone, Debug)]
pub struct Budget {
    most: usize,
    crashes: Window,
    gave_up: bool,
}

impl Budget {
    /// A budget of `most` crashes in any `window` nanoseconds: at the last of them the domain stays
    /// down. With 0 or 1 it is never started again.
    pub fn new(most: u32, window: u64) -> Self {
        Budget {
            most: most as usize,
            crashes: Window::new(window),
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
        let count = self.crashes.count(now) + 1;
        let before = self.crashes.recent.back().copied().unwrap_or(now);
        self.crashes.recent.push_back(now);
        if count >= self.most {
            self.gave_up = true;
            self.crashes.recent = VecDeque::new();
            return Verdict::GiveUp;
        }
        let distance = pause(count).min(self.gap());
        let pause = distance.saturating_sub(now.saturating_sub(before));
        let is_felt = pause >= SHORTEST_PAUSE;
        Verdict::RestartAfter(if is_felt { pause } else { 0 })
    }

    /// The time between crashes at which the budget just lasts. No pause need be longer: who allows
    /// many restarts wants them quickly.
    fn gap(&self) -> u64 {
        self.crashes.length / self.most.max(1) as u64
    }
}

/// The least time between crash number `count` in a window and the start that follows, counted from
/// the crash before: 0, 10, 20, 40 ms and so on.
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
        for pause in pauses {
            assert_eq!(budget.crashed(SECOND), pause);
        }
        assert_eq!(budget.crashed(9 * SECOND), Verdict::GiveUp);
        assert!(budget.gave_up());
    }

    /// Each later crash would else keep those waiting for longer who call it.
    #[test]
    fn what_has_served_long_enough_is_started_at_once() {
        let mut budget = Budget::new(100, 10 * SECOND);
        for number in 1..1000 {
            // The gap is 100 ms.
            let verdict = budget.crashed(number * SECOND / 8);
            assert_eq!(verdict, Verdict::RestartAfter(0), "crash {number}");
        }
        // What has served for a part of the time waits for the rest of it.
        let rest = Verdict::RestartAfter(30_000_000);
        assert_eq!(budget.crashed(999 * SECOND / 8 + 70_000_000), rest);
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
    fn complaints_are_heard_so_often_in_a_window() {
        let mut complaints = Complaints::new(3, 10 * SECOND);
        let heard: Vec<u64> = (0..40)
            .filter(|second| complaints.is_heard(second * SECOND))
            .collect();
        assert_eq!(heard, [0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32]);
        assert!(!Complaints::new(0, SECOND).is_heard(5));
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
