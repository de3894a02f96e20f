//! The registers of a user program. Only what cannot harm the kernel can be set.

use core::arch::asm;

use super::gdt::{USER_CODE, USER_DATA};
use super::regs::{self, RFLAGS_IF};
use super::ring3::{SYSCALL, enter_user};
use super::trap::{PAGE_FAULT, TrapFrame};
use crate::arch::types::UserEvent;

/// User addresses are below this. The last page before the hole in the middle of the address space
/// is left out: SYSCALL at its end would have to return into the hole.
pub const USER_END: usize = 0x0000_7fff_ffff_f000;

const MSR_FS_BASE: u32 = 0xc000_0100;
const MSR_KERNEL_GS_BASE: u32 = 0xc000_0102;

/// Flags a user program may have set: carry, parity, adjust, zero, sign, trap, direction, overflow,
/// alignment check, identification.
const USER_FLAGS: u64 = 0x0024_0dd5;

/// The x87 and SSE state in the layout of FXSAVE64 (SDM volume 1, 10.5.1).
#[repr(C, align(16))]
#[derive(Clone)]
struct FpState([u8; 512]);

impl FpState {
    /// The state after FNINIT, with all SSE exceptions masked.
    const fn new() -> Self {
        let mut bytes = [0; 512];
        bytes[0] = 0x7f; // FCW = 0x037f
        bytes[1] = 0x03;
        bytes[24] = 0x80; // MXCSR = 0x1f80
        bytes[25] = 0x1f;
        Self(bytes)
    }
}

/// General-purpose registers by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Registers {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub rsp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rip: u64,
    pub rflags: u64,
}

/// All registers of a user program while it does not run.
#[derive(Clone)]
pub struct UserContext {
    frame: TrapFrame,
    fp: FpState,
    fs_base: u64,
    gs_base: u64,
}

impl UserContext {
    /// A program that will start at `entry` with its stack pointer at `stack`.
    pub fn new(entry: usize, stack: usize) -> Self {
        let frame = TrapFrame {
            rip: entry as u64,
            rsp: stack as u64,
            cs: USER_CODE.into(),
            ss: USER_DATA.into(),
            rflags: RFLAGS_IF,
            ..TrapFrame::default()
        };
        Self {
            frame,
            fp: FpState::new(),
            fs_base: 0,
            gs_base: 0,
        }
    }

    /// The registers.
    pub fn registers(&self) -> Registers {
        let f = &self.frame;
        Registers {
            rax: f.rax,
            rbx: f.rbx,
            rcx: f.rcx,
            rdx: f.rdx,
            rsi: f.rsi,
            rdi: f.rdi,
            rbp: f.rbp,
            rsp: f.rsp,
            r8: f.r8,
            r9: f.r9,
            r10: f.r10,
            r11: f.r11,
            r12: f.r12,
            r13: f.r13,
            r14: f.r14,
            r15: f.r15,
            rip: f.rip,
            rflags: f.rflags,
        }
    }

    /// Sets the registers. Flags that are not a program's business are ignored.
    pub fn set_registers(&mut self, r: &Registers) {
        self.frame = TrapFrame {
            rax: r.rax,
            rbx: r.rbx,
            rcx: r.rcx,
            rdx: r.rdx,
            rsi: r.rsi,
            rdi: r.rdi,
            rbp: r.rbp,
            rsp: r.rsp,
            r8: r.r8,
            r9: r.r9,
            r10: r.r10,
            r11: r.r11,
            r12: r.r12,
            r13: r.r13,
            r14: r.r14,
            r15: r.r15,
            rip: r.rip,
            rflags: r.rflags & USER_FLAGS | RFLAGS_IF,
            ..self.frame
        };
    }

    /// Sets what a system call returns.
    pub fn set_result(&mut self, rax: u64) {
        self.frame.rax = rax;
    }

    /// Sets the bases of the FS and GS segments. Addresses outside of user space are refused.
    #[must_use]
    pub fn set_segment_bases(&mut self, fs: u64, gs: u64) -> bool {
        let valid = fs < USER_END as u64 && gs < USER_END as u64;
        if valid {
            (self.fs_base, self.gs_base) = (fs, gs);
        }
        valid
    }

    /// The bases of the FS and GS segments.
    pub fn segment_bases(&self) -> (u64, u64) {
        (self.fs_base, self.gs_base)
    }

    /// Sees to it that the return to ring 3 itself cannot fault, and puts the fixed parts right.
    ///
    /// # Errors
    /// With what the program would have raised, had it got so far.
    pub(crate) fn prepare(&mut self) -> Result<(), UserEvent> {
        self.frame.cs = USER_CODE.into();
        self.frame.ss = USER_DATA.into();
        self.frame.rflags = self.frame.rflags & USER_FLAGS | RFLAGS_IF;
        match self.frame.rip < USER_END as u64 {
            true => Ok(()),
            false => Err(UserEvent::PageFault {
                address: self.frame.rip,
                write: false,
                execute: true,
            }),
        }
    }

    /// Runs the program until it traps; says what the trap was.
    ///
    /// # Safety
    /// Interrupts are off, and stay so until the caller has the answer. [`prepare`](Self::prepare)
    /// had nothing against the context as it is. The page table in use is the program's.
    pub(crate) unsafe fn enter(&mut self) -> UserEvent {
        // SAFETY: interrupts are off until ring 3 runs. The segment bases were checked to be user
        // addresses; the floating-point area is only ever written by FXSAVE64 or `FpState::new`;
        // `prepare` made the frame one that IRETQ to ring 3 accepts. The trap comes back here with
        // all callee-saved registers restored, on this stack.
        unsafe {
            regs::clear_segments();
            regs::wrmsr(MSR_FS_BASE, self.fs_base);
            regs::wrmsr(MSR_KERNEL_GS_BASE, self.gs_base);
            let fp = self.fp.0.as_mut_ptr();
            // FNINIT, since FXRSTOR64 leaves the pointers to the last x87 instruction of another
            // program on some processors (AMD APM volume 2, 11.4.4).
            asm!("fninit", "fxrstor64 [{}]", in(reg) fp, options(nostack));
            enter_user(&raw mut self.frame);
            asm!("fxsave64 [{}]", in(reg) fp, options(nostack));
        }
        self.event()
    }

    /// What the trap that came back was. Interrupts are off, so CR2 is still the trap's.
    fn event(&self) -> UserEvent {
        let frame = &self.frame;
        match frame.vector {
            SYSCALL => UserEvent::Syscall,
            PAGE_FAULT => UserEvent::PageFault {
                address: regs::cr2(),
                write: frame.error_code & 2 != 0,
                execute: frame.error_code & 16 != 0,
            },
            2 | 18 | 32.. => UserEvent::Interrupt,
            vector => UserEvent::Exception {
                vector: vector as u8,
                error_code: frame.error_code,
            },
        }
    }
}
