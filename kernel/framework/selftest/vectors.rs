//! Tests of the registers that are loaded when a processor goes from one program to another.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::arch::global_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::Test;
use super::threads::{in_threads, token};
use super::user::{CODE, STACK, STACK_TOP, run, space_with};
use crate::arch::user::Registers as UserRegisters;
use crate::check;
use crate::smp;
use crate::sync::Mutex;
use crate::user::{UserContext, UserEvent, UserThread, VmSpace};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("user-vectors-go-with-their-program", together),
    ("user-vectors-of-new-programs-are-as-after-a-reset", fresh),
    ("user-vectors-are-dropped-while-they-are-live", dropped),
    ("user-vectors-can-be-read-and-set", read_and_set),
    ("user-vectors-that-no-processor-loads-are-refused", refused),
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

/// Lets a program make a step; how often it says that it has counted.
fn step(
    thread: &UserThread,
    space: &VmSpace,
    registers: &mut UserRegisters,
) -> Result<u64, String> {
    loop {
        match thread.run(space, registers, || true) {
            UserEvent::Interrupted => {}
            UserEvent::Syscall => return Ok(registers.rdi),
            other => return Err(format!("{other:?}")),
        }
    }
}

/// A thread that has counted to three, with its registers and what it has in vector registers.
fn counted(space: &VmSpace) -> Result<(UserThread, UserRegisters, Vec<u8>), String> {
    let (thread, mut registers) = (UserThread::new(), counter(CODE, 0).context.registers());
    for right in 1..=3 {
        let counted = step(&thread, space, &mut registers)?;
        check!(counted == right, "{counted} in place of {right}");
    }
    let length = thread.vector(&mut []);
    check!(length >= 512, "a state of {length} bytes");
    let mut state = vec![0; length];
    let told = thread.vector(&mut state);
    check!(told == length, "{told} bytes, {length} before");
    Ok((thread, registers, state))
}

/// What a thread has counted, another one goes on from, also if it has run before.
fn read_and_set() -> Result<(), String> {
    let space = space_with(programs())?;
    let (first, mut registers, state) = counted(&space)?;
    let (other, mut own) = (UserThread::new(), registers);
    step(&other, &space, &mut own)?;
    let mut copy = registers;
    check!(other.set_vector(&state), "the state is refused");
    for (thread, registers) in [(&other, &mut copy), (&first, &mut registers)] {
        let counted = step(thread, &space, registers)?;
        check!(counted == 4, "{counted} in place of 4");
    }
    Ok(())
}

/// Each bit that would have the processor refuse to load the state, or that names a component which
/// it lacks: the kernel meets no exception, and what is refused changes nothing.
fn refused() -> Result<(), String> {
    let space = space_with(programs())?;
    let (thread, mut registers, state) = counted(&space)?;
    let mut steps = 3;
    let mut goes_on = |state: &[u8], is_taken: bool, what: &str| -> Result<(), String> {
        let taken = thread.set_vector(state);
        check!(taken == is_taken, "{what}: {taken}");
        steps += 1;
        let counted = step(&thread, &space, &mut registers)?;
        check!(counted == steps, "{what}: {counted} in place of {steps}");
        Ok(())
    };
    goes_on(&state[..state.len() - 1], false, "a short state")?;
    for bit in 16..32 {
        let mut state = state.clone();
        state[24 + bit / 8] |= 1 << (bit % 8);
        goes_on(&state, false, "a bit of MXCSR")?;
    }
    if state.len() < 576 {
        return Ok(());
    }
    for bit in (520 * 8)..(576 * 8) {
        let mut state = state.clone();
        state[bit / 8] |= 1 << (bit % 8);
        goes_on(&state, false, "a bit of the header")?;
    }
    let mut all = vec![0; state.len()];
    thread.vector(&mut all);
    all[512..520].fill(0xff);
    // What XCR0 lacks is left out; the rest is zeros, or as it was.
    goes_on(&all, true, "all components")
}
