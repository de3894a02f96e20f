//! The few instructions that leave one stack and enter another.
//!
//! A voluntary switch pushes the callee-saved registers, stores the stack pointer in the thread and
//! goes on, on the processor's scheduler stack, in a function that never returns. Everything else
//! about switching happens there, where no thread's stack is in use. Interrupts are off throughout.

use core::arch::naked_asm;

use crate::arch::upcalls;

/// Saves the caller's context through `save_rsp` and calls `next` on the stack that ends at
/// `stack_top`. Returns when [`resume`] is given the saved stack pointer.
///
/// # Safety
/// `save_rsp` is valid for a write; `stack_top` is the 16-byte aligned end of a stack that nobody
/// uses; interrupts are disabled.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn leave(
    save_rsp: *mut usize,
    stack_top: usize,
    next: extern "C" fn() -> !,
) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "xor ebp, ebp",
        "call rdx",
        "ud2",
    )
}

/// Continues after the [`leave`] that saved `rsp`, or starts a thread prepared by [`prepare`].
///
/// # Safety
/// `rsp` was saved by `leave` or made by `prepare`, and has not been resumed since; interrupts are
/// disabled.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn resume(rsp: usize) -> ! {
    naked_asm!(
        "mov rsp, rdi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}

/// Calls `next` on the stack that ends at `stack_top`; the present stack is abandoned.
///
/// # Safety
/// As for [`leave`], and nothing on the present stack is needed any more.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn jump(stack_top: usize, next: extern "C" fn() -> !) -> ! {
    naked_asm!("mov rsp, rdi", "xor ebp, ebp", "call rsi", "ud2")
}

/// First code of a new thread: `prepare` put the entry into R12 and its argument into R13.
#[unsafe(naked)]
extern "C" fn begin() -> ! {
    naked_asm!(
        "sti",
        "xor ebp, ebp",
        "mov rdi, r13",
        "call r12",
        "call {exit}",
        "ud2",
        exit = sym upcalls::thread_returned,
    )
}

/// Words that [`prepare`] writes at the top of a new stack.
pub(crate) const PREPARED_WORDS: usize = 7;

/// What the top of a new thread's stack must hold so that [`resume`] enters `entry(arg)`: R15,
/// R14, R13, R12, RBP, RBX and the return address, which leaves the stack pointer at the top.
pub(crate) fn prepare(entry: extern "C" fn(usize), arg: usize) -> [usize; PREPARED_WORDS] {
    [0, 0, arg, entry as usize, 0, 0, begin as *const () as usize]
}
