//! Interrupt lines, and interrupts that nobody asked for.
//!
//! The controllers are the machine's affair; what arrives unexpectedly is acknowledged and counted,
//! never fatal.

pub mod line;

use core::sync::atomic::{AtomicU64, Ordering};

pub use crate::arch::types::{Polarity, Trigger};
pub use line::{IrqError, IrqLine};

use crate::arch::controller;

static UNEXPECTED: AtomicU64 = AtomicU64::new(0);

/// Number of interrupts that nobody had asked for.
pub fn unexpected() -> u64 {
    UNEXPECTED.load(Ordering::Relaxed)
}

/// Sets up the controllers, and the boot processor's own.
pub(crate) fn init() {
    crate::sync::init_relax();
    controller::init();
}

/// Counts an interrupt that came although nobody had asked for it.
pub(crate) fn count_unexpected() {
    UNEXPECTED.fetch_add(1, Ordering::Relaxed);
}
