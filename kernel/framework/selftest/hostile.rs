//! Programs in ring 3 that try each instruction that could harm the kernel.

use alloc::format;
use alloc::string::String;
use core::arch::global_asm;

use super::Test;
use super::user::{CODE, STACK_TOP, hello_and_loop, run, space, space_with};
use crate::arch::cpu::{Features, features};
use crate::arch::regs;
use crate::check;
use crate::user::{UserContext, UserEvent, VmSpace};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("user-hostile-instructions", instructions),
    ("user-hostile-flags", flags),
    ("user-segments-do-not-pass-on", segments_do_not_pass_on),
    ("user-float-exception-pends", float_exception),
];

/// Defines programs: each is a few instructions and, should they succeed, a system call. With each
/// goes the vector of the exception that it must get instead.
macro_rules! programs {
    ($($name:literal $vector:literal $($line:literal)+;)*) => {
        global_asm!(
            ".section .rodata.hostile_programs, \"a\"",
            ".global hostile_start, hostile_end, hostile_table",
            "hostile_start:",
            $(concat!("hostile_", $name, ":"), $($line,)+ "syscall", "ud2",)*
            "hostile_end:",
            ".balign 8",
            "hostile_table:",
            $(concat!(".quad hostile_", $name, " - hostile_start"),)*
            ".text",
        );
        static ROWS: &[(&str, u8)] = &[$(($name, $vector)),*];
    };
}

programs! {
    "cli" 13 "cli";
    "sti" 13 "sti";
    "hlt" 13 "hlt";
    "in" 13 "mov edx, 0x3f8" "in al, dx";
    "out" 13 "out 0x80, al";
    "outs" 13 "mov edx, 0x3f8" "lea rsi, [rsp - 8]" "outsb";
    "read_cr0" 13 "mov rax, cr0";
    "read_cr2" 13 "mov rax, cr2";
    "write_cr0" 13 "mov cr0, rax";
    "write_cr3" 13 "mov cr3, rax";
    "write_cr4" 13 "mov cr4, rax";
    "write_cr8" 13 "mov cr8, rax";
    "read_dr6" 13 "mov rax, dr6";
    "write_dr0" 13 "mov dr0, rax";
    "write_dr7" 13 "mov eax, 0x402" "mov dr7, rax";
    "rdmsr" 13 "mov ecx, 0xc0000101" "rdmsr";
    "wrmsr" 13 "mov ecx, 0xc0000101" "xor eax, eax" "xor edx, edx" "wrmsr";
    "rdpmc" 13 "xor ecx, ecx" "rdpmc";
    "lgdt" 13 "lgdt [rsp - 16]";
    "lidt" 13 "lidt [rsp - 16]";
    "lldt" 13 "xor eax, eax" "lldt ax";
    "ltr" 13 "mov eax, 0x28" "ltr ax";
    "lmsw" 13 "xor eax, eax" "lmsw ax";
    "clts" 13 "clts";
    "invlpg" 13 "invlpg [rsp]";
    "invd" 13 "invd";
    "wbinvd" 13 "wbinvd";
    "swapgs" 13 "swapgs";
    "sysret" 13 "mov rcx, 0" "sysretq";
    "sysexit" 13 "sysexit";
    "sysenter" 13 "sysenter";
    "xsetbv" 13 "xor ecx, ecx" "mov eax, 7" "xor edx, edx" "xsetbv";
    "stac" 6 "stac";
    "clac" 6 "clac";
    "wrgsbase" 6 "xor eax, eax" "wrgsbase rax";
    "rdfsbase" 6 "rdfsbase rax";
    "rdpkru" 6 "xor ecx, ecx" "rdpkru";
    "rsm" 6 "rsm";
    "ud2" 6 "ud2";
    "divide" 0 "xor ecx, ecx" "div ecx";
    "int3" 3 "int3";
    "icebp" 1 ".byte 0xf1";
    "int_debug" 13 ".byte 0xcd, 1";
    "int_nmi" 13 "int 2";
    "int_double_fault" 13 "int 8";
    "int_page_fault" 13 "int 14";
    "int_machine_check" 13 "int 18";
    "int_device" 13 "int 0x30";
    "int_linux" 13 "int 0x80";
    "int_timer" 13 "int 0xf0";
    "int_request" 13 "int 0xf1";
    "int_spurious" 13 "int 0xff";
    "kernel_ds" 13 "mov eax, 8" "mov ds, eax";
    "kernel_ss" 13 "mov eax, 0x10" "mov ss, eax";
    "null_ss" 13 "xor eax, eax" "mov ss, eax";
    "tss_as_gs" 13 "mov eax, 0x2b" "mov gs, eax";
    "beyond_gdt" 13 "mov eax, 0x7fff" "mov fs, eax";
    "ldt_as_fs" 13 "mov eax, 7" "mov fs, eax";
    "far_return" 13 "push 8" "lea rax, [rip]" "push rax" "retfq";
    "iret_to_ring_0" 13 "mov rbx, rsp" "push 0x10" "push rbx" "push 2" "push 8" "lea rax, [rip]" "push rax" "iretq";
    "iret_with_bad_rip" 13 "mov rbx, rsp" "push 0x1b" "push rbx" "push 2" "push 0x23" "mov rax, 0x8000000000000000" "push rax" "iretq";
    "non_canonical" 13 "mov rax, 0x8000000000000000" "mov al, [rax]";
    "non_canonical_jump" 13 "mov rax, 0x800000000000" "jmp rax";
    "non_canonical_stack" 12 "mov rsp, 0x8000000000000000" "push rax";
}

// SAFETY: the assembly above defines them; the table has a word for each row. It is constant.
unsafe extern "C" {
    static hostile_start: u8;
    static hostile_end: u8;
    static hostile_table: [u64; ROWS.len()];
}

global_asm!(
    ".section .rodata.flag_program, \"a\"",
    ".global flag_program, flag_program_end",
    "flag_program:",
    "  mov eax, 0x003c74d5", // all but TF and IF: DF, NT, IOPL, AC, VIF, VIP, ID, and the arithmetic ones
    "  push rax",
    "  popfq",
    "  syscall",
    "  push rax",
    "  popfq",
    "  int3",
    "  push rax",
    "  popfq",
    "  mov al, [0]",
    "2:",
    "  push rax",
    "  popfq",
    "  jmp 2b",
    "flag_program_end:",
    ".text",
);
// SAFETY: the assembly above defines them, in this order. Only their addresses are used.
unsafe extern "C" {
    static flag_program: u8;
    static flag_program_end: u8;
}

global_asm!(
    ".section .rodata.segment_programs, \"a\"",
    ".global segment_set, segment_get, segment_end",
    "segment_set:",
    "  mov eax, 0x1b",
    "  mov ds, eax",
    "  mov es, eax",
    "  mov fs, eax",
    "  mov gs, eax",
    "  syscall",
    "segment_get:",
    "  mov eax, ds",
    "  mov ebx, es",
    "  mov edx, fs",
    "  mov esi, gs",
    "  syscall",
    "segment_end:",
    ".text",
);
// SAFETY: the assembly above defines them, in this order. Only their addresses are used.
unsafe extern "C" {
    static segment_set: u8;
    static segment_get: u8;
    static segment_end: u8;
}

global_asm!(
    ".section .rodata.float_program, \"a\"",
    ".global float_program, float_program_end",
    "float_program:",
    "  fninit",
    "  mov word ptr [rsp - 8], 0x37b", // division by zero unmasked
    "  fldcw [rsp - 8]",
    "  fld1",
    "  fldz",
    "  fdivp st(1), st",
    "  syscall",
    "  fwait",
    "  syscall",
    "float_program_end:",
    ".text",
);
// SAFETY: the assembly above defines them, in this order. Only their addresses are used.
unsafe extern "C" {
    static float_program: u8;
    static float_program_end: u8;
}

/// A space with the programs of the table.
fn hostile_space() -> Result<VmSpace, String> {
    let start = &raw const hostile_start;
    let length = (&raw const hostile_end) as usize - start as usize;
    // SAFETY: both labels are in the constants of this image, in this order.
    space_with(unsafe { core::slice::from_raw_parts(start, length) })
}

/// Whether ring 0 has flags that a program may have set: alignment check, nested task, direction,
/// trap, I/O privilege.
fn inherits_flags() -> bool {
    regs::flags() & 0x0004_7500 != 0
}

fn instructions() -> Result<(), String> {
    let space = hostile_space()?;
    // SAFETY: see above.
    let offsets = unsafe { &hostile_table };
    for ((name, vector), offset) in ROWS.iter().zip(offsets) {
        let mut context = UserContext::new(CODE + *offset as usize, STACK_TOP - 64);
        let event = run(&mut context, &space);
        let got = match event {
            UserEvent::Exception { vector, .. } => vector,
            UserEvent::PageFault { .. } => 14,
            _ => return Err(format!("{name}: {event:?}")),
        };
        // Whether an instruction is undefined or privileged, and which fault an address makes,
        // processors say differently. QEMU has no `icebp`, and reads the stack of far returns as
        // ring 0 would, which SMAP refuses.
        let refused = |vector: u8| matches!(vector, 6 | 12 | 13 | 14);
        let expected = got == *vector || refused(got) && (refused(*vector) || *vector == 1);
        check!(expected, "{name}: {event:?}");
        check!(!inherits_flags(), "{name} left flags {:#x}", regs::flags());
    }
    Ok(())
}

/// All flags that a program can set are its own, whatever it enters the kernel by.
fn flags() -> Result<(), String> {
    let start = &raw const flag_program;
    let length = (&raw const flag_program_end) as usize - start as usize;
    // SAFETY: as above.
    let space = space_with(unsafe { core::slice::from_raw_parts(start, length) })?;
    let mut context = UserContext::new(CODE, STACK_TOP);
    let mut events = 0;
    while events < 3 {
        let event = crate::user::UserMode::new(&mut context, &space).run();
        check!(
            !inherits_flags(),
            "{event:?} left flags {:#x}",
            regs::flags()
        );
        let rflags = context.registers().rflags;
        check!(
            rflags & 0x3000 == 0,
            "the program has I/O privilege: {rflags:#x}"
        );
        match (event, events) {
            (UserEvent::Interrupted, _) => continue,
            (UserEvent::Syscall, 0) | (UserEvent::Exception { vector: 3, .. }, 1) => {
                check!(
                    rflags & 0x4_0400 == 0x4_0400,
                    "DF and AC are lost: {rflags:#x}"
                );
            }
            (UserEvent::PageFault { address: 0, .. }, 2) => {}
            other => return Err(format!("unexpected {other:?}")),
        }
        events += 1;
    }
    Ok(())
}

fn segments_do_not_pass_on() -> Result<(), String> {
    let start = &raw const segment_set;
    let length = (&raw const segment_end) as usize - start as usize;
    // SAFETY: as above.
    let space = space_with(unsafe { core::slice::from_raw_parts(start, length) })?;
    let mut set = UserContext::new(CODE, STACK_TOP);
    let get = CODE + ((&raw const segment_get) as usize - start as usize);
    let mut get = UserContext::new(get, STACK_TOP);
    for context in [&mut set, &mut get] {
        let event = run(context, &space);
        check!(event == UserEvent::Syscall, "{event:?}");
    }
    let r = get.registers();
    let seen = [r.rax, r.rbx, r.rdx, r.rsi];
    check!(seen == [0; 4], "selectors of another program: {seen:x?}");
    Ok(())
}

/// An x87 exception that a program has unmasked and not yet met stays its own over system calls.
fn float_exception() -> Result<(), String> {
    let start = &raw const float_program;
    let length = (&raw const float_program_end) as usize - start as usize;
    // SAFETY: as above.
    let space = space_with(unsafe { core::slice::from_raw_parts(start, length) })?;
    let mut context = UserContext::new(CODE, STACK_TOP);
    let event = run(&mut context, &space);
    check!(event == UserEvent::Syscall, "{event:?}");
    let mut other = hello_and_loop().0;
    let event = run(&mut other, &self::space()?);
    check!(event == UserEvent::Syscall, "another program: {event:?}");
    let event = run(&mut context, &space);
    let met = matches!(event, UserEvent::Exception { vector: 16, .. });
    check!(met, "{event:?}");
    check!(
        !features().has(Features::XSAVE) || regs::cr4() & 1 << 16 == 0,
        "FSGSBASE is on"
    );
    Ok(())
}
