//! The clock, which all processors read alike, and the one-shot timer of each.

pub(crate) use super::calibrate::measure;
pub(crate) use super::lapic::{arm, enable_timer as enable};
pub(crate) use super::regs::rdtsc as now;
pub(crate) use super::rtc::read_seconds as wall_seconds;
