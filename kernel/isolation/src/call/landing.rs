//! How a thread gets out of a callee other than by a return: through the error stub, with the
//! registers that the trampoline saved in the record.

use super::{Method, Record};
use crate::platform::Landing;
use core::arch::asm;
use core::mem::offset_of;

impl Record {
    /// The registers with which the thread leaves the callee through the error stub.
    pub fn landing(&self) -> Landing {
        // SAFETY: the trampoline wrote the method before the callee could run.
        let ip = unsafe { (*self.method).stub } as usize;
        let saved = [self.rbx, self.rbp, self.r12, self.r13, self.r14, self.r15];
        Landing {
            ip,
            sp: self.sp,
            rdi: self.rdi,
            saved,
        }
    }
}

/// Leaves the callee of `record`, the top record, through its error stub.
///
/// # Safety
/// The thread is inside the callee, or in kernel code on its behalf that owns nothing.
pub unsafe fn resume(record: *mut Record) -> ! {
    // SAFETY: the trampoline filled the record; the frames above `sp` are the callee's and dead,
    // the one at `sp` is the proxy's and stands. Clearing the direction flag is what every function
    // may expect.
    unsafe {
        asm!(
            "cld",
            "mov rbx, [rax + {rbx}]", "mov rbp, [rax + {rbp}]", "mov r12, [rax + {r12}]",
            "mov r13, [rax + {r13}]", "mov r14, [rax + {r14}]", "mov r15, [rax + {r15}]",
            "mov rdi, [rax + {rdi}]", "mov rsp, [rax + {sp}]", "mov rax, [rax + {method}]",
            "jmp [rax + {stub}]",
            in("rax") record,
            rbx = const offset_of!(Record, rbx), rbp = const offset_of!(Record, rbp),
            r12 = const offset_of!(Record, r12), r13 = const offset_of!(Record, r13),
            r14 = const offset_of!(Record, r14), r15 = const offset_of!(Record, r15),
            rdi = const offset_of!(Record, rdi), sp = const offset_of!(Record, sp),
            method = const offset_of!(Record, method), stub = const offset_of!(Method, stub),
            options(noreturn),
        )
    }
}

/// Goes on in `then`, with all of the stack below the proxy's frame: what the callee of `record`,
/// the top record, had there is lost.
///
/// # Safety
/// As for [`resume`].
pub(crate) unsafe fn start_over(record: *mut Record, then: extern "C" fn() -> !) -> ! {
    // SAFETY: as in `resume`: the frames below `sp` are dead, and what stands is not touched. A
    // call from an aligned stack is what `then` may expect.
    unsafe {
        asm!(
            "mov rsp, {sp}", "and rsp, -16", "call {then}", "ud2",
            sp = in(reg) (*record).sp, then = in(reg) then,
            options(noreturn),
        )
    }
}

#[doc(hidden)]
pub mod offsets {
    //! Offsets in [`Record`](super::Record) for the trampolines of [`proxy!`](crate::proxy).
    use super::{Record, offset_of};
    pub const SP: usize = offset_of!(Record, sp);
    pub const RBX: usize = offset_of!(Record, rbx);
    pub const RBP: usize = offset_of!(Record, rbp);
    pub const R12: usize = offset_of!(Record, r12);
    pub const R13: usize = offset_of!(Record, r13);
    pub const R14: usize = offset_of!(Record, r14);
    pub const R15: usize = offset_of!(Record, r15);
    pub const RDI: usize = offset_of!(Record, rdi);
    pub const METHOD: usize = offset_of!(Record, method);
}
