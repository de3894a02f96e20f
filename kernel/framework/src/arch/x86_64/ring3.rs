//! Into ring 3 and back.
//!
//! `enter_user` saves the kernel's registers on the thread's stack, leaves that stack pointer and
//! the address of the program's registers in the per-processor block, and enters ring 3. Every trap
//! from there ends in those registers and returns from `enter_user`, as if it had been a call.
//! Interrupts are off from loading the program's registers until ring 3 runs, and from the trap
//! until they are saved.
//!
//! All other vectors take an IST stack, so also one that comes between the loading of the program's
//! stack pointer and SYSRET, or between SYSCALL and the saving of that pointer, finds a stack.

use core::arch::naked_asm;
use core::mem::offset_of;
use core::sync::atomic::Ordering;

use super::cpu::this_cpu;
use super::gdt::{USER_CODE, USER_DATA};
use super::trap::TrapFrame;
use super::user::Registers;
use crate::arch::cpu::PerCpu;

/// What a system call has for a vector.
pub(super) const SYSCALL: u64 = 256;
/// Bytes of the registers below: eighteen, and the two bases, which are not touched here.
pub(super) const ALL: usize = 20 * 8;

/// Copies the frame of a trap from ring 3 into the registers of the program that runs here.
pub(super) fn save_frame(frame: &TrapFrame) {
    let own = &this_cpu().own;
    let registers = own.user_registers.load(Ordering::Relaxed) as *mut Registers;
    // SAFETY: `enter_user` stored the address of the registers that `enter` holds exclusively, and
    // code in ring 3 runs on this processor only below that `enter`.
    let registers = unsafe { &mut *registers };
    *registers = Registers {
        rax: frame.rax,
        rbx: frame.rbx,
        rcx: frame.rcx,
        rdx: frame.rdx,
        rsi: frame.rsi,
        rdi: frame.rdi,
        rbp: frame.rbp,
        rsp: frame.rsp,
        r8: frame.r8,
        r9: frame.r9,
        r10: frame.r10,
        r11: frame.r11,
        r12: frame.r12,
        r13: frame.r13,
        r14: frame.r14,
        r15: frame.r15,
        rip: frame.rip,
        rflags: frame.rflags,
        ..*registers
    };
    own.user_vector
        .store(frame.vector as usize, Ordering::Relaxed);
    own.user_error
        .store(frame.error_code as usize, Ordering::Relaxed);
}

/// Enters ring 3 with these registers, by SYSRET if `quick`, else by IRETQ; returns after the next
/// trap from there, with its vector.
///
/// # Safety
/// Interrupts are off, and the registers are some that the instruction accepts for ring 3.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn enter_user(registers: *mut Registers, quick: bool) -> u64 {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov gs:[{kernel_rsp}], rsp",
        "mov gs:[{user_registers}], rdi",
        "mov r15, [rdi + {r15}]",
        "mov r14, [rdi + {r14}]",
        "mov r13, [rdi + {r13}]",
        "mov r12, [rdi + {r12}]",
        "mov r10, [rdi + {r10}]",
        "mov r9, [rdi + {r9}]",
        "mov r8, [rdi + {r8}]",
        "mov rbp, [rdi + {rbp}]",
        "mov rdx, [rdi + {rdx}]",
        "mov rbx, [rdi + {rbx}]",
        "mov rax, [rdi + {rax}]",
        "mov rcx, [rdi + {rip}]",
        "mov r11, [rdi + {rflags}]",
        "test sil, sil",
        "mov rsi, [rdi + {rsi}]",
        "jz 2f",
        "mov rsp, [rdi + {rsp}]",
        "mov rdi, [rdi + {rdi}]",
        "swapgs",
        "sysretq",
        "2:",
        "push {user_data}",
        "push [rdi + {rsp}]",
        "push r11",
        "push {user_code}",
        "push rcx",
        "mov r11, [rdi + {r11}]",
        "mov rcx, [rdi + {rcx}]",
        "mov rdi, [rdi + {rdi}]",
        "swapgs",
        "iretq",
        kernel_rsp = const offset_of!(PerCpu, own.kernel_rsp),
        user_registers = const offset_of!(PerCpu, own.user_registers),
        user_code = const USER_CODE,
        user_data = const USER_DATA,
        r15 = const offset_of!(Registers, r15),
        r14 = const offset_of!(Registers, r14),
        r13 = const offset_of!(Registers, r13),
        r12 = const offset_of!(Registers, r12),
        r11 = const offset_of!(Registers, r11),
        r10 = const offset_of!(Registers, r10),
        r9 = const offset_of!(Registers, r9),
        r8 = const offset_of!(Registers, r8),
        rbp = const offset_of!(Registers, rbp),
        rdi = const offset_of!(Registers, rdi),
        rsi = const offset_of!(Registers, rsi),
        rdx = const offset_of!(Registers, rdx),
        rcx = const offset_of!(Registers, rcx),
        rbx = const offset_of!(Registers, rbx),
        rax = const offset_of!(Registers, rax),
        rip = const offset_of!(Registers, rip),
        rflags = const offset_of!(Registers, rflags),
        rsp = const offset_of!(Registers, rsp),
    )
}

/// The other half of `enter_user`: back on the thread's stack, return to its caller. The trap stubs
/// jump here with the kernel's GS, when `save_frame` is done.
///
/// # Safety
/// Nothing calls it; who jumps here comes from ring 3, into which `enter_user` went on this very
/// thread.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn user_trap_exit() {
    naked_asm!(
        "mov rax, gs:[{vector}]",
        "mov rsp, gs:[{kernel_rsp}]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        vector = const offset_of!(PerCpu, own.user_vector),
        kernel_rsp = const offset_of!(PerCpu, own.kernel_rsp),
    )
}

/// Where SYSCALL enters: interrupts off, RCX = return address, R11 = flags, stack the user's. Uses
/// RSP as the pointer to the registers, which is safe because every trap takes an IST stack.
///
/// # Safety
/// Only the processor comes here, by SYSCALL from ring 3.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn syscall_entry() {
    naked_asm!(
        "swapgs",
        "mov gs:[{user_rsp}], rsp",
        "mov rsp, gs:[{user_registers}]",
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
        "mov rsp, gs:[{kernel_rsp}]",
        "mov eax, {syscall}",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        user_rsp = const offset_of!(PerCpu, own.user_rsp),
        kernel_rsp = const offset_of!(PerCpu, own.kernel_rsp),
        user_registers = const offset_of!(PerCpu, own.user_registers),
        syscall = const SYSCALL,
        r15 = const offset_of!(Registers, r15),
        r14 = const offset_of!(Registers, r14),
        r13 = const offset_of!(Registers, r13),
        r12 = const offset_of!(Registers, r12),
        r11 = const offset_of!(Registers, r11),
        r10 = const offset_of!(Registers, r10),
        r9 = const offset_of!(Registers, r9),
        r8 = const offset_of!(Registers, r8),
        rbp = const offset_of!(Registers, rbp),
        rdi = const offset_of!(Registers, rdi),
        rsi = const offset_of!(Registers, rsi),
        rdx = const offset_of!(Registers, rdx),
        rcx = const offset_of!(Registers, rcx),
        rbx = const offset_of!(Registers, rbx),
        rax = const offset_of!(Registers, rax),
        rip = const offset_of!(Registers, rip),
        rflags = const offset_of!(Registers, rflags),
        rsp = const offset_of!(Registers, rsp),
    )
}
