//! Calls that the kernel itself makes into a domain: entry points, threads, drops.

use super::{Entered, Left, Method, Record, enter, leave, offsets, outcome, stack_is_low};
use crate::domain::ControlBlock;
use crate::domain::words::KERNEL;
use abi::RpcError;
use core::arch::naked_asm;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

/// What a call that the kernel itself makes through [`guarded`] is called.
pub const fn internal(name: &'static str, budget: u32) -> Method {
    Method::new(guarded_stub as *const (), KERNEL, name, budget, true)
}

/// What was passed to [`guarded_as`] with the mark that `record` has.
///
/// # Safety
/// The record is linked, and has a mark.
pub(crate) unsafe fn data_of(record: *const Record) -> *mut u8 {
    // SAFETY: by the caller's duty.
    unsafe { (*record).rdi as *mut u8 }
}

/// Calls `function(data)` inside the domain `block`, for the kernel itself: entry points, threads,
/// drops.
///
/// # Errors
/// [`RpcError::DomainCrashed`] if the domain was dead or died in the call, [`RpcError::StackLow`].
///
/// # Safety
/// `function` and `data` belong together and to that domain. If the domain dies in the call, the
/// caller still owns whatever `data` points to.
pub unsafe fn guarded(
    block: &ControlBlock,
    method: &'static Method,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) -> Result<(), RpcError> {
    // SAFETY: by the caller's duty.
    unsafe { guarded_as(0, block, method, function, data) }
}

/// As [`guarded`], with `mark` in the record's state while the call is under way.
///
/// # Errors
/// As [`guarded`].
///
/// # Safety
/// As for [`guarded`].
pub(crate) unsafe fn guarded_as(
    mark: u32,
    block: &ControlBlock,
    method: &'static Method,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) -> Result<(), RpcError> {
    let mut record = MaybeUninit::<Record>::uninit();
    let record = record.as_mut_ptr();
    // SAFETY: the record is in this frame. The kernel calls this, so that a dead caller is found
    // out later, when the kernel returns to it.
    unsafe {
        if enter(record, block) == Entered::AskAdmit {
            if stack_is_low(record) {
                return Err(RpcError::StackLow);
            }
            // A crash that was asked for is for the next call of a domain.
            if block.alive.load(Ordering::Relaxed) == crate::domain::DEAD {
                // Nobody was called, so nothing has ended.
                let _ = leave(record);
                return Err(RpcError::DomainCrashed);
            }
        }
        if mark != 0 {
            // What a mark says of the data holds from here on. One instruction, as in `admit`.
            (*record).rdi = data as usize;
            AtomicU32::from_ptr(&raw mut (*record).state).fetch_or(mark, Ordering::Relaxed);
        }
        let crashed = guarded_trampoline(data, function, method);
        if leave(record) == Left::AskOutcome {
            // The kernel goes on in any case, and what it called gives nothing back.
            let _ = outcome(record);
        }
        if crashed == 0 {
            Ok(())
        } else {
            Err(RpcError::DomainCrashed)
        }
    }
}

/// Fills the top record and calls `function(data)`; 0. Through the stub it returns 1.
///
/// # Safety
/// The top record was linked by [`enter`] for this call, and that of [`guarded`] holds.
#[unsafe(naked)]
unsafe extern "C" fn guarded_trampoline(
    data: *mut u8,
    function: unsafe extern "C" fn(*mut u8),
    method: *const Method,
) -> u64 {
    naked_asm!(
        "mov rax, gs:[{top}]",
        "mov [rax + {sp}], rsp", "mov [rax + {rbx}], rbx", "mov [rax + {rbp}], rbp",
        "mov [rax + {r12}], r12", "mov [rax + {r13}], r13", "mov [rax + {r14}], r14",
        "mov [rax + {r15}], r15", "mov [rax + {rdi}], rdi", "mov [rax + {method}], rdx",
        "sub rsp, 8",
        "call rsi",
        "add rsp, 8",
        "xor eax, eax",
        "ret",
        top = const abi::words::TOP, sp = const offsets::SP, rbx = const offsets::RBX, rbp = const offsets::RBP,
        r12 = const offsets::R12, r13 = const offsets::R13, r14 = const offsets::R14,
        r15 = const offsets::R15, rdi = const offsets::RDI, method = const offsets::METHOD,
    )
}

/// The error stub of [`guarded_trampoline`].
///
/// # Safety
/// Only [`resume`] and landings lead here, with the registers that the trampoline saved.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn guarded_stub() {
    naked_asm!("mov eax, 1", "ret")
}
