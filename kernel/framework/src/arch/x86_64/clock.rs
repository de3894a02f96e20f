//! The clock, which all processors read alike, and the one-shot timer of each.

pub(crate) use super::calibrate::measure;
pub(crate) use super::lapic::{arm, enable_timer as enable};
pub(crate) use super::regs::rdtsc as now;
pub(crate) use super::rtc::read_seconds as wall_seconds;

/// Whether the processor promises that the clock runs at one rate, whatever it does ("Invariant
/// TSC", Intel SDM volume 3, 18.17.1).
pub(crate) fn is_steady() -> bool {
    super::regs::cpuid(0x8000_0007, 0).edx & 1 << 8 != 0
}
