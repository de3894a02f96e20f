//! Programs in ring 3 that begin with each value, and at each address, that could harm the kernel.

use alloc::string::String;

use super::Test;
use super::user::{STACK_TOP, hello_and_loop, run, space};
use crate::check;
use crate::mem::{self, PAGE_SIZE};
use crate::user::{USER_END, UserContext, UserEvent, UserProt};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("user-hostile-registers", hostile_registers),
    ("user-segment-bases-are-users", segment_bases),
    ("user-at-the-end-of-its-space", end_of_space),
];

/// Registers as a personality, or a signal frame, may set them.
fn hostile_registers() -> Result<(), String> {
    let space = space()?;
    let (mut hello, mut other) = hello_and_loop();
    let good = hello.registers();
    for rip in [
        USER_END as u64,
        1 << 47,
        1 << 63,
        u64::MAX,
        mem::KSPACE as u64,
    ] {
        let mut registers = good;
        registers.rip = rip;
        hello.set_registers(&registers);
        let event = run(&mut hello, &space);
        let faulted =
            matches!(event, UserEvent::PageFault { address, execute: true, .. } if address == rip);
        check!(faulted, "{rip:#x}: {event:?}");
    }
    for rsp in [mem::DIRECT_MAP as u64, 1 << 63, 1 << 47, u64::MAX, 7] {
        let mut registers = good;
        registers.rsp = rsp;
        hello.set_registers(&registers);
        let event = run(&mut hello, &space);
        check!(event == UserEvent::Syscall, "stack {rsp:#x}: {event:?}");
        check!(
            hello.registers().rsp == rsp,
            "the stack pointer was changed"
        );
    }
    let mut registers = other.registers();
    registers.rflags = u64::MAX;
    other.set_registers(&registers);
    let event = run(&mut other, &space);
    let stepped = matches!(event, UserEvent::Exception { vector: 1, .. });
    check!(stepped, "all flags: {event:?}");
    let rflags = other.registers().rflags;
    check!(rflags & !0x0025_0fd7 == 0, "flags {rflags:#x}");
    Ok(())
}

fn segment_bases() -> Result<(), String> {
    let space = space()?;
    let (mut hello, _) = hello_and_loop();
    let good = hello.registers();
    let protection = UserEvent::Exception {
        vector: 13,
        error_code: 0,
    };
    for base in [
        USER_END as u64,
        1 << 47,
        1 << 63,
        u64::MAX,
        mem::DIRECT_MAP as u64,
    ] {
        for bases in [(base, 0), (0, base)] {
            let mut registers = good;
            (registers.fs_base, registers.gs_base) = bases;
            hello.set_registers(&registers);
            let event = run(&mut hello, &space);
            check!(event == protection, "bases {bases:x?}: {event:?}");
            check!(hello.registers().rip == good.rip, "it has run");
        }
    }
    hello.set_registers(&good);
    let event = run(&mut hello, &space);
    check!(event == UserEvent::Syscall, "with good bases: {event:?}");
    Ok(())
}

/// The last bytes that a program can have are a system call, a breakpoint, or nothing in
/// particular; where it would go on is not its own any more.
fn end_of_space() -> Result<(), String> {
    let page = USER_END - PAGE_SIZE;
    let fault = UserEvent::PageFault {
        address: USER_END as u64,
        write: false,
        execute: true,
    };
    let int3 = UserEvent::Exception {
        vector: 3,
        error_code: 0,
    };
    for (code, first) in [
        (&[0x0f, 0x05][..], UserEvent::Syscall),
        (&[0xcc], int3),
        (&[0x90], fault),
    ] {
        let space = space()?;
        let mut prot = UserProt {
            write: true,
            ..UserProt::READ_EXECUTE
        };
        let at = USER_END - code.len();
        let mapped = space.map_zero(page, 1, prot);
        let written = space.write(at, code);
        check!(mapped.is_ok() && written.is_ok(), "{mapped:?} {written:?}");
        prot.write = false;
        check!(space.protect(page, 1, prot).is_ok(), "not protected");
        let mut context = UserContext::new(at, STACK_TOP);
        let event = run(&mut context, &space);
        check!(event == first, "{code:x?}: {event:?}");
        let rip = context.registers().rip;
        check!(rip == USER_END as u64, "{code:x?}: goes on at {rip:#x}");
        let event = run(&mut context, &space);
        check!(event == fault, "after {code:x?}: {event:?}");
    }
    Ok(())
}
