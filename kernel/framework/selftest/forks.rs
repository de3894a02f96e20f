//! Tests of address spaces that change on one processor while programs write on others.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::mappings::{Dice, set_word, word};
use super::threads::{alongside, eventually, in_threads, sleep_ms};
use super::user::{CODE, STACK_TOP, space_with};
use super::{Test, gives_back};
use crate::mem::PAGE_SIZE;
use crate::mem::frames::{FrameKind, Frames};
use crate::sync::relax;
use crate::user::{Sharing, UserContext, UserEvent, UserMode, UserProt, VmSpace};
use crate::{check, smp};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("space-forked-against-writes", fork_against_writes),
    ("space-changes-against-loading", changes_against_loading),
    ("space-two-ranges-change-at-once", two_ranges),
    ("space-frames-outlive-dropped-spaces", dropped_at_random),
];

// Position-independent, as they are copied.
global_asm!(
    ".section .rodata.fork_programs, \"a\"",
    // Counts in the first and last word of the page at RDI, looks whether both are there, and then
    // tells in the word at RSI how far it is.
    "fork_count:",
    "1: inc rax",
    "  mov [rdi], rax",
    "  mov [rdi + 4088], rax",
    "  cmp [rdi], rax",
    "  jne 2f",
    "  cmp [rdi + 4088], rax",
    "  jne 2f",
    "  mov [rsi], rax",
    "  jmp 1b",
    "2: ud2",
    // Counts in the word at RDI, once for each system call.
    "fork_step:",
    "  inc qword ptr [rdi]",
    "  syscall",
    "  jmp fork_step",
    "fork_end:",
    ".text",
);

// SAFETY: the assembly above defines them, one after the other. Only their addresses are used.
unsafe extern "C" {
    static fork_count: u8;
    static fork_step: u8;
    static fork_end: u8;
}

const DATA: usize = 0x5000_0000;
const TOLD: usize = 0x6000_0000;

/// A space with the programs.
fn programs() -> Result<VmSpace, String> {
    let start = &raw const fork_count;
    let length = (&raw const fork_end) as usize - start as usize;
    // SAFETY: both labels are in the constants of this image, in this order.
    space_with(unsafe { core::slice::from_raw_parts(start, length) })
}

/// A context at one of the programs.
fn context(program: *const u8, rdi: usize, rsi: usize) -> UserContext {
    let offset = program as usize - (&raw const fork_count) as usize;
    let mut context = UserContext::new(CODE + offset, STACK_TOP);
    let mut registers = context.registers();
    (registers.rax, registers.rdi, registers.rsi) = (0, rdi as u64, rsi as u64);
    context.set_registers(&registers);
    context
}

/// What threads that run programs have seen.
#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    copied: AtomicUsize,
    wrong: AtomicUsize,
}

/// Runs the counting program number `index`, which copies at its faults, until it shall stop.
fn count(space: &VmSpace, index: usize, seen: &Seen) {
    let mut program = context(
        &raw const fork_count,
        DATA + index * PAGE_SIZE,
        TOLD + index * 8,
    );
    while !seen.stop.load(Ordering::SeqCst) {
        let good = match UserMode::new(&mut program, space).run() {
            UserEvent::Interrupted => true,
            UserEvent::PageFault { address, write, .. } => {
                seen.copied.fetch_add(1, Ordering::SeqCst);
                write && space.resolve_write(address as usize).is_ok()
            }
            _ => false,
        };
        if !good {
            seen.wrong.fetch_add(1, Ordering::SeqCst);
            return;
        }
    }
}

/// The first and the last word of a page, read one after the other, the last first.
fn both_words(space: &VmSpace, page: usize) -> Result<(u64, u64), String> {
    let last = word(space, page + PAGE_SIZE - 8).map_err(|why| format!("{why:?}"))?;
    let first = word(space, page).map_err(|why| format!("{why:?}"))?;
    Ok((first, last))
}

/// Programs count on all processors while their pages are forked again and again: a child sees all
/// that was written before the fork and nothing of what is written afterwards, and the parent loses
/// nothing, nor sees what the child writes.
fn fork_against_writes() -> Result<(), String> {
    gives_back(|| {
        let (space, seen) = (programs()?, Seen::default());
        let count_of = smp::online().max(2);
        for (at, pages) in [(DATA, count_of), (TOLD, 1)] {
            let mapped = space.map_zero(at, pages, UserProt::READ_WRITE);
            check!(mapped == Ok(pages), "{mapped:?}");
        }
        let result = alongside(count_of, &|index| count(&space, index, &seen), |_| {
            let result = fork_rounds(&space, count_of, &seen);
            seen.stop.store(true, Ordering::SeqCst);
            result
        })?;
        result?;
        let (copied, wrong) = (&seen.copied, &seen.wrong);
        check!(
            wrong.load(Ordering::SeqCst) == 0,
            "{wrong:?} programs went wrong"
        );
        check!(
            copied.load(Ordering::SeqCst) > 100,
            "only {copied:?} faults"
        );
        Ok(())
    })
}

fn fork_rounds(space: &VmSpace, programs: usize, seen: &Seen) -> Result<(), String> {
    let told = |index| word(space, TOLD + index * 8).map_err(|why| format!("{why:?}"));
    let wrong = || seen.wrong.load(Ordering::SeqCst) > 0;
    // More than two are mostly emulated by fewer, and wait for each other at each flush.
    for round in 0..if programs > 2 { 50 } else { 200 } {
        let mut before = Vec::new();
        for index in 0..programs {
            before.push(told(index)?);
        }
        let child = VmSpace::new().map_err(|_| "no memory")?;
        let forked = space.fork(DATA, programs, &child);
        check!(forked == Ok(programs), "{forked:?}");
        let mut at_fork = Vec::new();
        for index in 0..programs {
            at_fork.push(both_words(&child, DATA + index * PAGE_SIZE)?);
        }
        // Each program gets on, so each has written to what was forked.
        let on = |index: usize| told(index).is_ok_and(|now| now > before[index] + 1);
        check!(
            eventually(|| wrong() || (0..programs).all(on)),
            "no program gets on"
        );
        check!(!wrong(), "a program went wrong in round {round}");
        for index in 0..programs {
            let page = DATA + index * PAGE_SIZE;
            let (first, last) = at_fork[index];
            check!(
                both_words(&child, page)? == (first, last),
                "a write after the fork is seen"
            );
            check!(last >= before[index], "a write before the fork is lost");
            check!(
                first - last <= 1,
                "half a page is of another moment: {first}, {last}"
            );
            if round % 2 == 0 {
                set_word(&child, page, u64::MAX).map_err(|why| format!("{why:?}"))?;
            }
        }
    }
    Ok(())
}

/// Runs one step of the other program in each of the spaces in turn, so that each is loaded and
/// left all the time.
fn steps(spaces: &[VmSpace; 2], index: usize, seen: &Seen) {
    let new = || context(&raw const fork_step, DATA + index * 8, 0);
    let mut contexts = [new(), new()];
    while !seen.stop.load(Ordering::SeqCst) {
        for (context, space) in contexts.iter_mut().zip(spaces) {
            match UserMode::new(context, space).run() {
                UserEvent::Syscall => seen.copied.fetch_add(1, Ordering::SeqCst),
                UserEvent::Interrupted | UserEvent::PageFault { .. } => 0,
                _ => seen.wrong.fetch_add(1, Ordering::SeqCst),
            };
        }
    }
}

/// While programs run and their spaces come and go on each processor, one takes away the right to
/// write, or the page: from then on nobody writes to the frame.
fn changes_against_loading() -> Result<(), String> {
    let frame = Frames::alloc_zeroed(1, FrameKind::Untyped).ok_or("no memory")?;
    let share = || frame.share().map_err(|why| format!("{why:?}"));
    let (spaces, seen) = ([programs()?, programs()?], Seen::default());
    let viewer = VmSpace::new().map_err(|_| "no memory")?;
    let seen_by_kernel = viewer.map(DATA, share()?, UserProt::READ, Sharing::Plain);
    check!(seen_by_kernel == Ok(()), "{seen_by_kernel:?}");
    let result = alongside(smp::online(), &|index| steps(&spaces, index, &seen), |_| {
        let result = (0..if smp::online() > 2 { 150 } else { 600 }).try_for_each(|round| {
            let space = &spaces[round % 2];
            let mapped = space.map(DATA, share()?, UserProt::READ_WRITE, Sharing::Plain);
            check!(mapped == Ok(()), "{mapped:?}");
            let before = all_words(&viewer)?;
            let written = || all_words(&viewer).is_ok_and(|now| now != before);
            check!(eventually(written), "nobody writes, so this tests nothing");
            let protected = match round % 3 {
                0 => space.protect(DATA, 1, UserProt::READ),
                1 => space.protect(DATA, 1, UserProt::NONE),
                _ => space.unmap(DATA, 1),
            };
            let now = all_words(&viewer)?;
            (0..2000).for_each(|_| relax());
            if round % 16 == 0 {
                sleep_ms(1);
            }
            let later = all_words(&viewer)?;
            check!(protected == Ok(1), "{protected:?}");
            check!(now == later, "round {round}: written after the change");
            let unmapped = space.unmap(DATA, 1);
            check!(unmapped == Ok(1), "{unmapped:?}");
            Ok(())
        });
        seen.stop.store(true, Ordering::SeqCst);
        result
    })?;
    result?;
    check!(
        seen.wrong.load(Ordering::SeqCst) == 0,
        "a program went wrong"
    );
    check!(frame.owners() == 2, "{} owners", frame.owners());
    Ok(())
}

/// The words that the programs count in.
fn all_words(viewer: &VmSpace) -> Result<[u8; 64], String> {
    let mut bytes = [0; 64];
    let read = viewer.read(DATA, &mut bytes);
    read.map_err(|why| format!("{why:?}"))?;
    Ok(bytes)
}

/// Threads on all processors change ranges of one space, each its own, with tables of their own and
/// in one table: each finds what it has done, and memory comes back.
fn two_ranges() -> Result<(), String> {
    gives_back(|| {
        let (space, wrong) = (programs()?, AtomicUsize::new(0));
        let loop_of = |index: usize| -> Result<(), crate::user::VmError> {
            let child = VmSpace::new().map_err(|_| crate::user::VmError::NoMemory)?;
            // Two threads share a table, and each has one for itself.
            for base in [DATA + index * 64 * PAGE_SIZE, TOLD + (index << 21)] {
                space.map_zero(base, 40, UserProt::READ_WRITE)?;
                set_word(&space, base + 4096, index as u64)?;
                space.fork(base, 40, &child)?;
                set_word(&child, base + 4096, 1000)?;
                space.protect(base, 40, UserProt::READ)?;
                let kept = word(&space, base + 4096)? == index as u64;
                wrong.fetch_add(usize::from(!kept), Ordering::SeqCst);
                space.unmap(base, 40)?;
                let gone = space.query(base).is_none() && word(&child, base + 4096)? == 1000;
                wrong.fetch_add(usize::from(!gone), Ordering::SeqCst);
            }
            Ok(())
        };
        in_threads(smp::online() + 1, &|index| {
            for _ in 0..60 {
                if loop_of(index).is_err() {
                    wrong.fetch_add(1, Ordering::SeqCst);
                }
            }
        })?;
        check!(
            wrong.load(Ordering::SeqCst) == 0,
            "{wrong:?} things went wrong"
        );
        Ok(())
    })
}

/// Frames that the tests keep, and rounds.
const FRAMES: usize = 32;
const ROUNDS: usize = 10_000;

/// Frames with a canary each are mapped, forked, copied and unmapped in spaces that are dropped at
/// random, on all processors: no frame is lost, none is freed early.
fn dropped_at_random() -> Result<(), String> {
    let viewer = VmSpace::new().map_err(|_| "no memory")?;
    let mut frames = Vec::new();
    for index in 0..FRAMES {
        let frame = Frames::alloc_zeroed(1, FrameKind::Untyped).ok_or("no memory")?;
        let share = frame.share().map_err(|why| format!("{why:?}"))?;
        let at = DATA + index * PAGE_SIZE;
        let mapped = viewer.map(at, share, UserProt::READ_WRITE, Sharing::Plain);
        check!(mapped == Ok(()), "{mapped:?}");
        set_word(&viewer, at, canary(index)).map_err(|why| format!("{why:?}"))?;
        frames.push(frame);
    }
    gives_back(|| {
        let (rounds, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
        in_threads(smp::online() + 1, &|thread| {
            let mut dice = Dice(0xbeef + thread as u64);
            let mut kept = Vec::new();
            while rounds.fetch_add(1, Ordering::SeqCst) < ROUNDS {
                if life(&frames, &mut kept, &mut dice).is_none() {
                    wrong.fetch_add(1, Ordering::SeqCst);
                }
            }
        })?;
        check!(
            wrong.load(Ordering::SeqCst) == 0,
            "{wrong:?} rounds went wrong"
        );
        Ok(())
    })?;
    for (index, frame) in frames.iter().enumerate() {
        let (owners, found) = (frame.owners(), word(&viewer, DATA + index * PAGE_SIZE));
        check!(owners == 2, "frame {index} has {owners} owners");
        check!(found == Ok(canary(index)), "frame {index} has {found:?}");
    }
    Ok(())
}

fn canary(index: usize) -> u64 {
    0xc0ffee_0000 + index as u64
}

/// One space with some of the frames, and children of those that live; some are dropped. `None` if
/// something was not as it ought to be.
fn life(frames: &[Frames], kept: &mut Vec<VmSpace>, dice: &mut Dice) -> Option<()> {
    let space = VmSpace::new().ok()?;
    let (from, count) = (dice.roll(FRAMES), 1 + dice.roll(4));
    for index in from..(from + count).min(FRAMES) {
        let share = frames[index].share().ok()?;
        let at = DATA + index * PAGE_SIZE;
        let mapped = space.map(at, share, UserProt::READ_WRITE, Sharing::CopyOnWrite);
        mapped.ok()?;
    }
    if let Some(parent) = kept.get(dice.roll(4)) {
        // Pages that both have stop the fork, which is as good.
        let _ = parent.fork(DATA, FRAMES, &space);
    }
    for index in 0..FRAMES {
        let at = DATA + index * PAGE_SIZE;
        if space.query(at).is_none() {
            continue;
        }
        (word(&space, at) == Ok(canary(index))).then_some(())?;
        if dice.roll(4) == 0 {
            // A copy, which has the canary as well.
            set_word(&space, at + 8, 1).ok()?;
            (word(&space, at) == Ok(canary(index))).then_some(())?;
        }
    }
    if dice.roll(3) == 0 {
        space.unmap(DATA + from * PAGE_SIZE, 2).ok()?;
    }
    if kept.len() < 4 {
        kept.push(space);
    } else {
        kept[dice.roll(4)] = space;
    }
    Some(())
}
