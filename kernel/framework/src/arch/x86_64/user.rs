//! The registers of a user program. Only what cannot harm the kernel reaches the processor.

use core::sync::atomic::Ordering;

use super::cpu::this_cpu;
use super::regs::{self, RFLAGS_IF};
use super::ring3::{self, SYSCALL, enter_user};
use super::trap::PAGE_FAULT;
use abi::user::UserEvent;

pub(crate) use super::vector::VectorState;
pub use abi::user::UserRegisters as Registers;

/// User addresses are below this. The last page before the hole in the middle of the address space
/// is left out: SYSCALL at its end would have to return into the hole.
pub const USER_END: usize = 0x0000_7fff_ffff_f000;

const MSR_FS_BASE: u32 = 0xc000_0100;
const MSR_KERNEL_GS_BASE: u32 = 0xc000_0102;

/// Flags a user program may have set: carry, parity, adjust, zero, sign, trap, direction, overflow,
/// alignment check, identification.
const USER_FLAGS: u64 = 0x0024_0dd5;
/// Those that it always has: interrupts come in, and a bit that the processor always reads as set.
const SET_FLAGS: u64 = RFLAGS_IF | 2;
/// The flag that has each instruction trap.
const TRAP_FLAG: u64 = 1 << 8;

/// The bases of FS and GS.
pub(crate) type Bases = [u64; 2];

/// The registers of a program that will start at `entry` with its stack pointer at `stack`.
pub(crate) fn first_registers(entry: usize, stack: usize) -> Registers {
    Registers {
        rip: entry as u64,
        rsp: stack as u64,
        rflags: SET_FLAGS,
        ..Registers::default()
    }
}

/// Sets what a system call returns.
pub(crate) fn set_result(registers: &mut Registers, result: u64) {
    registers.rax = result;
}

/// The bases that are wanted for FS and GS.
pub(crate) fn bases(registers: &Registers) -> Bases {
    [registers.fs_base, registers.gs_base]
}

/// Sees to it that the way to ring 3 itself cannot fault, and takes away the flags that are not a
/// program's business.
///
/// # Errors
/// With what the program would have raised, had it got so far.
#[inline]
pub(crate) fn prepare(registers: &mut Registers) -> Result<(), UserEvent> {
    registers.rflags = registers.rflags & USER_FLAGS | SET_FLAGS;
    // If this is a user address, so is each of them.
    let all = registers.rip | registers.fs_base | registers.gs_base;
    match all < USER_END as u64 {
        true => Ok(()),
        false => look_closer(registers),
    }
}

/// Which of the addresses is none of a program's, if any is.
#[cold]
fn look_closer(registers: &Registers) -> Result<(), UserEvent> {
    if registers.rip >= USER_END as u64 {
        return Err(UserEvent::PageFault {
            address: registers.rip,
            write: false,
            execute: true,
        });
    }
    if bases(registers).iter().any(|base| *base >= USER_END as u64) {
        return Err(UserEvent::Exception {
            vector: 13,
            error_code: 0,
        });
    }
    Ok(())
}

/// Loads the bases, and nothing into the segment registers themselves, so that no program sees what
/// another left there.
///
/// # Safety
/// Interrupts are off, and [`prepare`] had nothing against the registers with these bases.
pub(crate) unsafe fn load_segments(bases: Bases) {
    // SAFETY: by the caller's duty.
    unsafe {
        regs::clear_segments();
        load_bases(bases);
    }
}

/// Loads the bases of FS and GS.
///
/// # Safety
/// As of [`load_segments`].
pub(crate) unsafe fn load_bases([fs, gs]: Bases) {
    // SAFETY: both are user addresses, so canonical. The kernel uses neither: its own base of GS is
    // the active one.
    unsafe {
        regs::wrmsr(MSR_FS_BASE, fs);
        regs::wrmsr(MSR_KERNEL_GS_BASE, gs);
    }
}

/// Whether SYSRET brings these registers into ring 3: it takes RIP and the flags from RCX and R11,
/// which is where SYSCALL has put them. A program that is followed step by step goes by IRETQ.
#[inline]
pub(crate) fn can_sysret(registers: &Registers) -> bool {
    registers.rcx == registers.rip
        && registers.r11 == registers.rflags
        && registers.rflags & TRAP_FLAG == 0
}

/// Runs the program until it traps; says what the trap was.
///
/// # Safety
/// Interrupts are off, and stay so until the caller has the answer. [`prepare`] had nothing against
/// the registers as they are. The page table in use is the program's, and so are the vector
/// registers and the bases of segments.
#[inline]
pub(crate) unsafe fn enter(registers: &mut Registers) -> UserEvent {
    let quick = can_sysret(registers);
    // SAFETY: interrupts are off until ring 3 runs. `prepare` has made the registers some that
    // IRETQ to ring 3 accepts, and SYSRET, since RIP is below the hole. The trap comes back here
    // with all callee-saved registers restored, on this stack.
    let vector = unsafe { enter_user(registers, quick) };
    match vector {
        SYSCALL => UserEvent::Syscall,
        _ => trap(vector),
    }
}

/// What the trap was. Interrupts are off, so CR2 is still the trap's.
fn trap(vector: u64) -> UserEvent {
    let error_code = this_cpu().own.user_error.load(Ordering::Relaxed) as u64;
    match vector {
        PAGE_FAULT => UserEvent::PageFault {
            address: regs::cr2(),
            write: error_code & 2 != 0,
            execute: error_code & 16 != 0,
        },
        2 | 18 | 32.. => UserEvent::Interrupted,
        vector => UserEvent::Exception {
            vector: vector as u8,
            error_code,
        },
    }
}

// The stubs take the registers by their places.
const _: () = assert!(ring3::ALL == size_of::<Registers>());
