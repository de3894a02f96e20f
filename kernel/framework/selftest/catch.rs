//! Running a function that is expected to fault, and getting the fault instead of a stopped kernel.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::trap::TrapFrame;
use crate::fault::{self, Fault, FaultOutcome};
use crate::spin::IrqLock;

/// Stack pointer of the frame that `guarded_call` built.
static SAVED_RSP: AtomicU64 = AtomicU64::new(0);
/// The flags with which the hook ran.
static FLAGS: AtomicU64 = AtomicU64::new(0);
static CAUGHT: IrqLock<Option<Fault>> = IrqLock::new(None);

/// Calls `f`. Returns the fault that ended it, or `None` if it returned. Nothing that `f` owned at
/// the fault is dropped. One caller at a time.
pub fn catch(f: fn()) -> Option<Fault> {
    *CAUGHT.lock() = None;
    let previous = fault::replace_hook(Some(hook));
    let interrupts_were_on = crate::arch::interrupts::enabled();
    guarded_call(f);
    fault::replace_hook(previous);
    if interrupts_were_on {
        crate::arch::interrupts::enable();
    }
    *CAUGHT.lock()
}

/// The flags with which the handler of the last fault that was caught ran.
pub(super) fn flags_of_handler() -> u64 {
    FLAGS.load(Ordering::Relaxed)
}

/// Notes the fault and sends the frame to the landing below.
fn hook(frame: &mut TrapFrame, fault: Fault) -> FaultOutcome {
    *CAUGHT.lock() = Some(fault);
    FLAGS.store(crate::arch::regs::flags(), Ordering::Relaxed);
    frame.rsp = SAVED_RSP.load(Ordering::Relaxed);
    frame.rip = landing as *const () as u64;
    FaultOutcome::Handled
}

/// Saves what the ABI wants kept, notes the stack pointer and calls `f`.
#[unsafe(naked)]
#[allow(improper_ctypes_definitions)] // the assembly calls it as what it is: no arguments, no result
extern "C" fn guarded_call(f: fn()) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov [rip + {saved}], rsp",
        "call rdi",
        "jmp {landing}",
        saved = sym SAVED_RSP,
        landing = sym landing,
    )
}

/// Undoes `guarded_call` and returns to its caller.
#[unsafe(naked)]
extern "C" fn landing() {
    naked_asm!(
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}
