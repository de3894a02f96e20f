//! Trap entry and exit: the assembly stubs, the [`TrapFrame`] they build, and the dispatch to
//! registered handlers.
//!
//! All handlers run with interrupts off on an IST stack. A handler that wants to run another
//! thread copies the frame and leaves through [`return_to`] or a context switch; the IST stack is
//! then simply abandoned, since the next trap starts again at its top. Frames from ring 3
//! ([`TrapFrame::is_user`]) must not be switched away from inside a handler: set
//! [`crate::arch::cpu::PerCpu::need_resched`] instead, and the thread gives way in ring 0.

use core::arch::global_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::events::{INTERRUPT, INTERRUPT_OVER};

use super::regs::{self, RFLAGS_DF, RFLAGS_IF};
use super::{ring3, untyped};
use crate::arch::types::{Fault, FaultKind};
use crate::arch::upcalls::{self, kprintln};

/// How many registers a function keeps for its caller, the stack pointer aside.
pub const SAVED: usize = 6;

/// Vector of page faults.
pub(super) const PAGE_FAULT: u64 = 14;

/// The registers of interrupted code, in the order the entry stubs push them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TrapFrame {
    pub(crate) r15: u64,
    pub(crate) r14: u64,
    pub(crate) r13: u64,
    pub(crate) r12: u64,
    pub(crate) r11: u64,
    pub(crate) r10: u64,
    pub(crate) r9: u64,
    pub(crate) r8: u64,
    pub(crate) rbp: u64,
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    pub(crate) rdx: u64,
    pub(crate) rcx: u64,
    pub(crate) rbx: u64,
    pub(crate) rax: u64,
    /// Vector number, 0 to 255.
    pub(crate) vector: u64,
    /// The processor's error code, 0 where the vector has none.
    pub(crate) error_code: u64,
    pub(crate) rip: u64,
    pub(crate) cs: u64,
    pub(crate) rflags: u64,
    pub(crate) rsp: u64,
    pub(crate) ss: u64,
}

impl TrapFrame {
    /// Whether the interrupted code ran in ring 3.
    pub fn is_user(&self) -> bool {
        self.cs & 3 != 0
    }

    /// Whether the interrupted code ran with interrupts enabled.
    pub fn interrupts_were_on(&self) -> bool {
        self.rflags & RFLAGS_IF != 0
    }

    /// Instruction pointer, stack pointer and rbp of the interrupted code.
    pub fn place(&self) -> [usize; 3] {
        [self.rip, self.rsp, self.rbp].map(|word| word as usize)
    }

    /// The address of the next instruction of the interrupted code.
    pub fn instruction(&self) -> usize {
        self.rip as usize
    }

    /// Has the interrupted code go on at `ip`, on the stack at `sp`, as if a function had been
    /// called with `argument`: `saved` are the registers that it keeps for its caller, in the order
    /// RBX, RBP, R12 to R15.
    pub fn redirect(&mut self, ip: usize, sp: usize, argument: usize, saved: [usize; SAVED]) {
        self.rip = ip as u64;
        self.rsp = sp as u64;
        self.rdi = argument as u64;
        let [rbx, rbp, r12, r13, r14, r15] = saved.map(|word| word as u64);
        (self.rbx, self.rbp, self.r12) = (rbx, rbp, r12);
        (self.r13, self.r14, self.r15) = (r13, r14, r15);
        self.rflags &= !RFLAGS_DF;
    }

    /// The number of the exception or interrupt.
    pub(crate) fn number(&self) -> u64 {
        self.vector
    }

    /// What the processor says of the exception besides its number.
    pub(crate) fn detail(&self) -> u64 {
        self.error_code
    }

    /// What went wrong, for the frame of an exception that was raised just now. Interrupts are off,
    /// so CR2 is still this exception's.
    pub(crate) fn fault(&self) -> Fault {
        let kind = match self.vector {
            0 => FaultKind::Divide,
            3 => FaultKind::Breakpoint,
            6 => FaultKind::InvalidOpcode,
            12 | 13 => FaultKind::GeneralProtection,
            PAGE_FAULT => FaultKind::PageFault {
                write: self.error_code & 2 != 0,
                execute: self.error_code & 16 != 0,
            },
            other => FaultKind::Other(other as u8),
        };
        let address = match self.vector {
            PAGE_FAULT => regs::cr2(),
            _ => self.rip,
        };
        Fault { kind, address }
    }

    /// Prints all registers.
    pub(crate) fn print(&self) {
        let f = self;
        kprintln!(
            "rip {:016x} rsp {:016x} rflags {:08x} cs {:x}",
            f.rip,
            f.rsp,
            f.rflags,
            f.cs
        );
        kprintln!(
            "rax {:016x} rbx {:016x} rcx {:016x} rdx {:016x}",
            f.rax,
            f.rbx,
            f.rcx,
            f.rdx
        );
        kprintln!(
            "rsi {:016x} rdi {:016x} rbp {:016x} r8  {:016x}",
            f.rsi,
            f.rdi,
            f.rbp,
            f.r8
        );
        kprintln!(
            "r9  {:016x} r10 {:016x} r11 {:016x} r12 {:016x}",
            f.r9,
            f.r10,
            f.r11,
            f.r12
        );
        kprintln!("r13 {:016x} r14 {:016x} r15 {:016x}", f.r13, f.r14, f.r15);
    }
}

/// A function that handles one vector.
pub(crate) type Handler = fn(&mut TrapFrame);

static HANDLERS: [AtomicUsize; 256] = [const { AtomicUsize::new(0) }; 256];
static SPURIOUS: AtomicUsize = AtomicUsize::new(0);

/// Makes `handler` the one called for `vector`, on every processor.
pub(crate) fn set_handler(vector: u8, handler: Handler) {
    HANDLERS[usize::from(vector)].store(handler as usize, Ordering::Release);
}

/// How many interrupts came in on vectors without a handler.
pub fn spurious_count() -> usize {
    SPURIOUS.load(Ordering::Relaxed)
}

/// Called by the stubs with the interrupted registers.
extern "C" fn trap_dispatch(frame: &mut TrapFrame) {
    let handler = HANDLERS[(frame.vector & 0xff) as usize].load(Ordering::Acquire);
    if handler != 0 {
        // SAFETY: only `set_handler` stores non-zero values, and those are `Handler`s.
        let handler: Handler = unsafe { core::mem::transmute(handler) };
        upcalls::tell(INTERRUPT, frame.vector);
        handler(frame);
        upcalls::tell(INTERRUPT_OVER, frame.vector);
    } else if frame.vector >= 32 {
        SPURIOUS.fetch_add(1, Ordering::Relaxed);
    } else if !frame.is_user() && !untyped::resume(frame) {
        upcalls::fault(frame);
    }
    if frame.is_user() {
        ring3::save_frame(frame);
    }
}

// SAFETY: it is in the assembly below and takes a frame as `return_to` has it.
unsafe extern "C" {
    fn trap_return(frame: *const TrapFrame) -> !;
}

/// Loads all registers from `frame` and resumes ring-0 code there.
///
/// # Safety
/// The frame must describe ring-0 code that may be resumed on this processor: it was interrupted
/// and has not been resumed since, or was built to enter a function on a stack of its own. The
/// current stack is abandoned; nothing on it may be needed again. Interrupts must be off.
pub(crate) unsafe fn return_to(frame: &TrapFrame) -> ! {
    // SAFETY: the caller vouches for the frame; the assembly reads it as the stubs wrote it.
    unsafe { trap_return(frame) }
}

/// Where SYSCALL enters.
pub(crate) fn syscall_entry_address() -> u64 {
    ring3::syscall_entry as *const () as u64
}

// The stubs: push a zero where the processor pushed no error code, push the vector, go on.
// The processor aligned the stack to 16; 5 + 2 + 15 words keep it so for the call.
global_asm!(
    ".section .text.trap, \"ax\"",
    ".balign 16",
    ".global trap_stubs",
    "trap_stubs:",
    ".set vector, 0",
    ".rept 256",
    "  .balign 16",
    "  .if (vector == 8) | ((vector >= 10) & (vector <= 14)) | (vector == 17) | (vector == 21) | (vector == 29) | (vector == 30)",
    "  .else",
    "    push 0",
    "  .endif",
    "  .if vector < 128",
    "    push vector",
    "  .else",
    "    push vector - 256",
    "  .endif",
    "  .if (vector == 1) | (vector == 2) | (vector == 8) | (vector == 18)",
    "    jmp trap_paranoid",
    "  .else",
    "    jmp trap_common",
    "  .endif",
    "  .set vector, vector + 1",
    ".endr",
    ".macro push_registers",
    "  push rax; push rbx; push rcx; push rdx; push rsi; push rdi; push rbp",
    "  push r8; push r9; push r10; push r11; push r12; push r13; push r14; push r15",
    "  and qword ptr [rsp + 15*8], 0xff",
    // Flags that the interrupted code may have prepared must not be those of the handler, nor of
    // the thread that it may switch to: DF, TF, NT, and above all AC, with which SMAP is off. The
    // frame keeps them.
    "  push 2",
    "  popfq",
    ".endm",
    ".macro pop_registers",
    "  pop r15; pop r14; pop r13; pop r12; pop r11; pop r10; pop r9; pop r8",
    "  pop rbp; pop rdi; pop rsi; pop rdx; pop rcx; pop rbx; pop rax",
    "  add rsp, 16",
    ".endm",
    // Ordinary vectors: GS is the user's exactly if the code segment is.
    "trap_common:",
    "  push_registers",
    "  test byte ptr [rsp + 18*8], 3",
    "  jnz 2f",
    "  mov rdi, rsp",
    "  call {dispatch}",
    "1:",
    "  pop_registers",
    "  iretq",
    // From ring 3: kernel GS.
    "2:",
    "  swapgs",
    "  mov rdi, rsp",
    "  call {dispatch}",
    "  jmp user_trap_exit",
    // Vectors that may hit between a ring change and its swapgs: look at the base itself.
    "trap_paranoid:",
    "  push_registers",
    "  test byte ptr [rsp + 18*8], 3",
    "  jnz 2b",
    "  mov ecx, 0xc0000101",
    "  rdmsr",
    "  xor ebx, ebx",
    "  test edx, edx",
    "  js 3f",
    "  swapgs",
    "  inc ebx",
    "3:",
    "  mov rdi, rsp",
    "  call {dispatch}",
    "  test ebx, ebx",
    "  jz 1b",
    "  swapgs",
    "  jmp 1b",
    ".global trap_return",
    "trap_return:",
    "  mov rsp, rdi",
    "  jmp 1b",
    dispatch = sym trap_dispatch,
);
