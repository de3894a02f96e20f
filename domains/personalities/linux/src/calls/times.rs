//! Clocks, sleep, random numbers.

use super::Result;
use crate::alarms::Alarm;
use crate::errno::EINVAL;
use crate::memory;
use crate::task::Task;
use domain_rt::time;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// An alarm as programs are told it: its interval, and what is left, of seconds and microseconds.
fn left(alarm: Option<Alarm>) -> [u64; 4] {
    let Some(alarm) = alarm else {
        return [0; 4];
    };
    let left = alarm.at.saturating_sub(time::now()).max(1000);
    let parts = |length: u64| [length / SECOND, length % SECOND / 1000];
    let ([again, again_rest], [left, rest]) = (parts(alarm.again), parts(left));
    [again, again_rest, left, rest]
}

impl Task {
    /// `clock_nanosleep`; `left_at`: where goes what is left when a signal ends it; 0: nowhere.
    pub(super) fn sleep(&mut self, clock: u64, flags: u64, at: u64, left_at: u64) -> Result<u64> {
        let [seconds, rest] = self.get(at)?;
        if rest >= 1_000_000_000 || seconds > i64::MAX as u64 || !matches!(clock, 0 | 1 | 7) {
            return Err(EINVAL);
        }
        let length = seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        let deadline = match (flags & 1 != 0, clock) {
            (true, 0) => self.process.system.until_wall(length),
            (true, _) => length,
            (false, _) => time::now().saturating_add(length),
        };
        let slept = self.until_timed(Some(deadline), || None::<()>);
        if slept.is_err() && flags & 1 == 0 && left_at != 0 {
            let left = deadline.saturating_sub(time::now());
            self.put(left_at, &[left / SECOND, left % SECOND])?;
        }
        slept.map(|_| 0)
    }

    pub(super) fn clock(&self, clock: u64, at: u64) -> Result<u64> {
        let now = match clock {
            0 | 5 | 8 | 11 => self.process.system.wall(),
            1..=4 | 6 | 7 | 9 => time::now(),
            _ => return Err(EINVAL),
        };
        self.put(at, &[now / 1_000_000_000, now % 1_000_000_000])
    }

    /// `clock_getres`: a nanosecond.
    pub(super) fn resolution(&self, clock: u64, at: u64) -> Result<u64> {
        match clock {
            0..=7 if at == 0 => Ok(0),
            0..=7 => self.put(at, &[0, 1]),
            _ => Err(EINVAL),
        }
    }

    /// `getitimer`, of the clock alone that real time goes by.
    pub(super) fn timer(&self, which: u64, at: u64) -> Result<u64> {
        if which != 0 {
            return Err(EINVAL);
        }
        let alarm = self.process.system.alarms.get(self.process.id);
        self.put(at, &left(alarm))
    }

    /// `setitimer`, likewise: an interval and a time from now on, of seconds and microseconds.
    pub(super) fn set_timer(&self, which: u64, new: u64, old: u64) -> Result<u64> {
        if which != 0 {
            return Err(EINVAL);
        }
        let wanted = match new {
            0 => [0; 4],
            at => self.get(at)?,
        };
        let [again, again_rest, first, first_rest] = wanted;
        if again_rest >= 1_000_000 || first_rest >= 1_000_000 {
            return Err(EINVAL);
        }
        let length =
            |seconds: u64, rest: u64| seconds.saturating_mul(SECOND).saturating_add(rest * 1000);
        let (again, first) = (length(again, again_rest), length(first, first_rest));
        let alarm = (first > 0).then(|| Alarm {
            at: time::now().saturating_add(first),
            again,
        });
        let before = self.process.system.alarms.set(self.process.id, alarm);
        match old {
            0 => Ok(0),
            at => self.put(at, &left(before)),
        }
    }

    /// `alarm`: in so many seconds; how many were left of the one before.
    pub(super) fn alarm(&self, seconds: u64) -> Result<u64> {
        let alarm = (seconds as u32 > 0).then(|| Alarm {
            at: time::now().saturating_add((seconds as u32 as u64).saturating_mul(SECOND)),
            again: 0,
        });
        let before = self.process.system.alarms.set(self.process.id, alarm);
        Ok(left(before)[2] + u64::from(left(before)[3] > 0))
    }

    /// `time`: seconds since 1970, also where they are wanted.
    pub(super) fn seconds(&self, at: u64) -> Result<u64> {
        let now = self.process.system.wall() / SECOND;
        match at {
            0 => Ok(now),
            at => self.put(at, &[now]).map(|_| now),
        }
    }

    /// `gettimeofday`.
    pub(super) fn time_of_day(&self, at: u64) -> Result<u64> {
        let now = self.process.system.wall();
        self.put(at, &[now / 1_000_000_000, now % 1_000_000_000 / 1000])
    }

    /// `getrandom`.
    pub(super) fn random_bytes(&self, at: u64, count: u64) -> Result<u64> {
        let bytes = self.process.system.random(count.min(1 << 16) as usize)?;
        memory::write(&self.program.mm.space, at, &bytes)?;
        Ok(bytes.len() as u64)
    }
}
