//! Time: nanoseconds since boot from the machine's clock, the wall clock, deadlines and ticks.
//!
//! The counter is taken to run at one rate and in step on all processors, as it does on every
//! processor of the last fifteen years and in QEMU.

mod stopwatch;
mod timer;

use core::sync::atomic::{AtomicU64, Ordering};

pub(crate) use stopwatch::Stopwatch;
#[cfg(feature = "selftest")]
pub(crate) use timer::swap_tick_hook;
pub(crate) use timer::{
    Alarm, cancel, enable_on_this_processor, handle as timer_fired, processor_idles, schedule,
    thread_runs,
};
pub use timer::{TICK_NS, TickHook, set_tick_hook};

use crate::arch::clock;
use crate::{kprintln, log};

/// The clock's value at boot.
static START: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds per count, times 2^32; 0 before calibration.
static NS_PER_COUNT: AtomicU64 = AtomicU64::new(0);
/// Counts per second.
static FREQUENCY: AtomicU64 = AtomicU64::new(0);
/// Wall-clock time at boot, in seconds since 1970.
static WALL_AT_START: AtomicU64 = AtomicU64::new(0);

/// The machine's clock, in counts; on x86-64 the time-stamp counter.
#[inline]
pub fn tsc() -> u64 {
    clock::now()
}

/// How nanoseconds since boot come of the machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The clock's value at boot.
    pub start: u64,
    /// Nanoseconds per count, times 2^32.
    pub multiplier: u64,
    /// Seconds since 1970 at boot.
    pub wall_seconds: u64,
    /// The processor promises that the clock runs at one rate.
    pub is_steady: bool,
}

/// How [`now_ns`] and [`wall_seconds`] come of [`tsc`], for who reads that by himself. `None`
/// before calibration.
pub fn scale() -> Option<Scale> {
    let multiplier = NS_PER_COUNT.load(Ordering::Relaxed);
    (multiplier != 0).then(|| Scale {
        start: START.load(Ordering::Relaxed),
        multiplier,
        wall_seconds: WALL_AT_START.load(Ordering::Relaxed),
        is_steady: clock::is_steady(),
    })
}

/// Counts of the clock per second.
pub fn tsc_frequency() -> u64 {
    FREQUENCY.load(Ordering::Relaxed)
}

/// Nanoseconds since boot; 0 before calibration.
#[inline]
pub fn now_ns() -> u64 {
    let rate = NS_PER_COUNT.load(Ordering::Relaxed);
    let counts = tsc().wrapping_sub(START.load(Ordering::Relaxed));
    ((u128::from(counts) * u128::from(rate)) >> 32) as u64
}

/// Seconds since 1970, from the real-time clock as it was at boot.
pub fn wall_seconds() -> u64 {
    WALL_AT_START.load(Ordering::Relaxed) + now_ns() / 1_000_000_000
}

/// The counter's value at `ns` nanoseconds since boot, rounded up.
fn tsc_at(ns: u64) -> u64 {
    let rate = u128::from(NS_PER_COUNT.load(Ordering::Relaxed).max(1));
    let counts = (u128::from(ns) << 32).div_ceil(rate);
    let counts = u64::try_from(counts).unwrap_or(u64::MAX);
    START.load(Ordering::Relaxed).saturating_add(counts)
}

/// Measures the counters, reads the real-time clock and enables the timer of this processor.
pub(crate) fn init() {
    let rates = clock::measure();
    START.store(tsc(), Ordering::Relaxed);
    FREQUENCY.store(rates.clock, Ordering::Relaxed);
    let ns = (1_000_000_000_u128 << 32) / u128::from(rates.clock);
    NS_PER_COUNT.store(ns as u64, Ordering::Relaxed);
    timer::set_rate(rates.timer);
    WALL_AT_START.store(clock::wall_seconds(), Ordering::Relaxed);
    log::set_clock(now_ns);
    enable_on_this_processor();
    kprintln!(
        "time: tsc {} kHz (from {}), timer {} kHz, {} wall",
        rates.clock / 1000,
        rates.source,
        rates.timer / 1000,
        wall_seconds(),
    );
}
