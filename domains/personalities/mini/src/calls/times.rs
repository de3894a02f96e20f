//! Clocks, sleep, random numbers.

use super::Result;
use crate::errno::EINVAL;
use crate::memory;
use crate::task::Task;
use domain_rt::time;

impl Task {
    pub(super) fn sleep(&mut self, clock: u64, flags: u64, at: u64) -> Result<u64> {
        let [seconds, rest] = self.get(at)?;
        if rest >= 1_000_000_000 || !matches!(clock, 0 | 1 | 7) {
            return Err(EINVAL);
        }
        let length = seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        let deadline = match (flags & 1 != 0, clock) {
            (true, 0) => self.process.system.until_wall(length),
            (true, _) => length,
            (false, _) => time::now().saturating_add(length),
        };
        self.until_timed(Some(deadline), || None::<()>)?;
        Ok(0)
    }

    pub(super) fn clock(&self, clock: u64, at: u64) -> Result<u64> {
        let now = match clock {
            0 | 5 => self.process.system.wall(),
            _ => time::now(),
        };
        self.put(at, &[now / 1_000_000_000, now % 1_000_000_000])
    }

    /// `gettimeofday`.
    pub(super) fn time_of_day(&self, at: u64) -> Result<u64> {
        let now = self.process.system.wall();
        self.put(at, &[now / 1_000_000_000, now % 1_000_000_000 / 1000])
    }

    /// `getrandom`.
    pub(super) fn random_bytes(&self, at: u64, count: u64) -> Result<u64> {
        let bytes = self.process.system.random(count.min(1 << 16) as usize)?;
        memory::write(&self.program.space, at, &bytes)?;
        Ok(bytes.len() as u64)
    }
}
