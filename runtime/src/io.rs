//! Device memory and DMA memory, for domains that were granted some.
//!
//! Both are reached through a handle to a kernel object, which says once where the memory is
//! mapped; that the object really is the kernel's is checked, so that no domain can be talked into
//! using an address that another domain made up. The mapping lives as long as the handle does. No
//! reference to the memory is ever formed: the device may change it at any time.

use abi::handle::is_kernel_object;
use abi::{Handle, RpcError, RpcResult};
use core::arch::asm;
use core::sync::atomic::{Ordering, fence as atomic_fence};
use interfaces::{DmaMemory, Mmio};

/// Orders every access before it, of this processor, before every one after it, as seen by devices.
#[inline]
pub fn fence() {
    atomic_fence(Ordering::SeqCst);
}

/// Copies `length` bytes.
///
/// One side is memory that a device, or another domain that was given a handle to it, may change
/// meanwhile. So the compiler must not see the access: of one that it sees, it may make two, which
/// find different values.
///
/// # Safety
/// Both sides are mapped, `length` bytes each, and the side that is written to is the caller's to
/// write.
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: by the caller's duty; the direction flag is clear by the ABI.
    unsafe {
        asm!(
            "rep movsq",
            "mov rcx, {rest}",
            "rep movsb",
            rest = in(reg) length % 8,
            inout("rcx") length / 8 => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// A mapped range: address and length.
struct Range {
    base: usize,
    length: usize,
}

impl Range {
    /// The address of a `T` at `offset`.
    ///
    /// # Panics
    /// If it does not lie in the range or is not aligned.
    #[inline]
    #[track_caller]
    fn at<T>(&self, offset: usize) -> *mut T {
        let fits = offset
            .checked_add(size_of::<T>())
            .is_some_and(|end| end <= self.length);
        let address = self.base.wrapping_add(offset);
        assert!(
            fits && address.is_multiple_of(align_of::<T>()),
            "offset {offset:#x} of {:#x}",
            self.length
        );
        address as *mut T
    }

    #[inline]
    #[track_caller]
    fn read<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: inside the mapping, aligned; volatile, since the device may change it.
        unsafe { self.at::<T>(offset).read_volatile() }
    }

    #[inline]
    #[track_caller]
    fn write<T: Copy>(&self, offset: usize, value: T) {
        // SAFETY: as for `read`.
        unsafe { self.at::<T>(offset).write_volatile(value) }
    }
}

macro_rules! accessors {
    ($($read:ident, $write:ident, $type:ty;)*) => { $(
        /// Reads at `offset`.
        ///
        /// # Panics
        /// If the offset lies outside or is not aligned.
        #[inline]
        #[track_caller]
        pub fn $read(&self, offset: usize) -> $type {
            self.range.read(offset)
        }

        /// Writes at `offset`.
        ///
        /// # Panics
        /// If the offset lies outside or is not aligned.
        #[inline]
        #[track_caller]
        pub fn $write(&self, offset: usize, value: $type) {
            self.range.write(offset, value)
        }
    )* };
}

/// Device registers.
pub struct IoMem {
    range: Range,
    _mapping: Handle<dyn Mmio>,
}

impl IoMem {
    /// The registers behind `mapping`.
    ///
    /// # Errors
    /// [`RpcError::Refused`] if it is not a kernel object; the errors of the calls.
    pub fn new(mapping: Handle<dyn Mmio>) -> RpcResult<Self> {
        if !is_kernel_object(&mapping) {
            return Err(RpcError::Refused);
        }
        let range = Range {
            base: mapping.base()? as usize,
            length: mapping.length()? as usize,
        };
        Ok(IoMem {
            range,
            _mapping: mapping,
        })
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.range.length
    }

    accessors! {
        read8, write8, u8;
        read16, write16, u16;
        read32, write32, u32;
        read64, write64, u64;
    }
}

/// Memory that a device may read and write.
pub struct DmaBuffer {
    range: Range,
    device_address: u64,
    _memory: Handle<dyn DmaMemory>,
}

impl DmaBuffer {
    /// The memory behind `memory`.
    ///
    /// # Errors
    /// [`RpcError::Refused`] if it is not a kernel object; the errors of the calls.
    pub fn new(memory: Handle<dyn DmaMemory>) -> RpcResult<Self> {
        if !is_kernel_object(&memory) {
            return Err(RpcError::Refused);
        }
        let range = Range {
            base: memory.base()? as usize,
            length: memory.length()? as usize,
        };
        let device_address = memory.device_address()?;
        Ok(DmaBuffer {
            range,
            device_address,
            _memory: memory,
        })
    }

    /// The address that the device is to use.
    pub fn device_address(&self) -> u64 {
        self.device_address
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.range.length
    }

    /// Copies bytes out of the memory, from `offset` on.
    ///
    /// # Panics
    /// If they do not all lie in the memory.
    #[track_caller]
    pub fn read_bytes(&self, offset: usize, bytes: &mut [u8]) {
        let start = self.span(offset, bytes.len());
        // SAFETY: inside the mapping, which no Rust reference points to; into a slice of the
        // caller's.
        unsafe { copy(start, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Copies bytes into the memory, from `offset` on.
    ///
    /// # Panics
    /// If they do not all fit.
    #[track_caller]
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        let start = self.span(offset, bytes.len());
        // SAFETY: as for `read_bytes`, the other way round.
        unsafe { copy(bytes.as_ptr(), start, bytes.len()) };
    }

    /// Writes 64 bits each, one after the other, from `offset` on.
    ///
    /// # Panics
    /// If they do not all fit, or the offset is not aligned.
    #[inline]
    #[track_caller]
    pub fn write_u64s<const N: usize>(&self, offset: usize, values: [u64; N]) {
        let first = self.range.at::<[u64; N]>(offset).cast::<u64>();
        for (index, value) in values.into_iter().enumerate() {
            // SAFETY: `at` has checked that all `N` are inside the mapping, and aligned; volatile,
            // since the device may read and change it.
            unsafe { first.add(index).write_volatile(value) };
        }
    }

    #[track_caller]
    fn span(&self, offset: usize, length: usize) -> *mut u8 {
        let fits = offset
            .checked_add(length)
            .is_some_and(|end| end <= self.range.length);
        assert!(
            fits,
            "{length} bytes at {offset:#x} of {:#x}",
            self.range.length
        );
        (self.range.base + offset) as *mut u8
    }

    accessors! {
        read_u8, write_u8, u8;
        read_u16, write_u16, u16;
        read_u32, write_u32, u32;
        read_u64, write_u64, u64;
    }
}
