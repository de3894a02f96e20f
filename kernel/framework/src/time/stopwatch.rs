//! A sum of intervals that others may read while one of them runs.
//!
//! The whole state is one word, so no reader sees half a change: while it stands, the sum; while it
//! runs, the moment at which it would have had to be started to show the same, with [`RUNS`]. One
//! processor at a time starts and stops it.

use core::sync::atomic::{AtomicU64, Ordering};

/// Set while it runs. Nanoseconds since boot do not get that far in 292 years.
const RUNS: u64 = 1 << 63;

/// The stopwatch; times are nanoseconds since boot.
pub(crate) struct Stopwatch(AtomicU64);

impl Stopwatch {
    /// One that has never run.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Starts it, unless it runs.
    pub(crate) fn start(&self, now: u64) {
        let word = self.0.load(Ordering::Relaxed);
        if word & RUNS == 0 {
            self.0
                .store(now.saturating_sub(word) | RUNS, Ordering::Relaxed);
        }
    }

    /// Stops it, if it runs.
    pub(crate) fn stop(&self, now: u64) {
        self.0.store(self.read(now), Ordering::Relaxed);
    }

    /// What it shows. Where the reader's clock is a little behind, a little less.
    pub(crate) fn read(&self, now: u64) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            word if word & RUNS != 0 => now.saturating_sub(word & !RUNS),
            word => word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_what_lies_between_start_and_stop() {
        let watch = Stopwatch::new();
        assert_eq!(watch.read(1_000), 0);
        watch.start(1_000);
        assert_eq!(watch.read(1_000), 0);
        assert_eq!(watch.read(1_250), 250);
        watch.stop(1_300);
        assert_eq!(watch.read(9_000), 300);
        watch.start(10_000);
        assert_eq!(watch.read(10_001), 301);
        watch.stop(10_700);
        assert_eq!(watch.read(20_000), 1_000);
    }

    #[test]
    fn starting_and_stopping_twice_changes_nothing() {
        let watch = Stopwatch::new();
        watch.stop(5);
        assert_eq!(watch.read(5), 0);
        watch.start(10);
        watch.start(15);
        watch.stop(20);
        watch.stop(30);
        assert_eq!(watch.read(40), 10);
    }

    #[test]
    fn a_clock_that_is_behind_gives_no_nonsense() {
        let watch = Stopwatch::new();
        watch.start(100);
        assert_eq!(watch.read(90), 0);
        watch.stop(200);
        watch.start(300);
        assert!(watch.read(295) <= 100);
        watch.stop(295);
        assert!(watch.read(1_000) <= 100);
        // Longer than the clock has gone: cannot be, and must not wrap.
        watch.start(10);
        assert!(watch.read(1_000) <= 1_000);
    }
}
