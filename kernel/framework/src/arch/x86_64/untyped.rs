//! Copies in and out of untyped memory, which devices and user programs may change at any time.
//!
//! The compiler never sees such memory through a reference: every access is one volatile word or
//! one string instruction.

use core::arch::asm;

/// Copies `bytes.len()` bytes from untyped memory.
///
/// # Safety
/// The memory at `from` must be mapped, as many bytes as asked for.
pub(crate) unsafe fn copy_out(from: usize, bytes: &mut [u8]) {
    // SAFETY: the caller vouches for the source; the destination is a slice; the direction flag is
    // clear by the ABI.
    unsafe {
        asm!("rep movsb", inout("rsi") from => _, inout("rdi") bytes.as_mut_ptr() => _,
            inout("rcx") bytes.len() => _, options(nostack, preserves_flags));
    }
}

/// Copies `bytes` into untyped memory.
///
/// # Safety
/// The memory at `to` must be mapped writable, and nothing but untyped memory.
pub(crate) unsafe fn copy_in(to: usize, bytes: &[u8]) {
    // SAFETY: the caller vouches for the destination; otherwise as in `copy_out`.
    unsafe {
        asm!("rep movsb", inout("rsi") bytes.as_ptr() => _, inout("rdi") to => _,
            inout("rcx") bytes.len() => _, options(nostack, preserves_flags));
    }
}

/// Copies `count` bytes from untyped memory to untyped memory.
///
/// # Safety
/// The memory at `from` must be mapped, that at `to` writable, `count` bytes of each; both are
/// untyped memory.
pub(crate) unsafe fn copy(from: usize, to: usize, count: usize) {
    // SAFETY: the caller vouches for both; otherwise as in `copy_out`.
    unsafe {
        asm!("rep movsb", inout("rsi") from => _, inout("rdi") to => _,
            inout("rcx") count => _, options(nostack, preserves_flags));
    }
}
