//! Debug exceptions.
//!
//! Nothing in the kernel arms a breakpoint, ring 3 cannot (`mov` to a debug register is
//! privileged), and what firmware left is switched off. A breakpoint for a user program can still
//! be reported in ring 0: one that `mov ss` hits is held back until after the next instruction (SDM
//! volume 3, 6.8.3), and if that is `int3` or `syscall`, the exception comes at the first
//! instruction of that handler, with the user's GS and, after `syscall`, the user's stack pointer.
//! So it has an IST stack of its own, its stub looks at the GS base itself, and here such an
//! exception is forgotten.

use super::regs;
use super::trap::{self, TrapFrame};
use crate::arch::upcalls;

/// Vector of debug exceptions.
const DEBUG: u8 = 1;
/// No breakpoint is armed; one bit is always set.
const DISARMED: u64 = 1 << 10;

/// Disarms what firmware may have left, and installs the handler.
pub(super) fn init() {
    // SAFETY: arms nothing.
    unsafe { regs::set_dr7(DISARMED) };
    regs::clear_dr6();
    trap::set_handler(DEBUG, handle);
}

/// Which of the four breakpoints are armed, locally or globally, a bit each.
fn armed_ones(dr7: u64) -> u64 {
    (0..4).fold(0, |mask, number| {
        mask | u64::from(dr7 >> (2 * number) & 3 != 0) << number
    })
}

/// A debug exception. From ring 3 it is the program's, and all that is done here is to forget the
/// cause.
fn handle(frame: &mut TrapFrame) {
    let armed = regs::dr7();
    let met = regs::dr6();
    // None must come inside of this.
    // SAFETY: arms nothing.
    unsafe { regs::set_dr7(DISARMED) };
    regs::clear_dr6();
    if !frame.is_user() {
        if met & armed_ones(armed) == 0 {
            upcalls::fault(frame);
        }
        // Where it is the next instruction that is watched, that shall run now.
        frame.rflags |= regs::RFLAGS_RF;
        #[cfg(feature = "selftest")]
        FORGOTTEN.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    }
    // SAFETY: the value that was there.
    unsafe { regs::set_dr7(armed) };
}

/// How many debug exceptions came in ring 0 and were forgotten.
#[cfg(feature = "selftest")]
pub(crate) static FORGOTTEN: core::sync::atomic::AtomicUsize =
    core::sync::atomic::AtomicUsize::new(0);
