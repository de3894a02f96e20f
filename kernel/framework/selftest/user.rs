//! Tests of ring 3: programs of a few instructions, most of which do what they must not.

use alloc::format;
use alloc::string::String;
use core::arch::global_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::faults::touch;
use super::{Test, catch, gives_back};
use crate::arch::cpu::{Features, features};
use crate::fault::FaultKind;
use crate::mem::frames::{FrameKind, Frames};
use crate::mem::{self, PAGE_SIZE};
use crate::user::{Sharing, UserContext, UserEvent, UserMode, UserProt, VmError, VmSpace};
use crate::{check, kprintln};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("user-hello", hello),
    ("user-reads-kernel-memory", reads_kernel_memory),
    ("user-writes-its-code", writes_its_code),
    ("user-executes-its-data", executes_its_data),
    ("user-privileged-instruction", privileged_instruction),
    ("user-descriptor-table", descriptor_table),
    ("user-jumps-into-the-kernel", jumps_into_the_kernel),
    ("user-endless-loop-is-interrupted", endless_loop),
    ("user-float-survives", float_survives),
    ("user-kernel-cannot-touch-it", kernel_cannot_touch_it),
    ("user-maps-untyped-only", maps_untyped_only),
    ("user-copies-are-checked", copies_are_checked),
    ("user-space-comes-back", space_comes_back),
];

// The programs. They are copied to user memory, so they refer to themselves relative to RIP only.
global_asm!(
    ".section .rodata.user_programs, \"a\"",
    ".macro program name",
    "  .global user_\\name",
    "  user_\\name:",
    ".endm",
    "program hello", // system call 1: print RSI bytes at RDI; 60: exit with status RDI
    "  mov eax, 1",
    "  lea rdi, [rip + 3f]",
    "  mov esi, 17",
    "  syscall",
    "  mov edi, eax",
    "  mov eax, 60",
    "  syscall",
    "  ud2",
    "3: .ascii \"hello from ring 3\"",
    "program read_kernel",
    "  mov rax, [rdi]",
    "  ud2",
    "program write_code",
    "  mov byte ptr [rip + user_write_code], 0",
    "  ud2",
    "program jump",
    "  jmp rdi",
    "program loop",
    "  jmp user_loop",
    "program halt",
    "  hlt",
    "program sgdt",
    "  sgdt [rsp - 16]",
    "  ud2",
    "program float", // leaves 7 * 6 in XMM5 over a system call
    "  mov eax, 7",
    "  cvtsi2sd xmm5, eax",
    "  mov eax, 6",
    "  cvtsi2sd xmm6, eax",
    "  mulsd xmm5, xmm6",
    "  syscall",
    "  cvttsd2si rdi, xmm5",
    "  syscall",
    "user_end:",
    ".text",
);

// SAFETY: the assembly above defines them, one after the other. Only their addresses are used.
unsafe extern "C" {
    static user_hello: u8;
    static user_read_kernel: u8;
    static user_write_code: u8;
    static user_jump: u8;
    static user_loop: u8;
    static user_halt: u8;
    static user_sgdt: u8;
    static user_float: u8;
    static user_end: u8;
}

pub(super) const CODE: usize = 0x40_0000;
pub(super) const STACK: usize = 0x7f_0000;
pub(super) const STACK_TOP: usize = STACK + PAGE_SIZE;

/// An address space with the programs of this file in a page of code, and a page of stack.
pub(super) fn space() -> Result<VmSpace, String> {
    let start = &raw const user_hello;
    let length = (&raw const user_end) as usize - start as usize;
    // SAFETY: both labels are in the constants of this image, in this order.
    space_with(unsafe { core::slice::from_raw_parts(start, length) })
}

/// An address space with a page of code that holds `programs`, and a page of stack.
pub(super) fn space_with(programs: &[u8]) -> Result<VmSpace, String> {
    let failed = |why| format!("no address space: {why:?}");
    let space = VmSpace::new().map_err(|_| String::from("no memory"))?;
    for address in [CODE, STACK] {
        let mapped = space.map_zero(address, 1, UserProt::READ_WRITE);
        mapped.map_err(failed)?;
    }
    space.write(CODE, programs).map_err(failed)?;
    let changed = space.protect(CODE, 1, UserProt::READ_EXECUTE);
    changed.map_err(failed)?;
    Ok(space)
}

/// A context at the start of a program, with `argument` in RDI.
fn context(program: *const u8, argument: u64) -> UserContext {
    let offset = program as usize - (&raw const user_hello) as usize;
    let mut context = UserContext::new(CODE + offset, STACK_TOP);
    let mut registers = context.registers();
    registers.rdi = argument;
    context.set_registers(&registers);
    context
}

/// A program that makes a system call, and one that does nothing for ever.
pub(super) fn hello_and_loop() -> (UserContext, UserContext) {
    let hello = context(&raw const user_hello, 0);
    (hello, context(&raw const user_loop, 0))
}

/// Runs until something else than an interrupt happens.
pub(super) fn run(context: &mut UserContext, space: &VmSpace) -> UserEvent {
    loop {
        match UserMode::new(context, space).run() {
            UserEvent::Interrupted => {}
            event => return event,
        }
    }
}

/// Runs a program that must be stopped; says so and gives the event.
fn stopped(program: *const u8, argument: u64) -> Result<UserEvent, String> {
    let space = space()?;
    let mut context = context(program, argument);
    let event = run(&mut context, &space);
    let rip = context.registers().rip;
    kprintln!("user: program stopped at {rip:#x}: {event:x?}");
    Ok(event)
}

fn hello() -> Result<(), String> {
    let space = space()?;
    let mut context = context(&raw const user_hello, 0);
    loop {
        let event = run(&mut context, &space);
        check!(event == UserEvent::Syscall, "stopped by {event:?}");
        let registers = context.registers();
        match registers.rax {
            1 => context.set_result(print(&space, registers.rdi, registers.rsi)?),
            60 => {
                check!(registers.rdi == 17, "exit status {}", registers.rdi);
                return Ok(());
            }
            other => return Err(format!("system call {other}")),
        }
    }
}

/// The system call that prints. Returns the number of bytes.
fn print(space: &VmSpace, address: u64, length: u64) -> Result<u64, String> {
    let mut buffer = [0; 64];
    let text = &mut buffer[..length.min(64) as usize];
    let copied = space.read(address as usize, text);
    check!(copied == Ok(()), "reading the text: {copied:?}");
    check!(text == b"hello from ring 3", "got {text:?}");
    kprintln!("user: {}", core::str::from_utf8(text).unwrap_or("?"));
    Ok(text.len() as u64)
}

/// Whether the event is a page fault with these properties.
fn expect_fault(event: UserEvent, at: u64, write: bool, execute: bool) -> Result<(), String> {
    let expected = UserEvent::PageFault {
        address: at,
        write,
        execute,
    };
    check!(event == expected, "expected {expected:x?}, got {event:x?}");
    Ok(())
}

fn reads_kernel_memory() -> Result<(), String> {
    for address in [mem::DIRECT_MAP, mem::kernel_text().start] {
        let event = stopped(&raw const user_read_kernel, address as u64)?;
        expect_fault(event, address as u64, false, false)?;
    }
    Ok(())
}

fn writes_its_code() -> Result<(), String> {
    let offset = (&raw const user_write_code) as usize - (&raw const user_hello) as usize;
    let event = stopped(&raw const user_write_code, 0)?;
    expect_fault(event, (CODE + offset) as u64, true, false)
}

fn executes_its_data() -> Result<(), String> {
    let event = stopped(&raw const user_jump, STACK as u64)?;
    expect_fault(event, STACK as u64, false, true)
}

/// Whether the event is a general-protection fault.
fn expect_protection(event: UserEvent) -> Result<(), String> {
    let protection = matches!(event, UserEvent::Exception { vector: 13, .. });
    check!(
        protection,
        "expected a general-protection fault, got {event:?}"
    );
    Ok(())
}

fn privileged_instruction() -> Result<(), String> {
    expect_protection(stopped(&raw const user_halt, 0)?)
}

fn descriptor_table() -> Result<(), String> {
    let event = stopped(&raw const user_sgdt, 0)?;
    if !features().has(Features::UMIP) {
        return Ok(());
    }
    expect_protection(event)
}

fn jumps_into_the_kernel() -> Result<(), String> {
    let target = mem::kernel_text().start as u64;
    let event = stopped(&raw const user_jump, target)?;
    expect_fault(event, target, false, true)?;
    expect_protection(stopped(&raw const user_jump, 1 << 60)?)?;
    let space = space()?;
    let mut context = UserContext::new(target as usize, STACK_TOP);
    expect_fault(run(&mut context, &space), target, false, true)
}

fn endless_loop() -> Result<(), String> {
    let space = space()?;
    let mut context = context(&raw const user_loop, 0);
    let before = context.registers().rip;
    for _ in 0..3 {
        let event = UserMode::new(&mut context, &space).run();
        check!(event == UserEvent::Interrupted, "stopped by {event:?}");
    }
    check!(context.registers().rip == before, "the loop went elsewhere");
    Ok(())
}

fn float_survives() -> Result<(), String> {
    let space = space()?;
    let mut first = context(&raw const user_float, 0);
    check!(
        run(&mut first, &space) == UserEvent::Syscall,
        "no system call"
    );
    let mut second = context(&raw const user_hello, 0);
    run(&mut second, &space);
    check!(
        run(&mut first, &space) == UserEvent::Syscall,
        "no system call"
    );
    let result = first.registers().rdi;
    check!(result == 42, "7 * 6 is {result}");
    Ok(())
}

/// SMAP and SMEP: with a user address space active, the kernel can neither read nor execute it.
fn kernel_cannot_touch_it() -> Result<(), String> {
    if !features().has(Features::SMAP) || !features().has(Features::SMEP) {
        return Ok(());
    }
    static TARGET: AtomicUsize = AtomicUsize::new(CODE);
    let space = space()?;
    let mut context = context(&raw const user_hello, 0);
    run(&mut context, &space);
    let read = catch(|| touch(TARGET.load(Ordering::Relaxed)));
    let expected = FaultKind::PageFault {
        write: false,
        execute: false,
    };
    check!(
        read.is_some_and(|fault| fault.kind == expected),
        "read: {read:?}"
    );
    let call = catch(|| super::faults::call(TARGET.load(Ordering::Relaxed)));
    let expected = FaultKind::PageFault {
        write: false,
        execute: true,
    };
    check!(
        call.is_some_and(|fault| fault.kind == expected),
        "call: {call:?}"
    );
    Ok(())
}

fn maps_untyped_only() -> Result<(), String> {
    let space = space()?;
    let map = |kind, address| {
        let frame = Frames::alloc_zeroed(1, kind).ok_or(VmError::NoMemory)?;
        space.map(address, frame, UserProt::READ, Sharing::Plain)
    };
    check!(
        map(FrameKind::Kernel, 0x1000) == Err(VmError::NotUntyped),
        "a kernel frame was mapped"
    );
    check!(
        map(FrameKind::Untyped, CODE) == Err(VmError::Occupied),
        "code was replaced"
    );
    for address in [
        0,
        0x1001,
        mem::KSPACE,
        crate::user::USER_END,
        usize::MAX & !0xfff,
    ] {
        let result = map(FrameKind::Untyped, address);
        check!(
            result == Err(VmError::BadAddress),
            "{address:#x}: {result:?}"
        );
    }
    check!(
        space.protect(0x1000, 1, UserProt::READ) == Ok(1) && space.query(0x1000).is_none(),
        "protecting nothing maps something"
    );
    Ok(())
}

fn copies_are_checked() -> Result<(), String> {
    let space = space()?;
    let mut byte = [0; 2];
    let kernel = space.read(mem::DIRECT_MAP, &mut byte);
    check!(
        kernel == Err(VmError::BadAddress),
        "kernel memory: {kernel:?}"
    );
    let beyond = space.read(STACK_TOP - 1, &mut byte);
    check!(
        beyond == Err(VmError::NotMapped),
        "beyond the stack: {beyond:?}"
    );
    let code = space.write(CODE, &byte);
    check!(code == Err(VmError::Denied), "read-only memory: {code:?}");
    check!(
        space.read(usize::MAX, &mut byte).is_err(),
        "the end of addresses was read"
    );
    Ok(())
}

fn space_comes_back() -> Result<(), String> {
    drop(space()?);
    gives_back(|| {
        for _ in 0..10 {
            let space = space()?;
            run(&mut context(&raw const user_hello, 0), &space);
            let unmapped = space.unmap(STACK, 1);
            check!(unmapped == Ok(1), "{unmapped:?}");
            let again = space.read(STACK, &mut [0]);
            check!(again == Err(VmError::NotMapped), "it is still there");
        }
        Ok(())
    })
}
