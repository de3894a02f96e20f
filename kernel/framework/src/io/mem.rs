//! Device registers in memory.

use super::claim::{Claim, Claims};
use super::{IoError, Word, check_access};
use crate::arch::reserved::{LOW_MEMORY, PLATFORM};
use crate::mem::kspace::{Cache, Window};
use crate::mem::map::Range;

static CLAIMS: Claims = Claims::new();

/// No range may be larger: 1 GiB.
const LARGEST: u64 = 1 << 30;
/// A range of device registers, mapped uncached. Dropping it unmaps it and lets others acquire it.
pub struct IoMem {
    window: Window,
    physical: u64,
    _claim: Claim,
}

impl IoMem {
    /// Acquires `bytes` bytes of registers at physical address `physical`. RAM and registers that
    /// could break the kernel are refused, as is what another `IoMem` has.
    pub fn acquire(physical: u64, bytes: usize) -> Result<Self, IoError> {
        let range = Range::from_size(physical, bytes as u64).ok_or(IoError::BadRange)?;
        if bytes as u64 > LARGEST {
            return Err(IoError::BadRange);
        }
        refuse_sensitive(&range)?;
        Self::take(physical, bytes)
    }

    /// Acquires configuration space, which is refused to others: whoever can write there can give
    /// any device any address.
    pub(crate) fn acquire_configuration(physical: u64, bytes: usize) -> Result<Self, IoError> {
        Self::take(physical, bytes)
    }

    /// Claims and maps a range that may be given.
    fn take(physical: u64, bytes: usize) -> Result<Self, IoError> {
        let claim = CLAIMS.claim(physical, bytes as u64)?;
        let window = Window::map(physical, bytes, Cache::Device).map_err(|_| IoError::NoMemory)?;
        Ok(Self {
            window,
            physical,
            _claim: claim,
        })
    }

    /// Physical address of the first register.
    pub fn physical(&self) -> u64 {
        self.physical
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.window.bytes()
    }

    /// Where the registers are mapped while `self` lives. Following the address is the `unsafe`
    /// code's affair; the domain runtime does it with the checks of [`read`](Self::read) and
    /// [`write`](Self::write).
    pub fn address(&self) -> usize {
        self.window.address()
    }

    /// Reads the register at `offset`.
    pub fn read<T: Word>(&self, offset: usize) -> Result<T, IoError> {
        check_access::<T>(offset, self.bytes())?;
        let address = (self.window.address() + offset) as *const T;
        // SAFETY: the window maps the address while `self` lives, the access is in bounds and
        // aligned (the window's page offset equals the device's; see below), and any bit pattern
        // is a valid number.
        Ok(unsafe { address.read_volatile() })
    }

    /// Writes the register at `offset`.
    pub fn write<T: Word>(&self, offset: usize, value: T) -> Result<(), IoError> {
        check_access::<T>(offset, self.bytes())?;
        let address = (self.window.address() + offset) as *mut T;
        // SAFETY: as in `read`; the range is not sensitive, or it is configuration space, with
        // which a device can be made to do what it can do anyway: no value written breaks the
        // kernel except by DMA, which is the IOMMU's matter.
        unsafe { address.write_volatile(value) };
        Ok(())
    }
}

/// Refuses RAM and the kernel's own registers. Ranges must start 8-byte aligned, so that an offset
/// is aligned exactly if its address is.
fn refuse_sensitive(range: &Range) -> Result<(), IoError> {
    if !range.start.is_multiple_of(8) {
        return Err(IoError::Misaligned);
    }
    let pages = range.outwards();
    let overlaps = |other: &Range| pages.start < other.end && other.start < pages.end;
    let kernel_registers = crate::acpi::sensitive_memory().any(|(start, bytes)| {
        overlaps(&Range {
            start,
            end: start + bytes,
        })
    });
    let ram = crate::boot::start_info::memory_map().overlaps(&pages);
    if ram || kernel_registers || overlaps(&PLATFORM) || pages.start < LOW_MEMORY {
        return Err(IoError::Sensitive);
    }
    Ok(())
}
