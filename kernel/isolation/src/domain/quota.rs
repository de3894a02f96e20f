//! How much a domain may write to the log.
//!
//! The log keeps its last 64 KiB and goes over a serial line, and all domains share both. Each may
//! write a burst, and then as much per second as the line can bear from several, unless its starter
//! says otherwise. Who has used that up is silent until some of it is there again, so that what is
//! lost is said once for many lines; it is counted to the line.

/// Bytes per second that a domain may write in the long run whose starter says nothing.
const USUAL: u32 = 8 * 1024;
/// The least and the greatest rate. With the least the longest line still fits into a burst.
const RATES: (u32, u32) = (1024, 1024 * 1024);
/// Seconds for which the rate is saved up: what may be written at once.
const SAVED: u64 = 2;
/// What a line costs besides its text and its writer's name: time and punctuation.
pub const LINE: u64 = 20;

const SECOND: u64 = 1_000_000_000;

/// What a domain may still write.
#[derive(Debug)]
pub struct Quota {
    /// Bytes per second.
    rate: u64,
    left: u64,
    /// Up to when what comes back was added, in nanoseconds since boot.
    at: u64,
    /// Lines that were lost and not told of.
    lost: u32,
}

impl Quota {
    /// All of it, at `rate` bytes per second; 0: the usual rate.
    pub const fn new(rate: u32) -> Self {
        let rate = match rate {
            0 => USUAL,
            _ if rate < RATES.0 => RATES.0,
            _ if rate > RATES.1 => RATES.1,
            _ => rate,
        } as u64;
        Quota {
            rate,
            left: rate * SAVED,
            at: 0,
            lost: 0,
        }
    }

    /// Bytes that may be written at once.
    fn burst(&self) -> u64 {
        self.rate * SAVED
    }

    /// Whether a line that takes `bytes` may be written at `now`: if so, how many lines were lost
    /// since the last one that was; otherwise it is lost as well.
    pub fn take(&mut self, now: u64, bytes: u64) -> Option<u32> {
        self.refill(now);
        let wanted = match self.lost {
            0 => bytes,
            // Not for each single line.
            _ => bytes.max(self.burst() / 4),
        };
        if self.left < wanted {
            self.lost = self.lost.saturating_add(1);
            return None;
        }
        self.left -= bytes;
        Some(self.take_lost())
    }

    /// Lines that were lost and not told of; they count as told.
    pub fn take_lost(&mut self) -> u32 {
        core::mem::take(&mut self.lost)
    }

    fn refill(&mut self, now: u64) {
        // Another processor's clock may be a little behind.
        let passed = now.saturating_sub(self.at);
        let most = (self.burst() - self.left) * SECOND / self.rate;
        if passed >= most {
            (self.left, self.at) = (self.burst(), now.max(self.at));
            return;
        }
        let gained = passed * self.rate / SECOND;
        // Time that gave no whole byte yet stays to be counted.
        self.left += gained;
        self.at += gained * SECOND / self.rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = USUAL as u64;
    const BURST: u64 = RATE * SAVED;
    const HEARD_AGAIN: u64 = BURST / 4;

    #[test]
    fn a_rate_of_ones_own_counts_within_its_ends() {
        for (rate, is) in [
            (0, 8192),
            (1, 1024),
            (1024, 1024),
            (100_000, 100_000),
            (u32::MAX, 1 << 20),
        ] {
            let mut quota = Quota::new(rate);
            assert_eq!(quota.take(0, 2 * is + 1), None, "{rate}");
            assert_eq!(quota.take(0, 2 * is), Some(1), "{rate}");
            assert_eq!(quota.take(SECOND, is + 1), None, "{rate}");
            assert_eq!(quota.take(SECOND, is), Some(1), "{rate}");
            // The longest time that there is.
            assert_eq!(quota.take(u64::MAX, 2 * is), Some(0), "{rate}");
        }
    }

    #[test]
    fn a_burst_goes_through_and_a_flood_is_counted() {
        let mut quota = Quota::new(0);
        let heard = (0..1_000).filter(|_| quota.take(0, 100).is_some()).count();
        assert_eq!(heard as u64, BURST / 100);
        assert_eq!(quota.take_lost(), 1_000 - heard as u32);
        assert_eq!(quota.take_lost(), 0);
    }

    #[test]
    fn what_is_lost_is_told_with_the_next_line_that_is_heard() {
        let mut quota = Quota::new(0);
        while quota.take(0, 100) == Some(0) {}
        assert_eq!(quota.take(1, 100), None);
        // A little came back, but not enough to be heard.
        assert_eq!(quota.take(SECOND * 200 / RATE, 100), None);
        let later = SECOND * HEARD_AGAIN / RATE + SECOND;
        assert_eq!(quota.take(later, 100), Some(3));
        assert_eq!(quota.take(later, 100), Some(0));
    }

    #[test]
    fn in_the_long_run_it_is_the_rate() {
        let mut quota = Quota::new(0);
        let (mut heard, mut lost) = (0, 0);
        // A line each 0.3 ms, for 100 seconds.
        for step in 0..333_333_u64 {
            if let Some(before) = quota.take(step * 300_000, 100) {
                heard += 100;
                lost += u64::from(before);
            }
        }
        lost += u64::from(quota.take_lost());
        assert_eq!(heard / 100 + lost, 333_333);
        let most = BURST + 100 * RATE;
        assert!(
            heard <= most && heard > most - 2 * BURST,
            "{heard} of {most}"
        );
    }

    #[test]
    fn who_is_silent_gets_no_more_than_a_burst() {
        let mut quota = Quota::new(0);
        assert_eq!(quota.take(u64::MAX / 2, BURST + 1), None);
        assert_eq!(quota.take(u64::MAX - 1, BURST), Some(1));
        // A clock that is behind gives nothing.
        assert_eq!(quota.take(5, 1), None);
    }
}
