//! Into ring 3 and back.
//!
//! `enter_user` saves the kernel's registers on the thread's stack, leaves that stack pointer and
//! the address of the context in the per-processor block, and enters ring 3. Every trap from there
//! ends in the context and returns from `enter_user`, as if it had been a call. Interrupts are off
//! from loading the user's state until ring 3 runs, and from the trap until that state is saved.

use core::arch::naked_asm;
use core::mem::offset_of;
use core::sync::atomic::Ordering;

use super::cpu::this_cpu;
use super::gdt::{USER_CODE, USER_DATA};
use super::trap::TrapFrame;
use crate::arch::cpu::PerCpu;

/// What the system-call entry notes as the vector.
pub(super) const SYSCALL: u64 = 256;

/// Copies the frame of a trap from ring 3 into the context that runs here.
pub(super) fn save_frame(frame: &TrapFrame) {
    let context = this_cpu().own.user_context.load(Ordering::Relaxed) as *mut TrapFrame;
    // SAFETY: `enter_user` stored the address of the frame in the context that `enter` holds
    // exclusively, and code in ring 3 runs on this processor only below that `enter`.
    unsafe { context.write(*frame) };
}

/// Enters ring 3 with the registers of `frame`; returns after the next trap from there.
///
/// # Safety
/// Interrupts are off, and the frame is one that IRETQ to ring 3 accepts.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn enter_user(frame: *mut TrapFrame) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov gs:[{kernel_rsp}], rsp",
        "mov gs:[{user_context}], rdi",
        "push [rdi + {ss}]",
        "push [rdi + {rsp}]",
        "push [rdi + {rflags}]",
        "push [rdi + {cs}]",
        "push [rdi + {rip}]",
        "mov r15, [rdi + {r15}]",
        "mov r14, [rdi + {r14}]",
        "mov r13, [rdi + {r13}]",
        "mov r12, [rdi + {r12}]",
        "mov r11, [rdi + {r11}]",
        "mov r10, [rdi + {r10}]",
        "mov r9, [rdi + {r9}]",
        "mov r8, [rdi + {r8}]",
        "mov rbp, [rdi + {rbp}]",
        "mov rsi, [rdi + {rsi}]",
        "mov rdx, [rdi + {rdx}]",
        "mov rcx, [rdi + {rcx}]",
        "mov rbx, [rdi + {rbx}]",
        "mov rax, [rdi + {rax}]",
        "mov rdi, [rdi + {rdi}]",
        "swapgs",
        "iretq",
        kernel_rsp = const offset_of!(PerCpu, own.kernel_rsp),
        user_context = const offset_of!(PerCpu, own.user_context),
        r15 = const offset_of!(TrapFrame, r15),
        r14 = const offset_of!(TrapFrame, r14),
        r13 = const offset_of!(TrapFrame, r13),
        r12 = const offset_of!(TrapFrame, r12),
        r11 = const offset_of!(TrapFrame, r11),
        r10 = const offset_of!(TrapFrame, r10),
        r9 = const offset_of!(TrapFrame, r9),
        r8 = const offset_of!(TrapFrame, r8),
        rbp = const offset_of!(TrapFrame, rbp),
        rdi = const offset_of!(TrapFrame, rdi),
        rsi = const offset_of!(TrapFrame, rsi),
        rdx = const offset_of!(TrapFrame, rdx),
        rcx = const offset_of!(TrapFrame, rcx),
        rbx = const offset_of!(TrapFrame, rbx),
        rax = const offset_of!(TrapFrame, rax),
        rip = const offset_of!(TrapFrame, rip),
        cs = const offset_of!(TrapFrame, cs),
        rflags = const offset_of!(TrapFrame, rflags),
        rsp = const offset_of!(TrapFrame, rsp),
        ss = const offset_of!(TrapFrame, ss),
    )
}

/// The other half of `enter_user`: back on the thread's stack, return to its caller. The trap stubs
/// and the system-call entry jump here with the kernel's GS.
///
/// # Safety
/// Nothing calls it; who jumps here comes from ring 3, into which `enter_user` went on this very
/// thread.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn user_trap_exit() {
    naked_asm!(
        "mov rsp, gs:[{kernel_rsp}]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        kernel_rsp = const offset_of!(PerCpu, own.kernel_rsp),
    )
}

/// Where SYSCALL enters: interrupts off, RCX = return address, R11 = flags, stack the user's. Uses
/// RSP as the pointer to the context, which is safe because every trap takes an IST stack.
///
/// # Safety
/// Only the processor comes here, by SYSCALL from ring 3.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn syscall_entry() {
    naked_asm!(
        "swapgs",
        "mov gs:[{user_rsp}], rsp",
        "mov rsp, gs:[{user_context}]",
        "mov [rsp + {r15}], r15",
        "mov [rsp + {r14}], r14",
        "mov [rsp + {r13}], r13",
        "mov [rsp + {r12}], r12",
        "mov [rsp + {r11}], r11",
        "mov [rsp + {r10}], r10",
        "mov [rsp + {r9}], r9",
        "mov [rsp + {r8}], r8",
        "mov [rsp + {rbp}], rbp",
        "mov [rsp + {rdi}], rdi",
        "mov [rsp + {rsi}], rsi",
        "mov [rsp + {rdx}], rdx",
        "mov [rsp + {rcx}], rcx",
        "mov [rsp + {rbx}], rbx",
        "mov [rsp + {rax}], rax",
        "mov [rsp + {rip}], rcx",
        "mov [rsp + {rflags}], r11",
        "mov rax, gs:[{user_rsp}]",
        "mov [rsp + {rsp}], rax",
        "mov qword ptr [rsp + {vector}], {syscall}",
        "mov qword ptr [rsp + {error}], 0",
        "mov qword ptr [rsp + {cs}], {user_code}",
        "mov qword ptr [rsp + {ss}], {user_data}",
        "jmp {exit}",
        user_rsp = const offset_of!(PerCpu, own.user_rsp),
        user_context = const offset_of!(PerCpu, own.user_context),
        exit = sym user_trap_exit,
        syscall = const SYSCALL,
        user_code = const USER_CODE,
        user_data = const USER_DATA,
        vector = const offset_of!(TrapFrame, vector),
        error = const offset_of!(TrapFrame, error_code),
        r15 = const offset_of!(TrapFrame, r15),
        r14 = const offset_of!(TrapFrame, r14),
        r13 = const offset_of!(TrapFrame, r13),
        r12 = const offset_of!(TrapFrame, r12),
        r11 = const offset_of!(TrapFrame, r11),
        r10 = const offset_of!(TrapFrame, r10),
        r9 = const offset_of!(TrapFrame, r9),
        r8 = const offset_of!(TrapFrame, r8),
        rbp = const offset_of!(TrapFrame, rbp),
        rdi = const offset_of!(TrapFrame, rdi),
        rsi = const offset_of!(TrapFrame, rsi),
        rdx = const offset_of!(TrapFrame, rdx),
        rcx = const offset_of!(TrapFrame, rcx),
        rbx = const offset_of!(TrapFrame, rbx),
        rax = const offset_of!(TrapFrame, rax),
        rip = const offset_of!(TrapFrame, rip),
        cs = const offset_of!(TrapFrame, cs),
        rflags = const offset_of!(TrapFrame, rflags),
        rsp = const offset_of!(TrapFrame, rsp),
        ss = const offset_of!(TrapFrame, ss),
    )
}
