//! Physical memory that no driver may have, whatever the tables of the firmware say.

use crate::arch::upcalls::Range;

/// I/O APICs, timers and the chipset's own registers, interrupt messages and local APICs (SDM
/// volume 3, 11.11.1), and the firmware's memory: by convention of all PCs above the regions of
/// devices, up to 4 GiB. The tables do not name all of it.
pub(crate) const PLATFORM: Range = Range {
    start: 0xfec0_0000,
    end: 0x1_0000_0000,
};
/// Everything below belongs to the firmware and to processor start-up.
pub(crate) const LOW_MEMORY: u64 = 1 << 20;
