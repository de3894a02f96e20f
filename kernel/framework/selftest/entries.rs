//! Tests of the first instructions of every entry: which flags they leave, and what happens if an
//! exception comes right there.

use alloc::string::String;
use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::threads::{alongside, sleep_ms};
use super::user::{CODE, STACK, STACK_TOP, hello_and_loop, run, space, space_with};
use super::{Test, catch};
use crate::arch::gdt::USER_DATA;
use crate::arch::trap::TrapFrame;
use crate::arch::{debug, idt, regs, trap};
use crate::check;
use crate::sync::relax;
use crate::task::PreemptOff;
use crate::user::{UserContext, UserEvent, VmSpace};
use crate::{smp, time};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("entry-clears-ac-on-faults", ac_on_faults),
    ("entry-clears-ac-on-interrupts", ac_on_interrupts),
    ("entry-ac-stays-with-its-thread", ac_stays_with_its_thread),
    ("entry-debug-exception-at-int3", debug_at_int3),
    ("entry-debug-exception-at-syscall", debug_at_syscall),
    ("entry-watched-mov-ss-and-int3", watched_int3),
    ("entry-watched-mov-ss-and-syscall", watched_syscall),
    ("entry-single-step-into-syscall", single_step),
];

fn ac_on_faults() -> Result<(), String> {
    let fault = || {
        regs::set_ac(true);
        // SAFETY: the instruction faults and does nothing else.
        unsafe { asm!("ud2") };
    };
    let caught = catch(fault);
    let kept = regs::flags() & regs::RFLAGS_AC != 0;
    regs::set_ac(false);
    check!(caught.is_some(), "no fault");
    let inside = super::catch::flags_of_handler();
    check!(inside & regs::RFLAGS_AC == 0, "the handler ran with AC");
    check!(kept, "AC was not restored");
    Ok(())
}

/// Ticks that interrupted code with AC set; and whether the handler had it, too.
static TICKS: AtomicUsize = AtomicUsize::new(0);
static INHERITED: AtomicBool = AtomicBool::new(false);

fn note_ac(frame: &mut TrapFrame) {
    if frame.rflags & regs::RFLAGS_AC != 0 {
        let inherited = regs::flags() & regs::RFLAGS_AC != 0;
        INHERITED.fetch_or(inherited, Ordering::SeqCst);
        TICKS.fetch_add(1, Ordering::SeqCst);
    }
}

/// Spins with AC set until `done`, at most a minute; whether AC was still set then.
fn spin_with_ac(done: impl Fn() -> bool) -> bool {
    let end = time::now_ns() + 60_000_000_000;
    regs::set_ac(true);
    while !done() && time::now_ns() < end {
        relax();
    }
    let kept = regs::flags() & regs::RFLAGS_AC != 0;
    regs::set_ac(false);
    kept
}

fn ac_on_interrupts() -> Result<(), String> {
    let before = TICKS.load(Ordering::SeqCst);
    let ticks = || TICKS.load(Ordering::SeqCst) - before;
    INHERITED.store(false, Ordering::SeqCst);
    let old = time::swap_tick_hook(Some(note_ac));
    let kept = spin_with_ac(|| ticks() >= 3);
    time::swap_tick_hook(old);
    check!(ticks() >= 3, "no ticks");
    check!(!INHERITED.load(Ordering::SeqCst), "a handler ran with AC");
    check!(kept, "AC was not restored");
    Ok(())
}

/// Threads with AC set are preempted over and over; those that run instead do not have it.
fn ac_stays_with_its_thread() -> Result<(), String> {
    let (stop, lost) = (AtomicBool::new(false), AtomicUsize::new(0));
    let work = |_| {
        let kept = spin_with_ac(|| stop.load(Ordering::SeqCst));
        lost.fetch_add(usize::from(!kept), Ordering::SeqCst);
    };
    let inherited = alongside(smp::online() + 1, &work, |_| {
        let mut inherited = 0;
        for _ in 0..40 {
            sleep_ms(1);
            inherited += usize::from(regs::flags() & regs::RFLAGS_AC != 0);
        }
        stop.store(true, Ordering::SeqCst);
        inherited
    })?;
    check!(
        inherited == 0,
        "{inherited} of 40 times AC was another thread's"
    );
    check!(lost.load(Ordering::SeqCst) == 0, "{lost:?} threads lost AC");
    Ok(())
}

// Programs, as in `user`.
global_asm!(
    ".section .rodata.entry_programs, \"a\"",
    ".global entry_int3, entry_syscall, entry_step, entry_end",
    "entry_int3:",
    "  mov ebx, 77",
    "  mov ss, word ptr [rdi]",
    "  int3",
    "  ud2",
    "entry_syscall:",
    "  mov ebx, 77",
    "  mov ss, word ptr [rdi]",
    "  syscall",
    "  ud2",
    "entry_step:", // TF on, then a system call
    "  pushfq",
    "  or dword ptr [rsp], 0x100",
    "  popfq",
    "  syscall",
    "  nop",
    "  nop",
    "  ud2",
    "entry_end:",
    ".text",
);

// SAFETY: the assembly above defines them, one after the other. Only their addresses are used.
unsafe extern "C" {
    static entry_int3: u8;
    static entry_syscall: u8;
    static entry_step: u8;
    static entry_end: u8;
}

/// A space with the programs, whose stack begins with the selector that they load, and a context at
/// one of them.
fn prepared(program: *const u8) -> Result<(VmSpace, UserContext), String> {
    let start = &raw const entry_int3;
    let length = (&raw const entry_end) as usize - start as usize;
    // SAFETY: both labels are in the constants of this image, in this order.
    let space = space_with(unsafe { core::slice::from_raw_parts(start, length) })?;
    let selector = space.write(STACK, &USER_DATA.to_le_bytes());
    check!(selector == Ok(()), "{selector:?}");
    let mut context = UserContext::new(CODE + (program as usize - start as usize), STACK_TOP);
    let mut registers = context.registers();
    registers.rdi = STACK as u64;
    context.set_registers(&registers);
    Ok((space, context))
}

/// An armed breakpoint on this processor; dropping it disarms it.
struct Breakpoint {
    _stay: PreemptOff,
}

/// What a breakpoint waits for, as bits of DR7 for number 0 (SDM volume 3, 17.2.4).
const EXECUTION: u64 = 0;
/// Reads and writes of two bytes.
const ACCESS: u64 = 0b0111 << 16;

impl Breakpoint {
    fn new(address: u64, condition: u64) -> Self {
        let stay = PreemptOff::new();
        // SAFETY: the address is one at whose exception the kernel copes: that is what these tests
        // are about.
        unsafe {
            regs::set_breakpoint(0, address);
            regs::set_dr7(1 << 10 | 1 << 1 | condition);
        }
        Self { _stay: stay }
    }
}

impl Drop for Breakpoint {
    fn drop(&mut self) {
        // SAFETY: arms nothing.
        unsafe { regs::set_dr7(1 << 10) };
    }
}

/// Runs a program with a breakpoint on the first instruction, and then on the one behind the
/// swapgs, of what it enters the kernel by: the exception comes in ring 0 with the user's GS, and
/// once more with the kernel's.
fn debug_at(
    program: *const u8,
    entry: u64,
    swapgs: u64,
    expected: UserEvent,
) -> Result<(), String> {
    for offset in [0, swapgs] {
        let (space, mut context) = prepared(program)?;
        let before = debug::FORGOTTEN.load(Ordering::SeqCst);
        let event = {
            let _armed = Breakpoint::new(entry + offset, EXECUTION);
            run(&mut context, &space)
        };
        let count = debug::FORGOTTEN.load(Ordering::SeqCst) - before;
        check!(count > 0, "no debug exception at {offset}");
        check!(event == expected, "{event:?} instead of {expected:?}");
        let registers = context.registers();
        check!(registers.rbx == 77, "rbx is {}", registers.rbx);
        check!(
            registers.rsp == STACK_TOP as u64,
            "rsp is {:#x}",
            registers.rsp
        );
    }
    Ok(())
}

const INT3: UserEvent = UserEvent::Exception {
    vector: 3,
    error_code: 0,
};

/// This is where the exception of a watched `mov ss` before `int3` comes on a real processor.
fn debug_at_int3() -> Result<(), String> {
    // The stub's second instruction; its swapgs comes later, and any instruction before it is like
    // another.
    debug_at(&raw const entry_int3, idt::entry_of(3), 2, INT3)
}

fn debug_at_syscall() -> Result<(), String> {
    let entry = trap::syscall_entry_address();
    debug_at(&raw const entry_syscall, entry, 3, UserEvent::Syscall)
}

/// Runs a program whose `mov ss` is watched. A processor holds the exception back until the kernel
/// is entered; QEMU reports it in ring 3, at once.
fn watched(program: *const u8, expected: UserEvent) -> Result<(), String> {
    let (space, mut context) = prepared(program)?;
    let before = debug::FORGOTTEN.load(Ordering::SeqCst);
    let mut at_once = 0;
    let event = {
        let _armed = Breakpoint::new(STACK as u64, ACCESS);
        loop {
            match run(&mut context, &space) {
                UserEvent::Exception { vector: 1, .. } if at_once < 3 => at_once += 1,
                event => break event,
            }
        }
    };
    let held_back = debug::FORGOTTEN.load(Ordering::SeqCst) - before;
    check!(event == expected, "{event:?} instead of {expected:?}");
    check!(
        at_once + held_back == 1,
        "{at_once} in ring 3, {held_back} in ring 0"
    );
    check!(context.registers().rbx == 77, "registers were lost");
    Ok(())
}

fn watched_int3() -> Result<(), String> {
    watched(&raw const entry_int3, INT3)
}

fn watched_syscall() -> Result<(), String> {
    watched(&raw const entry_syscall, UserEvent::Syscall)
}

/// A program that single-steps itself into a system call is stepped in ring 3 alone.
fn single_step() -> Result<(), String> {
    let (space, mut context) = prepared(&raw const entry_step)?;
    let event = run(&mut context, &space);
    check!(event == UserEvent::Syscall, "{event:?}");
    let after = context.registers();
    check!(after.rflags & 0x100 != 0, "TF was lost");
    let event = run(&mut context, &space);
    check!(
        matches!(event, UserEvent::Exception { vector: 1, .. }),
        "{event:?}"
    );
    check!(context.registers().rip == after.rip + 1, "not one step");
    let (other, mut hello) = (self::space()?, hello_and_loop().0);
    let event = run(&mut hello, &other);
    check!(
        event == UserEvent::Syscall,
        "another program is stepped: {event:?}"
    );
    Ok(())
}
