//! Words of a program's memory that are compared and exchanged from outside.

use crate::lab::{Lab, say, wait_for};
use crate::ring3::{CODE, Fake, Program};
use crate::spaces::{ALL, AT, PAGE, READ, WRITE, object, peek, poke, space};
use crate::{Test, Verdict, ensure};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::user::{self, UserEvent, UserRegisters};
use domain_rt::{thread, time};
use interfaces::{AddressSpace, Handle, PageKind, Protection, UserThread, VmoFill};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("ring3-words-are-exchanged", exchanged),
    ("ring3-words-that-cannot-be-written", refused),
    ("ring3-words-of-nobody", nobodys),
    ("ring3-words-copied-on-write-and-marked", shared),
    ("ring3-words-beside-a-running-program", beside),
    ("ring3-code-that-changes-while-it-runs", code),
];

type Space = Handle<dyn AddressSpace>;

/// A page of zeros at `AT`, which is there.
fn page(space: &Space) -> Verdict {
    space.map_zero(AT, 1, WRITE).map_err(say)?;
    space.touch(AT, true).map_err(say)
}

/// The word is changed where it holds what is expected, and nothing beside it ever.
fn exchanged(lab: &Lab) -> Verdict {
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    page(&space)?;
    for at in [AT, AT + 4, AT + PAGE - 4] {
        let around = (at & !7).min(AT + PAGE - 8);
        poke(&space, around, [0x11; 8]).map_err(say)?;
        let [old, new] = [0x1111_1111, 0xfedc_ba98];
        for (expected, held) in [(0, old), (old, old), (old, new), (new, new)] {
            let found = user::compare_exchange(&space, at, expected, new);
            ensure!(
                found == Some(held),
                "{found:x?} for {expected:#x} at {at:#x}"
            );
        }
        let mut right = [0x11; 8];
        let place = (at - around) as usize;
        right[place..place + 4].copy_from_slice(&new.to_le_bytes());
        let seen = peek(&space, around).map_err(say)?;
        ensure!(seen == right, "{seen:x?} around {at:#x}");
    }
    Ok(())
}

/// What the program itself could not write to now is told and left as it is, whether it holds what
/// is expected or not.
fn refused(lab: &Lab) -> Verdict {
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    let exchange = || user::compare_exchange(&space, AT, 0, 7);
    ensure!(exchange().is_none(), "where nothing is mapped");
    space.map_zero(AT, 1, WRITE).map_err(say)?;
    ensure!(exchange().is_none(), "where no page has come yet");
    space.touch(AT, false).map_err(say)?;
    let none = Protection {
        read: false,
        ..READ
    };
    for how in [
        READ,
        none,
        Protection {
            execute: true,
            ..READ
        },
    ] {
        space.protect(AT, 1, how).map_err(say)?;
        ensure!(exchange().is_none(), "with {how:?}");
        let other = user::compare_exchange(&space, AT, 1, 7);
        ensure!(other.is_none(), "another word, with {how:?}");
    }
    space.protect(AT, 1, WRITE).map_err(say)?;
    space.touch(AT, true).map_err(say)?;
    ensure!(peek(&space, AT) == Ok([0; 8]), "it was written to");
    ensure!(exchange() == Some(0), "once it can be written to");
    space.unmap(AT, 1).map_err(say)?;
    ensure!(exchange().is_none(), "after it was unmapped");
    Ok(())
}

/// Addresses that are no word's, or the kernel's, and handles of something else.
fn nobodys(lab: &Lab) -> Verdict {
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    page(&space)?;
    let own = AtomicU32::new(0);
    let addresses = [
        AT + 1,
        AT + 2,
        AT + PAGE - 1,
        AT + PAGE - 3,
        u64::MAX,
        u64::MAX - 3,
        (1 << 47) - 4,
        1 << 47,
        1 << 63,
        0xffff_8000_0000_0000,
        0xffff_ffff_8000_0000,
        core::ptr::from_ref(&own) as u64,
    ];
    for at in addresses {
        let found = user::compare_exchange(&space, at, 0, 7);
        ensure!(found.is_none(), "{found:?} at {at:#x}");
    }
    ensure!(
        own.load(Ordering::SeqCst) == 0,
        "a word of the domain's own"
    );
    ensure!(peek(&space, AT) == Ok([0; 8]), "it was written to");
    let thread = space.thread().map_err(say)?;
    let fake = Handle::<dyn UserThread>::new(Fake).map_err(say)?;
    let found = [&thread, &fake].map(|it| user::compare_exchange(it, AT, 0, 7));
    ensure!(found == [None, None], "{found:?} of what is no space");
    Ok(())
}

/// A page that others have is copied first, and that of an object marked, as for a write.
fn shared(lab: &Lab) -> Verdict {
    let (Some(parent), Some(child)) = (space(lab)?, space(lab)?) else {
        return Ok(());
    };
    page(&parent)?;
    let to = child.duplicate().map_err(say)?;
    parent.fork(to, 0).map_err(say)?;
    for (space, number) in [(&parent, 1), (&child, 2)] {
        let found = user::compare_exchange(space, AT, 0, number);
        ensure!(found.is_none(), "{found:?} where two have the page");
        space.touch(AT, true).map_err(say)?;
        let found = user::compare_exchange(space, AT, 0, number);
        ensure!(found == Some(0), "{found:?} after the copy");
    }
    for (space, number) in [(&parent, 1), (&child, 2)] {
        let seen = peek(space, AT).map_err(say)?;
        ensure!(seen[0] == number, "{seen:?} in the place of {number}");
    }
    let owner = object(lab, 1, VmoFill::Zero)?;
    let view = owner.view(ALL).map_err(say)?;
    parent.map(AT + PAGE, view, 0, 1, WRITE).map_err(say)?;
    for round in 0..3 {
        let exchange = || user::compare_exchange(&parent, AT + PAGE, round, round + 1);
        ensure!(exchange().is_none(), "nobody is told that it is written to");
        parent.touch(AT + PAGE, true).map_err(say)?;
        ensure!(exchange() == Some(round), "round {round}");
        let dirty = owner.next(0, PageKind::Dirty).map_err(say)?;
        ensure!(dirty == Some(0), "{dirty:?} is dirty in round {round}");
        owner.clean(0, 1).map_err(say)?;
        owner.commit(0, 1).map_err(say)?;
    }
    Ok(())
}

/// A program counts in a word while this domain does: no step is lost.
fn beside(lab: &Lab) -> Verdict {
    const STEPS: u32 = 20_000;
    // 1: lock inc dword [rdi]; dec rsi; jnz 1b; syscall
    let code = [0xf0, 0xff, 0x07, 0x48, 0xff, 0xce, 0x75, 0xf8, 0x0f, 0x05];
    let Some(mut program) = Program::new(lab, &code)? else {
        return Ok(());
    };
    page(&program.space)?;
    let other = program.space.duplicate().map_err(say)?;
    let done = Arc::new(AtomicU32::new(0));
    let told = done.clone();
    thread::spawn("counts", move || {
        let mut seen = 0;
        while told.load(Ordering::Relaxed) < STEPS {
            match user::compare_exchange(&other, AT, seen, seen.wrapping_add(1)) {
                Some(found) if found == seen => drop(told.fetch_add(1, Ordering::SeqCst)),
                Some(found) => seen = found,
                None => break,
            }
        }
    })
    .map_err(say)?;
    let mut rounds = 0;
    while done.load(Ordering::SeqCst) < STEPS {
        rounds += 1;
        program.registers = UserRegisters {
            rip: CODE,
            rdi: AT,
            rsi: STEPS.into(),
            ..UserRegisters::default()
        };
        let event = program.run();
        ensure!(event == UserEvent::Syscall, "{event:?}");
        time::sleep(100_000);
        ensure!(rounds < 10_000, "the other does not come on");
    }
    let sum = user::compare_exchange(&program.space, AT, 0, 0);
    let right = STEPS.wrapping_mul(rounds + 1);
    ensure!(sum == Some(right), "{sum:?} in place of {right}");
    Ok(())
}

/// Code is changed while it runs, many times, and at last must not be executed any more: each time
/// the program does what stands there, and traps.
fn code(lab: &Lab) -> Verdict {
    const ROUNDS: u32 = 200;
    // jmp to itself, or to what follows; syscall
    const LOOPS: u32 = u32::from_le_bytes([0xeb, 0xfe, 0x0f, 0x05]);
    const LEAVES: u32 = u32::from_le_bytes([0xeb, 0x00, 0x0f, 0x05]);
    let Some(mut program) = Program::new(lab, &LOOPS.to_le_bytes())? else {
        return Ok(());
    };
    let all = Protection {
        execute: true,
        ..WRITE
    };
    program.space.protect(CODE, 1, all).map_err(say)?;
    let other = program.space.duplicate().map_err(say)?;
    let done = Arc::new(AtomicU32::new(0));
    let told = done.clone();
    thread::spawn("changes", move || {
        while told.load(Ordering::SeqCst) < ROUNDS {
            let _ = user::compare_exchange(&other, CODE, LOOPS, LEAVES);
            time::sleep(50_000);
        }
        let _ = user::compare_exchange(&other, CODE, LEAVES, LOOPS);
        told.fetch_add(1, Ordering::SeqCst);
        time::sleep(1_000_000);
        let _ = other.protect(CODE, 1, WRITE);
    })
    .map_err(say)?;
    for round in 0..ROUNDS {
        program.registers.rip = CODE;
        let event = program.run();
        let rip = program.registers.rip;
        ensure!(
            (event, rip) == (UserEvent::Syscall, CODE + 4),
            "{event:?} at {rip:#x} in round {round}"
        );
        let _ = user::compare_exchange(&program.space, CODE, LEAVES, LOOPS);
        done.fetch_add(1, Ordering::SeqCst);
    }
    wait_for("the last change", || done.load(Ordering::SeqCst) > ROUNDS)?;
    program.registers.rip = CODE;
    let event = program.run();
    ensure!(
        matches!(event, UserEvent::PageFault { execute: true, .. })
            && program.registers.rip == CODE,
        "{event:?}"
    );
    Ok(())
}
