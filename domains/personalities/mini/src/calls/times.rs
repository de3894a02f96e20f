//! Clocks, sleep, random numbers.

use super::Result;
use crate::errno::EINVAL;
use crate::memory;
use crate::process::Process;
use domain_rt::time;

impl Process {
    pub(super) fn sleep(&mut self, clock: u64, flags: u64, at: u64) -> Result<u64> {
        let [seconds, rest] = self.get(at)?;
        if rest >= 1_000_000_000 || clock > 1 {
            return Err(EINVAL);
        }
        let length = seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        let deadline = match flags & 1 != 0 {
            true => length,
            false => time::now().saturating_add(length),
        };
        self.until_or(Some(deadline), || None::<()>)?;
        Ok(0)
    }

    pub(super) fn clock(&self, clock: u64, at: u64) -> Result<u64> {
        let now = time::now();
        match clock {
            0 | 5 => self.put(at, &[time::wall_seconds(), now % 1_000_000_000]),
            _ => self.put(at, &[now / 1_000_000_000, now % 1_000_000_000]),
        }
    }

    /// `getrandom`.
    pub(super) fn random_bytes(&self, at: u64, count: u64) -> Result<u64> {
        let bytes = self.system.random(count.min(1 << 16) as usize)?;
        memory::write(&self.program.space, at, &bytes)?;
        Ok(bytes.len() as u64)
    }
}
