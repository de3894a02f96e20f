//! Faults in ring 0: the hook that lets isolation handle them, and the report when it does not.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::cpu::this_cpu;
use crate::arch::regs;
use crate::arch::trap::TrapFrame;
use crate::{kprintln, log};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access that the page table does not permit; `address` is the one accessed.
    PageFault {
        /// The access was a write.
        write: bool,
        /// The access was an instruction fetch.
        execute: bool,
    },
    /// A page fault in the guard page below the running thread's stack.
    StackOverflow,
    /// Division by zero or overflow of a quotient.
    Divide,
    /// An undefined instruction (`ud2` among them).
    InvalidOpcode,
    /// A general-protection or stack-segment fault.
    GeneralProtection,
    /// A breakpoint instruction.
    Breakpoint,
    /// Any other exception, by vector.
    Other(u8),
}

/// A fault: its kind and, for the page-fault kinds, the address; for the others the instruction's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Where.
    pub address: u64,
}

/// What the hook did about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOutcome {
    /// The frame was rewritten; resume there.
    Handled,
    /// A kernel bug: report and stop.
    Unhandled,
}

/// A fault hook. It runs in the faulting context with interrupts off on the fault stack.
pub type FaultHook = fn(&mut TrapFrame, Fault) -> FaultOutcome;

static HOOK: AtomicUsize = AtomicUsize::new(0);

/// Installs the fault hook.
///
/// # Safety
/// Where the hook says that it handled a fault, the frame must be one to resume: code that can cope
/// with what the faulting code left undone.
pub unsafe fn set_hook(hook: FaultHook) {
    HOOK.store(hook as usize, Ordering::Release);
}

/// Installs another fault hook, or none, and returns the previous one. For tests.
#[cfg(feature = "selftest")]
pub(crate) fn replace_hook(hook: Option<FaultHook>) -> Option<FaultHook> {
    let previous = HOOK.swap(hook.map_or(0, |hook| hook as usize), Ordering::AcqRel);
    // SAFETY: non-zero values of `HOOK` are `FaultHook`s, and an `Option` of a function pointer
    // uses zero for `None`.
    unsafe { core::mem::transmute(previous) }
}

/// How many bytes below a stack count as its guard.
const STACK_GUARD_BYTES: u64 = 4096;

/// Works out the kind of a ring-0 exception.
fn classify(frame: &TrapFrame) -> Fault {
    let kind = match frame.vector {
        0 => FaultKind::Divide,
        3 => FaultKind::Breakpoint,
        6 => FaultKind::InvalidOpcode,
        12 | 13 => FaultKind::GeneralProtection,
        14 => return classify_page_fault(frame),
        other => FaultKind::Other(other as u8),
    };
    Fault {
        kind,
        address: frame.rip,
    }
}

/// A page fault just below the thread's stack is an overflow.
fn classify_page_fault(frame: &TrapFrame) -> Fault {
    let address = regs::cr2();
    let low = this_cpu().words.stack_low.load(Ordering::Relaxed) as u64;
    let kind = if address < low && address >= low.saturating_sub(STACK_GUARD_BYTES) {
        FaultKind::StackOverflow
    } else {
        FaultKind::PageFault {
            write: frame.error_code & 2 != 0,
            execute: frame.error_code & 16 != 0,
        }
    };
    Fault { kind, address }
}

/// Entry for exceptions in ring 0.
pub(crate) fn handle(frame: &mut TrapFrame) {
    let fault = classify(frame);
    let cpu = this_cpu();
    let depth = cpu.fault_depth.fetch_add(1, Ordering::Relaxed);
    let hook = HOOK.load(Ordering::Acquire);
    if hook != 0 && depth == 0 {
        // SAFETY: `set_hook` alone stores non-zero values, and those are `FaultHook`s.
        let hook: FaultHook = unsafe { core::mem::transmute(hook) };
        if hook(frame, fault) == FaultOutcome::Handled {
            cpu.fault_depth.store(0, Ordering::Relaxed);
            return;
        }
    }
    die(frame, fault, depth);
}

/// Reports a fault that nobody handles and stops the machine.
fn die(frame: &TrapFrame, fault: Fault, depth: usize) -> ! {
    log::panicking();
    let cpu = this_cpu().words.number.load(Ordering::Relaxed);
    kprintln!(
        "PANIC: cpu {cpu}: {:?} at {:#x}, vector {}, error {:#x}, depth {depth}",
        fault.kind,
        fault.address,
        frame.vector,
        frame.error_code
    );
    print_registers(frame);
    if depth == 0 {
        print_backtrace(frame.rsp);
    }
    crate::power::stop_after_panic()
}

/// Prints all registers of a frame.
fn print_registers(f: &TrapFrame) {
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

/// Prints the words on the stack at `rsp` that look like return addresses into the kernel. There
/// are no frame pointers, so some of them may be leftovers.
fn print_backtrace(rsp: u64) {
    let text = crate::mem::kernel_text();
    let mut printed = 0;
    for slot in 0..512 {
        let address = (rsp & !7) + slot * 8;
        if printed == 24 || !crate::mem::is_mapped(address as usize) {
            break;
        }
        // SAFETY: the page table maps the address, and any word may be read as a number.
        let word = unsafe { core::ptr::read_volatile(address as *const u64) };
        if text.contains(&(word as usize)) {
            kprintln!("  at {word:#x}");
            printed += 1;
        }
    }
}

/// A kernel panic: prints the message and stops the machine.
#[panic_handler]
fn kernel_panic(info: &PanicInfo) -> ! {
    log::panicking();
    kprintln!("PANIC: {info}");
    let rsp: u64;
    // SAFETY: reads a register only.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) rsp, options(nomem, nostack)) };
    print_backtrace(rsp);
    crate::power::stop_after_panic()
}
