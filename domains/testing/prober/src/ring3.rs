//! Programs in ring 3: a few instructions each, most of which do what they must not.

use crate::lab::{Lab, say, wait_for};
use crate::spaces::{ALL, AT, PAGE, READ, WRITE, object, space};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use domain_rt::user::{self, UserEvent, UserRegisters};
use domain_rt::{log, thread, time};
use interfaces::{
    AddressSpace, CrashReason, Handle, PageKind, Protection, RVec, RpcResult, UserThread, VmoFill,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("ring3-asks-for-something", asks),
    ("ring3-registers-are-kept", registers),
    ("ring3-faults-are-answered", faults),
    ("ring3-writes-to-an-object", writes),
    ("ring3-bad-registers", bad_registers),
    ("ring3-what-it-must-not", forbidden),
    ("ring3-threads-that-are-none", refused),
    ("ring3-copies-are-short-at-a-fault", copies),
    ("ring3-kicked", kicked),
    ("ring3-killed-in-a-loop", killed),
    ("ring3-killed-with-a-thousand-threads", thousand),
    ("ring3-random-programs", random_programs),
];

/// Where the code is.
pub const CODE: u64 = 0x10_0000;

const EXECUTE: Protection = Protection {
    execute: true,
    ..READ
};

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// `jmp` to itself.
const LOOP: [u8; 2] = [0xeb, 0xfe];

type Space = Handle<dyn AddressSpace>;

/// A program in a space of its own.
pub struct Program {
    pub space: Space,
    pub thread: Handle<dyn UserThread>,
    pub registers: UserRegisters,
}

impl Program {
    /// One with this code; none where there is no ring 3.
    pub fn new(lab: &Lab, code: &[u8]) -> Result<Option<Program>, String> {
        let Some(space) = space(lab)? else {
            return Ok(None);
        };
        space.map_zero(CODE, 1, WRITE).map_err(say)?;
        space.touch(CODE, true).map_err(say)?;
        let code = RVec::from_slice(code).map_err(say)?;
        space.write(CODE, &code).map_err(say)?;
        space.protect(CODE, 1, EXECUTE).map_err(say)?;
        let thread = space.thread().map_err(say)?;
        let registers = UserRegisters {
            rip: CODE,
            ..UserRegisters::default()
        };
        Ok(Some(Program {
            space,
            thread,
            registers,
        }))
    }

    /// Runs until it traps.
    pub fn run(&mut self) -> UserEvent {
        user::run(&self.thread, &mut self.registers)
    }
}

/// A program asks for something, is told, and asks again.
fn asks(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        // mov eax, 42; syscall; add rax, rdi; syscall
        let code = [0xb8, 42, 0, 0, 0, 0x0f, 0x05, 0x48, 0x01, 0xf8, 0x0f, 0x05];
        let Some(mut program) = Program::new(lab, &code)? else {
            return Ok(());
        };
        let event = program.run();
        let registers = program.registers;
        ensure!(event == UserEvent::Syscall, "{event:?}");
        ensure!(
            (registers.rax, registers.rip) == (42, CODE + 7),
            "{registers:x?}"
        );
        (program.registers.rax, program.registers.rdi) = (1000, 7);
        let event = program.run();
        ensure!(event == UserEvent::Syscall, "{event:?}");
        ensure!(program.registers.rax == 1007, "{:x?}", program.registers);
        Ok(())
    })
}

/// What a program does not change stays, over interrupts, too.
fn registers(lab: &Lab) -> Verdict {
    // 1: dec rdi; jnz 1b; mov rax, fs:[0]; syscall
    let code = [
        0x48, 0xff, 0xcf, 0x75, 0xfb, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x0f, 0x05,
    ];
    let Some(mut program) = Program::new(lab, &code)? else {
        return Ok(());
    };
    program.space.map_zero(AT, 1, WRITE).map_err(say)?;
    program.space.touch(AT, true).map_err(say)?;
    let mark = RVec::from_slice(&77_u64.to_le_bytes()).map_err(say)?;
    program.space.write(AT + 16, &mark).map_err(say)?;
    let before = UserRegisters {
        rbx: 2,
        rdx: 4,
        rsi: 5,
        rdi: 50_000_000,
        rbp: u64::MAX,
        rsp: 0x8000_0000_0000_0000,
        r8: 8,
        r9: 9,
        r10: 10,
        r12: 12,
        r13: 13,
        r14: 14,
        r15: 15,
        rip: CODE,
        fs_base: AT + 16,
        gs_base: AT,
        ..UserRegisters::default()
    };
    program.registers = before;
    let event = program.run();
    ensure!(event == UserEvent::Syscall, "{event:?}");
    let after = program.registers;
    // SYSCALL leaves address and flags there.
    let right = UserRegisters {
        rax: 77,
        rdi: 0,
        rcx: CODE + code.len() as u64,
        r11: after.rflags,
        rflags: after.rflags,
        rip: CODE + code.len() as u64,
        ..before
    };
    ensure!(after == right, "{after:x?} in place of {right:x?}");
    Ok(())
}

/// Faults in pages that are there when they are touched, or not at all.
fn faults(lab: &Lab) -> Verdict {
    // mov [rdi], rsi; mov rax, [rdi]; syscall
    let code = [0x48, 0x89, 0x37, 0x48, 0x8b, 0x07, 0x0f, 0x05];
    let Some(mut program) = Program::new(lab, &code)? else {
        return Ok(());
    };
    let fault = |address, write| UserEvent::PageFault {
        address,
        write,
        execute: false,
    };
    program.space.map_zero(AT, 2, WRITE).map_err(say)?;
    (program.registers.rdi, program.registers.rsi) = (AT + 0x123, 99);
    let first = UserEvent::PageFault {
        address: CODE,
        write: false,
        execute: true,
    };
    // The code's own page is there: it was written to.
    let event = program.run();
    ensure!(
        event != first && event == fault(AT + 0x123, true),
        "{event:?}"
    );
    program.space.touch(AT + 0x123, true).map_err(say)?;
    let event = program.run();
    ensure!(
        event == UserEvent::Syscall && program.registers.rax == 99,
        "{event:?}"
    );
    // Twice the same fault, as nobody answers it.
    program.registers.rip = CODE;
    program.registers.rdi = AT + 5 * PAGE;
    for _ in 0..2 {
        let event = program.run();
        ensure!(event == fault(AT + 5 * PAGE, true), "{event:?}");
    }
    program.space.unmap(AT, 2).map_err(say)?;
    (program.registers.rip, program.registers.rdi) = (CODE + 3, AT);
    let event = program.run();
    ensure!(event == fault(AT, false), "{event:?} after it was unmapped");
    program.registers.rip = AT;
    let event = program.run();
    let execute = UserEvent::PageFault {
        address: AT,
        write: false,
        execute: true,
    };
    ensure!(event == execute, "{event:?} where no code is");
    Ok(())
}

/// What a program writes is in the object, and marked; a write after a cleaning is a fault.
fn writes(lab: &Lab) -> Verdict {
    // 1: inc qword [rdi]; syscall; jmp 1b
    let code = [0x48, 0xff, 0x07, 0x0f, 0x05, 0xeb, 0xf9];
    let Some(mut program) = Program::new(lab, &code)? else {
        return Ok(());
    };
    let owner = object(lab, 4, VmoFill::Zero)?;
    let view = owner.view(ALL).map_err(say)?;
    program.space.map(AT, view, 0, 4, WRITE).map_err(say)?;
    program.registers.rdi = AT + 2 * PAGE;
    let (mut asked, mut met) = (0_u64, 0);
    while asked < 30 {
        match program.run() {
            UserEvent::Syscall => asked += 1,
            UserEvent::PageFault { address, write, .. } => {
                met += 1;
                program.space.touch(address, write).map_err(say)?;
                continue;
            }
            event => return Err(say(event)),
        }
        if asked % 10 == 5 {
            owner.clean(0, 4).map_err(say)?;
            owner.commit(2, 1).map_err(say)?;
        }
    }
    ensure!(met >= 3, "only {met} faults, so a write went unnoticed");
    let dirty = owner.next(0, PageKind::Dirty).map_err(say)?;
    ensure!(dirty == Some(2), "{dirty:?} is dirty");
    let view = owner.view(ALL).map_err(say)?;
    let (bytes, _) = view
        .read(2 * PAGE, RVec::filled(0, 8).map_err(say)?)
        .map_err(say)?;
    ensure!(bytes[..] == 30_u64.to_le_bytes(), "{bytes:?}");
    Ok(())
}

/// Registers that the way to ring 3 itself must not stumble over.
fn bad_registers(lab: &Lab) -> Verdict {
    let Some(mut program) = Program::new(lab, &SYSCALL)? else {
        return Ok(());
    };
    for rip in [1 << 47, u64::MAX, 0xffff_8000_0000_0000, 0x7fff_ffff_f000] {
        program.registers.rip = rip;
        let event = program.run();
        let at_it = matches!(event, UserEvent::PageFault { address, .. } if address == rip);
        ensure!(at_it, "{event:?} at {rip:#x}");
    }
    // Privilege level 3 for ports, nested task, virtual 8086, interrupts off.
    for rflags in [0x3000, 0x4000, 0x2_0000, 0, 0x18_0000, !0x100] {
        (program.registers.rip, program.registers.rflags) = (CODE, rflags);
        let event = program.run();
        ensure!(
            event == UserEvent::Syscall,
            "{event:?} with flags {rflags:#x}"
        );
        let kept = program.registers.rflags & 0x1b_7000;
        ensure!(kept == 0, "flags {kept:#x} are set");
    }
    // A single step is an exception behind the first instruction, or at the kernel's first, and
    // then the program's.
    (program.registers.rip, program.registers.rflags) = (CODE, 0x100);
    let event = program.run();
    let stepped = matches!(
        event,
        UserEvent::Syscall | UserEvent::Exception { vector: 1, .. }
    );
    ensure!(stepped, "{event:?} with a single step");
    program.registers.rflags = 0;
    for base in [1 << 47, u64::MAX, 0xffff_8000_0000_0000] {
        program.registers.rip = CODE;
        program.registers.fs_base = base;
        let protection = UserEvent::Exception {
            vector: 13,
            error_code: 0,
        };
        ensure!(program.run() == protection, "FS at {base:#x}");
        (program.registers.fs_base, program.registers.gs_base) = (0, base);
        ensure!(program.run() == protection, "GS at {base:#x}");
        program.registers.gs_base = 0;
    }
    ensure!(
        program.run() == UserEvent::Syscall,
        "it cannot run any more"
    );
    Ok(())
}

/// Instructions and addresses that are the kernel's.
fn forbidden(lab: &Lab) -> Verdict {
    let cases: [(&[u8], u8); 7] = [
        (&[0xf4], 13),                        // hlt
        (&[0xfa], 13),                        // cli
        (&[0x0f, 0x30], 13),                  // wrmsr
        (&[0x0f, 0x22, 0xd8], 13),            // mov cr3, rax
        (&[0xec], 13),                        // in al, dx
        (&[0xcc], 3),                         // int3
        (&[0x31, 0xc9, 0x48, 0xf7, 0xf1], 0), // xor ecx, ecx; div rcx
    ];
    for (code, vector) in cases {
        let Some(mut program) = Program::new(lab, code)? else {
            return Ok(());
        };
        let event = program.run();
        let right = matches!(event, UserEvent::Exception { vector: met, .. } if met == vector);
        ensure!(right, "{event:?} for {code:x?}");
    }
    // mov rax, [rdi]
    let code = [0x48, 0x8b, 0x07];
    for address in [0xffff_8000_0000_0000, 0xffff_ffff_8000_0000, u64::MAX - 7] {
        let Some(mut program) = Program::new(lab, &code)? else {
            return Ok(());
        };
        program.registers.rdi = address;
        let event = program.run();
        let right = matches!(event, UserEvent::PageFault { write: false, .. });
        ensure!(right, "{event:?} for {address:#x}");
        ensure!(program.registers.rax == 0, "it has read something");
    }
    Ok(())
}

/// An object of this domain that claims to be a thread.
pub struct Fake;

impl UserThread for Fake {
    fn kick(&self) -> RpcResult<()> {
        Ok(())
    }
}

/// What is no user thread does not run, and a thread runs once at a time.
fn refused(lab: &Lab) -> Verdict {
    let Some(mut program) = Program::new(lab, &LOOP)? else {
        return Ok(());
    };
    let fake = Handle::<dyn UserThread>::new(Fake).map_err(say)?;
    let mut registers = program.registers;
    ensure!(
        user::run(&fake, &mut registers) == UserEvent::Refused,
        "a fake runs"
    );
    ensure!(
        user::run(&program.space, &mut registers) == UserEvent::Refused,
        "a space runs"
    );
    let objects = lab.objects.as_ref().ok_or("nobody makes objects")?;
    ensure!(
        user::run(objects, &mut registers) == UserEvent::Refused,
        "a maker runs"
    );
    let other = program.thread.duplicate().map_err(say)?;
    let seen = Arc::new(AtomicU32::new(0));
    let told = seen.clone();
    thread::spawn("second", move || {
        time::sleep(5_000_000);
        let mut registers = UserRegisters {
            rip: CODE,
            ..UserRegisters::default()
        };
        let event = user::run(&other, &mut registers);
        told.store(1 + u32::from(event == UserEvent::Refused), Ordering::SeqCst);
        let _ = other.kick();
    })
    .map_err(say)?;
    let event = program.run();
    ensure!(event == UserEvent::Kicked, "{event:?}");
    let seen = seen.load(Ordering::SeqCst);
    ensure!(seen == 2, "{seen}: two run the same thread");
    Ok(())
}

/// Copies between this domain and a program end at the first page that is not ready, and never
/// reach what is no program's.
fn copies(lab: &Lab) -> Verdict {
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    const PAGE: u64 = 4096;
    let mut bytes = [7; 3 * PAGE as usize];
    ensure!(
        user::read(&space, CODE, &mut bytes) == 0,
        "nothing is there"
    );
    space.map_zero(CODE, 2, WRITE).map_err(say)?;
    ensure!(
        user::write(&space, CODE, &bytes) == 0,
        "no page has come yet"
    );
    for page in 0..2 {
        space.touch(CODE + page * PAGE, true).map_err(say)?;
    }
    let written = user::write(&space, CODE + 10, &bytes);
    ensure!(
        written == 2 * PAGE as usize - 10,
        "{written} bytes of two pages"
    );
    let mut back = [1; 20];
    ensure!(
        user::read(&space, CODE, &mut back) == 20,
        "it cannot be read"
    );
    let expected = [&[0; 10][..], &[7; 10]].concat();
    ensure!(back[..] == expected[..], "{back:?}");
    let mut none = [];
    ensure!(
        user::read(&space, CODE, &mut none) == 0,
        "nothing was asked for"
    );
    space.protect(CODE, 1, READ).map_err(say)?;
    ensure!(
        user::write(&space, CODE, &bytes) == 0,
        "a page for reading was written to"
    );
    ensure!(
        user::read(&space, CODE, &mut back) == 20,
        "it cannot be read any more"
    );
    for at in [
        0,
        u64::MAX,
        u64::MAX - 10,
        1 << 47,
        (1 << 47) - 10,
        0xffff_8000_0000_0000,
        0xffff_ffff_8000_0000,
    ] {
        let count = user::read(&space, at, &mut back) + user::write(&space, at, &back);
        ensure!(count == 0, "{count} bytes at {at:#x}");
    }
    let thread = space.thread().map_err(say)?;
    let fake = Handle::<dyn UserThread>::new(Fake).map_err(say)?;
    let copied = user::read(&thread, CODE, &mut back) + user::write(&fake, CODE, &bytes);
    ensure!(copied == 0, "{copied} bytes of what is no space");
    Ok(())
}

/// A kick ends the run that is under way, or the next one, once.
fn kicked(lab: &Lab) -> Verdict {
    let Some(mut program) = Program::new(lab, &LOOP)? else {
        return Ok(());
    };
    program.thread.kick().map_err(say)?;
    program.thread.kick().map_err(say)?;
    let before = UserRegisters {
        // Interrupts come in, and bit 1 is always set.
        rflags: 0x202,
        ..program.registers
    };
    ensure!(
        program.run() == UserEvent::Kicked,
        "the kick before is lost"
    );
    ensure!(program.registers == before, "it has run");
    for _ in 0..5 {
        let thread = program.thread.duplicate().map_err(say)?;
        thread::spawn("kicker", move || {
            time::sleep(3_000_000);
            let _ = thread.kick();
        })
        .map_err(say)?;
        let event = program.run();
        ensure!(event == UserEvent::Kicked, "{event:?}");
        ensure!(program.registers.rip == CODE, "{:x?}", program.registers);
    }
    // The space goes before the thread.
    drop(program.space);
    program.thread.kick().map_err(say)?;
    let event = user::run(&program.thread, &mut program.registers);
    ensure!(event == UserEvent::Kicked, "{event:?}");
    Ok(())
}

/// A domain whose program loops for ever is ended, and gives all back.
fn killed(lab: &Lab) -> Verdict {
    let Some(spaces) = lab.spaces.as_ref() else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        for round in 0..10 {
            let victim = lab.start()?;
            let running = Arc::new(AtomicU32::new(0));
            for _ in 0..3 {
                let subject = victim.subject.duplicate().map_err(say)?;
                let maker = spaces.duplicate().map_err(say)?;
                let told = running.clone();
                thread::spawn("loops", move || {
                    told.fetch_add(1, Ordering::SeqCst);
                    let result = subject.loop_in_ring3(maker);
                    if result.is_err() {
                        told.fetch_sub(1, Ordering::SeqCst);
                    }
                })
                .map_err(say)?;
            }
            wait_for("the programs to run", || {
                running.load(Ordering::SeqCst) == 3
            })?;
            time::sleep(2_000_000 + round * 1_300_000);
            ensure!(
                running.load(Ordering::SeqCst) == 3,
                "a program ended by itself"
            );
            victim.domain.kill().map_err(say)?;
            let why = victim.gone()?;
            ensure!(why == CrashReason::Killed, "it ended by {why:?}");
            wait_for("the callers to return", || {
                running.load(Ordering::SeqCst) == 0
            })?;
        }
        Ok(())
    })
}

/// A domain with a thousand threads is ended, half of them in ring 3 and half of them waiting, and
/// gives all back; a program beside it goes on.
fn thousand(lab: &Lab) -> Verdict {
    const THREADS: u64 = 1000;
    let (Some(spaces), Some(mut beside)) = (lab.spaces.as_ref(), Program::new(lab, &SYSCALL)?)
    else {
        return Ok(());
    };
    ensure!(beside.run() == UserEvent::Syscall, "the program beside it");
    lab.returns_each_page(|| {
        let victim = lab.start()?;
        let maker = spaces.duplicate().map_err(say)?;
        let started = victim.subject.crowd_in_ring3(maker, THREADS).map_err(say)?;
        ensure!(started == THREADS, "{started} threads");
        beside.registers.rip = CODE;
        ensure!(beside.run() == UserEvent::Syscall, "beside the crowd");
        victim.domain.kill().map_err(say)?;
        let why = victim.gone()?;
        ensure!(why == CrashReason::Killed, "it ended by {why:?}");
        beside.registers.rip = CODE;
        ensure!(beside.run() == UserEvent::Syscall, "after the crowd");
        Ok(())
    })
}

/// Random programs end in events and harm nobody; a domain that is ended in the midst of them gives
/// all back.
fn random_programs(lab: &Lab) -> Verdict {
    const RUNNERS: u64 = 3;
    let Some(spaces) = lab.spaces.as_ref() else {
        return Ok(());
    };
    let rounds = if lab.seed == 0 { 6 } else { 60 };
    let events = Arc::new(AtomicU64::new(0));
    lab.conserves_memory(|| {
        for round in 0..rounds {
            let victim = lab.start()?;
            let dies = round % 2 == 1;
            let (left, failed) = (
                Arc::new(AtomicU64::new(RUNNERS)),
                Arc::new(AtomicU64::new(0)),
            );
            for runner in 0..RUNNERS {
                let subject = victim.subject.duplicate().map_err(say)?;
                let maker = spaces.duplicate().map_err(say)?;
                let seed = (lab.seed << 20) + (round << 4) + runner + 1;
                let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (left, failed, events) = (left.clone(), failed.clone(), events.clone());
                thread::spawn("monkeys", move || {
                    let count = if dies { u64::MAX } else { 10 };
                    match subject.random_programs(maker, seed, count) {
                        Ok(more) => drop(events.fetch_add(more, Ordering::SeqCst)),
                        Err(_) => drop(failed.fetch_add(1, Ordering::SeqCst)),
                    }
                    left.fetch_sub(1, Ordering::SeqCst);
                })
                .map_err(say)?;
            }
            if dies {
                time::sleep(5_000_000 + round * 1_700_000 % 40_000_000);
                victim.domain.kill().map_err(say)?;
                let why = victim.gone()?;
                ensure!(why == CrashReason::Killed, "it ended by {why:?}");
            }
            wait_for("the programs to end", || left.load(Ordering::SeqCst) == 0)?;
            if !dies {
                victim.end()?;
            }
            let failed = failed.load(Ordering::SeqCst);
            let expected = if dies { RUNNERS } else { 0 };
            ensure!(
                failed == expected,
                "{failed} runners failed in round {round}"
            );
        }
        Ok(())
    })?;
    let events = events.load(Ordering::SeqCst);
    ensure!(events >= RUNNERS * 10, "only {events} events");
    log!("{events} events of random programs");
    Ok(())
}
