//! The clock page: agrees with the clock of domains, and nobody changes it.

use crate::lab::{Lab, say};
use crate::objects::{ALL, bytes};
use crate::ring3::Program;
use crate::spaces::{self, AT, PAGE, READ, WRITE, peek, poke};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use clockpage::{Clock, WORDS};
use domain_rt::time;
use domain_rt::user::{UserEvent, UserRegisters};
use interfaces::{Handle, MemoryError, RVec, SpaceError, VmoView};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("clock-page-agrees-with-the-clock", agrees),
    ("clock-page-cannot-be-changed", unchanged),
    ("clock-page-in-many-mappings", many),
];

/// The page; none where there are no address spaces.
fn page(lab: &Lab) -> Result<Option<Handle<dyn VmoView>>, String> {
    let spaces = lab.spaces.as_ref();
    spaces.map(|it| it.clock_page().map_err(say)).transpose()
}

/// A word of the page, by the view.
fn word(view: &Handle<dyn VmoView>, index: usize) -> Result<u64, MemoryError> {
    let buffer = RVec::filled(0, 8).map_err(MemoryError::Rpc)?;
    let (buffer, _) = view.read(8 * index as u64, buffer)?;
    Ok(u64::from_le_bytes(
        buffer[..].try_into().unwrap_or_default(),
    ))
}

/// What the page says, by the view.
fn clock(view: &Handle<dyn VmoView>) -> Result<Clock, String> {
    let mut failed = None;
    let read = clockpage::read(|index| {
        word(view, index).unwrap_or_else(|error| {
            failed = Some(error);
            1
        })
    });
    failed.map_or(read.map_err(say), |error| Err(say(error)))
}

/// A program reads the page and the counter; what they say lies between two readings of this
/// domain's clock.
fn agrees(lab: &Lab) -> Verdict {
    // mov r8, [rdi]; mov r9, [rdi + 8]; and so on with r10, r12, r13, r14, r15;
    // rdtsc; shl rdx, 32; or rax, rdx; syscall
    let code = [
        0x4c, 0x8b, 0x07, 0x4c, 0x8b, 0x4f, 0x08, 0x4c, 0x8b, 0x57, 0x10, 0x4c, 0x8b, 0x67, 0x18,
        0x4c, 0x8b, 0x6f, 0x20, 0x4c, 0x8b, 0x77, 0x28, 0x4c, 0x8b, 0x7f, 0x30, 0x0f, 0x31, 0x48,
        0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0x0f, 0x05,
    ];
    let (Some(view), Some(mut program)) = (page(lab)?, Program::new(lab, &code)?) else {
        return Ok(());
    };
    let known = clock(&view)?;
    program.space.map(AT, view, 0, 1, READ).map_err(say)?;
    program.space.touch(AT, false).map_err(say)?;
    let start = program.registers.rip;
    for round in 0..200 {
        (program.registers.rip, program.registers.rdi) = (start, AT);
        let (before, wall) = (time::now(), time::wall_seconds());
        let event = program.run();
        let (after, wall_after) = (time::now(), time::wall_seconds());
        ensure!(event == UserEvent::Syscall, "{event:?}");
        let UserRegisters {
            rax: counter,
            r8,
            r9,
            r10,
            r12,
            r13,
            r14,
            r15,
            ..
        } = program.registers;
        let words: [u64; WORDS] = [r8, r9, r10, r12, r13, r14, r15, 0];
        let read = clockpage::read(|index| words[index]).map_err(say)?;
        ensure!(read == known, "the program reads {read:?}, not {known:?}");
        let now = read.monotonic(counter);
        let between = before <= now && now <= after;
        ensure!(between, "{now} is not in {before}..={after}, round {round}");
        let (seconds, _) = read.wall(counter);
        let between = wall <= seconds && seconds <= wall_after;
        ensure!(between, "{seconds} is not in {wall}..={wall_after}");
        time::sleep(round * 10_000);
    }
    Ok(())
}

/// Neither by the view, nor by one made of it, nor by a mapping.
fn unchanged(lab: &Lab) -> Verdict {
    let (Some(view), Some(space)) = (page(lab)?, spaces::space(lab)?) else {
        return Ok(());
    };
    let known = clock(&view)?;
    let more = view.restrict(ALL).map_err(say)?;
    let rights = more.rights().map_err(say)?;
    ensure!(!rights.write && !rights.execute, "{rights:?}");
    for view in [&view, &more] {
        let answer = view.write(0, &bytes(&[1; 8])?);
        ensure!(matches!(answer, Err(MemoryError::Denied)), "{answer:?}");
    }
    let answer = space.map(AT, more.duplicate().map_err(say)?, 0, 1, WRITE);
    ensure!(matches!(answer, Err(SpaceError::Denied)), "{answer:?}");
    let copy = view.duplicate().map_err(say)?;
    space.map(AT, copy, 0, 1, READ).map_err(say)?;
    peek(&space, AT).map_err(say)?;
    let answer = poke(&space, AT, [1; 8]);
    ensure!(answer.is_err(), "a program has written to it");
    let answer = space.protect(AT, 1, WRITE);
    ensure!(matches!(answer, Err(SpaceError::Denied)), "{answer:?}");
    // What a program writes to a copy of its own is its own affair.
    let copy = view.duplicate().map_err(say)?;
    let own = AT + 8 * PAGE;
    space.map_private(own, copy, 0, 1, WRITE).map_err(say)?;
    poke(&space, own, [1; 8]).map_err(say)?;
    ensure!(peek(&space, own) == Ok([1; 8]), "the copy is not written");
    let seen = clock(&view)?;
    ensure!(seen == known, "{seen:?} in place of {known:?}");
    Ok(())
}

/// More mappings than an object notes that can lose pages: nobody can use them up for others.
fn many(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(view), Some(space)) = (page(lab)?, spaces::space(lab)?) else {
            return Ok(());
        };
        for at in 0..5000 {
            let copy = view.duplicate().map_err(say)?;
            let at = AT + 2 * at * PAGE;
            space.map(at, copy, 0, 1, READ).map_err(say)?;
        }
        let last = peek(&space, AT + 2 * 4999 * PAGE).map_err(say)?;
        ensure!(last == 2_u64.to_le_bytes(), "{last:?} is its first word");
        Ok(())
    })
}
