//! Tests of the registers that are loaded when a processor goes from one program to another.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::arch::global_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::Test;
use super::threads::{in_threads, token};
use super::user::{CODE, STACK, STACK_TOP, run, space_with};
use crate::check;
use crate::smp;
use crate::sync::Mutex;
use crate::user::{UserContext, UserEvent, UserThread};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("user-vectors-go-with-their-program", together),
    ("user-vectors-of-new-programs-are-as-after-a-reset", fresh),
    ("user-vectors-are-dropped-while-they-are-live", dropped),
];

// Each step adds 1 to a vector register and says in RDI how much it has, and in RSI the word that
// the base of FS points to. The second does so in the upper half of a register of AVX.
global_asm!(
    ".section .rodata.vector_programs, \"a\"",
    "vector_programs:",
    "  mov eax, 1",
    "  cvtsi2sd xmm6, eax",
    "1:",
    "  addsd xmm5, xmm6",
    "  cvttsd2si rdi, xmm5",
    "  mov rsi, fs:[0]",
    "  syscall",
    "  jmp 1b",
    ".balign 64",
    "vector_wide:",
    "  mov rax, 0x3ff0000000000000",
    "  vmovq xmm6, rax",
    "  vinsertf128 ymm6, ymm6, xmm6, 1",
    "1:",
    "  vaddpd ymm5, ymm5, ymm6",
    "  vextractf128 xmm7, ymm5, 1",
    "  vcvttsd2si rdi, xmm7",
    "  mov rsi, fs:[0]",
    "  syscall",
    "  jmp 1b",
    "vector_end:",
    ".text",
);

// SAFETY: the assembly above defines them. Only their addresses are used.
unsafe extern "C" {
    static vector_programs: u8;
    static vector_wide: u8;
    static vector_end: u8;
}

/// All programs of this file.
fn programs() -> &'static [u8] {
    let start = &raw const vector_programs;
    let length = (&raw const vector_end) as usize - start as usize;
    // SAFETY: both labels are in the constants of this image, in this order.
    unsafe { core::slice::from_raw_parts(start, length) }
}

/// A program, and how often it has run.
struct Counter {
    context: UserContext,
    steps: u64,
}

/// Where the counters begin: all, and with AVX.
fn starts() -> [usize; 2] {
    let wide = (&raw const vector_wide) as usize - (&raw const vector_programs) as usize;
    [CODE, CODE + wide]
}

/// A counter that starts at `entry`, whose FS points to word `index` of the stack.
fn counter(entry: usize, index: usize) -> Counter {
    let mut context = UserContext::new(entry, STACK_TOP);
    let mut registers = context.registers();
    registers.fs_base = (STACK + 8 * index) as u64;
    context.set_registers(&registers);
    Counter { context, steps: 0 }
}

/// Programs are run by many threads, a step here and a step there: each finds its own registers,
/// though the thread that ran it last may not have left its processor.
fn together() -> Result<(), String> {
    const COUNTERS: usize = 5;
    const STEPS: usize = 400;
    let space = space_with(programs())?;
    let words: Vec<u8> = (0..COUNTERS as u64).flat_map(u64::to_le_bytes).collect();
    let written = space.write(STACK, &words);
    check!(written.is_ok(), "no words: {written:?}");
    for entry in starts() {
        let counters: Vec<_> = (0..COUNTERS)
            .map(|index| Mutex::new(counter(entry, index)))
            .collect();
        let wrong = Mutex::new(None);
        let (without, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        in_threads(smp::online() + 1, &|thread| {
            for step in 0..STEPS {
                let index = (step * (thread + 1) + thread) % COUNTERS;
                let Counter { context, steps } = &mut *counters[index].lock(token());
                match run(context, &space) {
                    UserEvent::Syscall => {}
                    // There is no AVX.
                    UserEvent::Exception { vector: 6, .. } if entry != CODE => {
                        without.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    other => *wrong.lock(token()) = Some(format!("program {index}: {other:?}")),
                }
                *steps += 1;
                let registers = context.registers();
                if (registers.rdi, registers.rsi) != (*steps, index as u64) {
                    let (counted, word) = (registers.rdi, registers.rsi);
                    let text = format!("program {index} has {counted} of {steps}, FS {word}");
                    *wrong.lock(token()) = Some(text);
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        let wrong = wrong.lock(token()).take();
        check!(wrong.is_none(), "{wrong:?}");
        let all = without.load(Ordering::Relaxed) > 0
            || done.load(Ordering::Relaxed) == (smp::online() + 1) * STEPS;
        check!(all, "only {done:?} steps");
    }
    Ok(())
}

/// What one program leaves in the registers is not there for the next.
fn fresh() -> Result<(), String> {
    let space = space_with(programs())?;
    for _ in 0..20 {
        let Counter { mut context, .. } = counter(CODE, 0);
        let event = run(&mut context, &space);
        check!(event == UserEvent::Syscall, "{event:?}");
        let counted = context.registers().rdi;
        check!(counted == 1, "a new program has {counted}");
    }
    Ok(())
}

/// A program is dropped right after its step, with the processor's registers still its own, and
/// another one runs; also one that is taken already.
fn dropped() -> Result<(), String> {
    let space = space_with(programs())?;
    let Counter { mut context, .. } = counter(CODE, 0);
    for step in 1..100 {
        let Counter { context: other, .. } = &mut counter(CODE, 0);
        check!(run(other, &space) == UserEvent::Syscall, "the other one");
        let event = run(&mut context, &space);
        let counted = context.registers().rdi;
        check!(
            (event, counted) == (UserEvent::Syscall, step),
            "{event:?}, {counted} in step {step}"
        );
    }
    let thread = UserThread::new();
    let mut registers = context.registers();
    let mut is_refused = true;
    // An interrupt may come first; where the inner one is not refused it is the only answer.
    let mut twice = UserEvent::Interrupted;
    while twice == UserEvent::Interrupted && is_refused {
        twice = thread.run(&space, &mut registers, || {
            let mut others = context.registers();
            is_refused = thread.run(&space, &mut others, || true) == UserEvent::Refused;
            is_refused
        });
    }
    check!(twice == UserEvent::Syscall, "run in itself: {twice:?}");
    Ok(())
}
