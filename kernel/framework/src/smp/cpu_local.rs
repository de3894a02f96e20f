//! One value for each processor.

use crate::arch::MAX_CPUS;
use crate::arch::cpu::cpu_index;
use crate::sync::IrqOff;

/// A value of which each processor has its own.
pub struct CpuLocal<T> {
    values: [T; MAX_CPUS],
}

// SAFETY: `with` gives out a processor's value only on that processor, with interrupts off, so two
// processors never share one (`T: Send` because whoever makes the array may be another one); `of`,
// which does share, asks for `T: Sync`.
unsafe impl<T: Send> Sync for CpuLocal<T> {}

impl<T> CpuLocal<T> {
    /// From the value of each processor.
    pub const fn new(values: [T; MAX_CPUS]) -> Self {
        Self { values }
    }

    /// Calls `act` with this processor's value, interrupts off meanwhile.
    pub fn with<R>(&self, act: impl FnOnce(&T) -> R) -> R {
        let _irq = IrqOff::new();
        act(&self.values[cpu_index()])
    }

    /// The value of the processor with this index.
    pub fn of(&self, index: usize) -> Option<&T>
    where
        T: Sync,
    {
        self.values.get(index)
    }
}
