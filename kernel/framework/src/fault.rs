//! Faults in ring 0: the hook that lets isolation handle them, and the report when it does not.

use abi::stack::Targets;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::cpu::{place, this_cpu};
use crate::arch::trap::TrapFrame;
use crate::{kprintln, log};

pub use crate::arch::types::{Fault, FaultKind};

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

/// What the exception was: a page fault just below the thread's stack is an overflow.
fn classify(frame: &TrapFrame) -> Fault {
    let mut fault = frame.fault();
    let low = this_cpu().words.stack_low.load(Ordering::Relaxed) as u64;
    let guard = low.saturating_sub(STACK_GUARD_BYTES)..low;
    if matches!(fault.kind, FaultKind::PageFault { .. }) && guard.contains(&fault.address) {
        fault.kind = FaultKind::StackOverflow;
    }
    fault
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
        "kernel panic: cpu {cpu}: {:?} at {:#x}, vector {}, error {:#x}, depth {depth}",
        fault.kind,
        fault.address,
        frame.number(),
        frame.detail()
    );
    frame.print();
    if depth == 0 {
        print_stack(frame.place());
    }
    halt_others();
    crate::power::stop_after_panic()
}

/// Words of a stack that are looked at.
const WORDS: usize = 512;

/// Prints where a processor is and which words of its stack point into the kernel, as isolation
/// tells of the stacks of domains. No lock is needed, and nothing but the stack is read.
fn print_stack([ip, sp, bp]: [usize; 3]) {
    let cpu = this_cpu().words.number.load(Ordering::Relaxed);
    let to = Targets {
        domain: 0,
        image: 0..0,
        kernel: crate::mem::kernel_text(),
        stack: sp..sp.saturating_add(WORDS * 8),
    };
    if !to.kernel.contains(&ip) {
        kprintln!("cpu {cpu}: in the code of a domain");
        return;
    }
    let mut words = [0; WORDS];
    let start = sp.next_multiple_of(8);
    for (word, address) in words.iter_mut().zip((start..).step_by(8)) {
        if !crate::mem::is_mapped(address) {
            break;
        }
        // SAFETY: the page table maps the address, and any word may be read as a number.
        *word = unsafe { core::ptr::read_volatile(address as *const usize) };
    }
    let (ip, bp) = (to.word(ip), to.word(bp));
    kprintln!("stack cpu{cpu}: in 0 at {ip} 0 {bp}");
    to.lines(&words, start)
        .for_each(|line| kprintln!("stack cpu{cpu}: {line}"));
    kprintln!("stack cpu{cpu}: end");
}

/// How many processors have said where they were when they were halted.
static HALTED: AtomicUsize = AtomicUsize::new(0);
/// How often that is looked at before those are given up that do not answer.
const HALT_PATIENCE: u32 = 100_000_000;

/// This processor, which was at `place`, is halted for good, because another has panicked.
pub(crate) fn halts(place: [usize; 3]) {
    print_stack(place);
    HALTED.fetch_add(1, Ordering::Release);
}

/// Halts all other processors, which say where they were.
fn halt_others() {
    crate::smp::halt_others();
    let others = crate::smp::online().saturating_sub(1);
    for _ in 0..HALT_PATIENCE {
        if HALTED.load(Ordering::Acquire) >= others {
            break;
        }
        core::hint::spin_loop();
    }
}

/// A kernel panic: prints the message and stops the machine.
#[panic_handler]
fn kernel_panic(info: &PanicInfo) -> ! {
    log::panicking();
    kprintln!("kernel panic: {info}");
    print_stack(place());
    halt_others();
    crate::power::stop_after_panic()
}
