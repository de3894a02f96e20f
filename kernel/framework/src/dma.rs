//! Memory that devices read and write.
//!
//! Such memory is untyped: the kernel only copies plain bytes and numbers in and out, so whatever a
//! device does to it cannot break a Rust invariant. Without an active IOMMU a device can reach all
//! other memory as well; the kernel says so at boot.

use crate::arch::untyped;
use crate::io::{IoError, Word, check_access};
use crate::mem::frames::{FrameKind, Frames};
use crate::mem::{NoMemory, PAGE_SIZE};

/// Whether an IOMMU confines devices. There is no driver for one yet.
pub fn confined() -> bool {
    false
}

/// Says in the log what devices can reach.
pub(crate) fn log_confinement() {
    if !confined() {
        crate::kprintln!(
            "dma: WARNING: no IOMMU is active; a driver can reach all memory through its device"
        );
    }
}

/// Zeroed memory in a row that processor and device see alike (x86 caches are coherent). Dropping
/// it frees it: stop the device first ([`crate::pci::quiesce`]).
#[derive(Debug)]
pub struct DmaCoherent {
    frames: Frames,
}

impl DmaCoherent {
    /// Allocates `pages` pages in a row.
    pub fn alloc(pages: usize) -> Result<Self, NoMemory> {
        let frames = Frames::alloc_zeroed(pages, FrameKind::Untyped).ok_or(NoMemory)?;
        Ok(Self { frames })
    }

    /// The address to tell the device.
    pub fn physical(&self) -> u64 {
        self.frames.physical()
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.frames.count() * PAGE_SIZE
    }

    /// The direct-map address of `offset`, with room for `bytes` more.
    fn address(&self, offset: usize, bytes: usize) -> Result<usize, IoError> {
        let end = offset.checked_add(bytes).ok_or(IoError::OutOfRange)?;
        if end > self.bytes() {
            return Err(IoError::OutOfRange);
        }
        Ok(self.frames.pointer().as_ptr() as usize + offset)
    }

    /// Copies bytes out.
    pub fn read_bytes(&self, offset: usize, bytes: &mut [u8]) -> Result<(), IoError> {
        let from = self.address(offset, bytes.len())?;
        // SAFETY: the range lies in our frames, which the direct map maps.
        unsafe { untyped::copy_out(from, bytes) };
        Ok(())
    }

    /// Copies bytes in.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), IoError> {
        let to = self.address(offset, bytes.len())?;
        // SAFETY: the range lies in our frames, which are untyped and mapped writable.
        unsafe { untyped::copy_in(to, bytes) };
        Ok(())
    }

    /// Reads a number in one access.
    pub fn read<T: Word>(&self, offset: usize) -> Result<T, IoError> {
        check_access::<T>(offset, self.bytes())?;
        let from = self.address(offset, core::mem::size_of::<T>())?;
        // SAFETY: in our frames, aligned, and any bit pattern is a valid number.
        Ok(unsafe { (from as *const T).read_volatile() })
    }

    /// Writes a number in one access.
    pub fn write<T: Word>(&self, offset: usize, value: T) -> Result<(), IoError> {
        check_access::<T>(offset, self.bytes())?;
        let to = self.address(offset, core::mem::size_of::<T>())?;
        // SAFETY: in our frames, which are untyped, and aligned.
        unsafe { (to as *mut T).write_volatile(value) };
        Ok(())
    }
}
