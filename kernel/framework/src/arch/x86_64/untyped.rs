//! Copies in and out of untyped memory, which devices and user programs may change at any time.
//!
//! The compiler never sees such memory through a reference: every access is one volatile word or
//! one string instruction.

use core::arch::{asm, naked_asm};

use super::cpu::{Features, features};
use super::regs;
use super::trap::{PAGE_FAULT, TrapFrame};
use super::user::USER_END;

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

/// Puts `new` into a word of untyped memory if it holds `old`; what it held. Nobody sees a part.
///
/// # Safety
/// The four bytes at `at` must be mapped writable, in one page, and nothing but untyped memory.
pub(crate) unsafe fn exchange(at: usize, old: u32, new: u32) -> u32 {
    let found;
    // SAFETY: the caller vouches for the word.
    unsafe {
        asm!("lock cmpxchg dword ptr [{at}], {new:e}", at = in(reg) at, new = in(reg) new,
            inout("eax") old => found, options(nostack));
    };
    found
}

/// What a word of untyped memory holds. Nobody sees a part.
///
/// # Safety
/// The four bytes at `at` must be mapped, `at` is a multiple of four, and they are untyped memory.
pub(crate) unsafe fn load(at: usize) -> u32 {
    let found;
    // SAFETY: the caller vouches for the word; a load of an aligned word is one step (SDM volume 3,
    // 9.1.1).
    unsafe {
        asm!("mov {found:e}, dword ptr [{at}]", at = in(reg) at, found = out(reg) found,
            options(nostack, preserves_flags, readonly));
    };
    found
}

/// Whether [`copy_program`] may be used: where SMAP is on, it alone is let through.
#[inline]
pub(crate) fn can_copy_program() -> bool {
    features().has(Features::SMAP)
}

/// Copies `count` bytes from `from` to `to`, one of which is an address of the program whose table
/// is loaded, up to the first page that the program itself could not access so now; how many bytes
/// were not copied.
///
/// # Safety
/// [`can_copy_program`], and interrupts are off. `count` bytes at one of the addresses are below
/// [`USER_END`], and nothing but untyped memory is mapped there; those at the other are mapped,
/// writable where they are written to.
#[inline]
pub(crate) unsafe fn copy_program(to: usize, from: usize, count: usize) -> usize {
    // SAFETY: by the caller's duty. A page that is not there, or not for that access, ends the copy
    // by way of `resume`.
    unsafe { copy_or_stop(to, from, count) }
}

/// Words first, then the bytes that are left. Either may fault at each step, with what is left of
/// it in RCX; then [`resume`] has it go on at the end with all that is left there.
#[unsafe(naked)]
unsafe extern "C" fn copy_or_stop(to: usize, from: usize, count: usize) -> usize {
    naked_asm!(
        "mov rcx, rdx",
        "shr rcx, 3",
        "and edx, 7",
        "stac",
        ".global user_copy_words",
        "user_copy_words:",
        "rep movsq",
        "mov ecx, edx",
        ".global user_copy_bytes",
        "user_copy_bytes:",
        "rep movsb",
        ".global user_copy_end",
        "user_copy_end:",
        "clac",
        "mov rax, rcx",
        "ret",
    )
}

// SAFETY: the assembly above defines them. Only their addresses are used.
unsafe extern "C" {
    static user_copy_words: u8;
    static user_copy_bytes: u8;
    static user_copy_end: u8;
}

/// Whether the exception was one of [`copy_program`] at the program's address; if so, that function
/// goes on at its end. Interrupts have been off since.
pub(super) fn resume(frame: &mut TrapFrame) -> bool {
    let is_at = |label: *const u8| frame.rip == label as u64;
    let left = if is_at(&raw const user_copy_words) {
        frame.rcx * 8 + frame.rdx
    } else if is_at(&raw const user_copy_bytes) {
        frame.rcx
    } else {
        return false;
    };
    let is_meant = frame.vector == PAGE_FAULT && regs::cr2() < USER_END as u64;
    if is_meant {
        frame.rcx = left;
        frame.rip = (&raw const user_copy_end) as u64;
    }
    is_meant
}
