//! Starting the other processors (Intel SDM volume 3, 9.4.4): INIT, then STARTUP with the page of
//! the code below, which is copied under 1 MiB, where a processor begins in real mode.
//!
//! It goes through protected mode to long mode on the provisional page table of the boot code,
//! which maps the first GiB at address 0 too, and then leaves that at once for the kernel's own
//! table, in the higher half, on a stack of its own.

use core::arch::{global_asm, naked_asm};

use super::entry::boot_page_table;
use super::{controller, lapic, page};
use crate::arch::upcalls::{self, PAGE_SIZE, firmware, now_ns, phys_to_virt, relax};

/// Physical page where the code goes; the first MiB is reserved for such uses.
const PAGE: u8 = 8;
/// How long a processor may take to show up after the first and the second STARTUP. The second is
/// long: on a busy host an emulated processor may not run at all for a while.
const PATIENCE_NS: [u64; 2] = [20_000_000, 5_000_000_000];
/// How long to wait between INIT and STARTUP; processors of this century need no 10 ms.
const INIT_NS: u64 = 10_000;

// SAFETY: the assembly below defines them, one after the other. They are used as addresses; what
// lies between them is bytes.
unsafe extern "C" {
    static start_code: u8;
    static start_code_end: u8;
    static start_parameters: u8;
}

/// What the code at `start_parameters` reads.
#[repr(C)]
struct Parameters {
    boot_page_table: u64,
    entry: u64,
    stack_top: u64,
    page_table: u64,
}

/// The APIC ids of all processors that the firmware lists as usable, but the calling one.
pub(crate) fn others() -> impl Iterator<Item = u32> {
    let own = lapic::id();
    let listed = firmware().cpus.iter().map(|cpu| cpu.apic_id);
    listed.filter(move |id| *id != own)
}

/// Starts a processor, by its APIC id, as number `index`. It comes to [`upcalls::arrive`], with
/// interrupts off, on the stack that ends at `stack_top`; `is_here` says when. Whether it came: if
/// not, it never will.
///
/// # Safety
/// The stack is 16-byte aligned at its end, the started processor's alone, and mapped for ever.
pub(crate) unsafe fn start(
    index: usize,
    apic_id: u32,
    stack_top: usize,
    is_here: &dyn Fn() -> bool,
) -> bool {
    controller::set_number(index, apic_id);
    copy_code(stack_top);
    lapic::send_init(apic_id);
    wait_until(now_ns() + INIT_NS, || false);
    for patience in PATIENCE_NS {
        lapic::send_startup(apic_id, PAGE);
        if wait_until(now_ns() + patience, is_here) {
            return true;
        }
    }
    // It must not come later, when code and stack are another's.
    lapic::send_init(apic_id);
    wait_until(now_ns() + INIT_NS, || false);
    false
}

/// Spins until `done` or the deadline; returns whether it was `done`.
fn wait_until(deadline_ns: u64, done: impl Fn() -> bool) -> bool {
    while !done() {
        if now_ns() >= deadline_ns {
            return done();
        }
        relax();
    }
    true
}

/// Copies the code to its page and fills in the parameters.
fn copy_code(stack_top: usize) {
    let source = &raw const start_code;
    let target = phys_to_virt(u64::from(PAGE) * PAGE_SIZE as u64) as *mut u8;
    let length = &raw const start_code_end as usize - source as usize;
    let parameters = &raw const start_parameters as usize - source as usize;
    assert!(length <= PAGE_SIZE, "the start-up code fits its page");
    let values = Parameters {
        boot_page_table: boot_page_table(),
        entry: enter as *const () as u64,
        stack_top: stack_top as u64,
        page_table: page::root(),
    };
    // SAFETY: the page lies in the first MiB, which the frame allocator never hands out; source
    // and length are those of the code; the parameters lie inside it, 8-byte aligned.
    unsafe {
        target.copy_from_nonoverlapping(source, length);
        target.add(parameters).cast::<Parameters>().write(values);
    }
}

/// First kernel code of a started processor: RSI holds the kernel's page table, RDI the end of the
/// scheduler stack, which only that table maps. Both tables map this code.
#[unsafe(naked)]
extern "C" fn enter() -> ! {
    naked_asm!(
        "mov cr3, rsi",
        "mov rsp, rdi",
        "xor ebp, ebp",
        "call {arrive}",
        "ud2",
        arrive = sym upcalls::arrive,
    )
}

// Bits as in the boot entry: CR4.PAE = 1 << 5; EFER.LME = 1 << 8, EFER.NXE = 1 << 11 (bit 20 of
// CPUID 0x80000001 EDX, shifted by 9); CR0.PG = 1 << 31, CR0.WP = 1 << 16.
global_asm!(
    ".section .rodata.start_code, \"a\"",
    ".balign 16",
    ".global start_code",
    ".global start_code_end",
    ".global start_parameters",
    ".code16",
    "start_code:",
    "  cli",
    "  cld",
    "  mov ax, cs",
    "  mov ds, ax",
    "  .byte 0x0f, 0x01, 0x16", // lgdt [disp16]; the assembler takes no difference of symbols
    "  .word start_gdt_pointer - start_code",
    "  mov eax, cr0",
    "  or eax, 1",
    "  mov cr0, eax",
    "  .byte 0x66, 0xea",
    "  .long start_32 - start_code + {base}",
    "  .word 24",
    ".code32",
    "start_32:",
    "  mov eax, 16",
    "  mov ds, eax",
    "  mov es, eax",
    "  mov ss, eax",
    "  mov eax, cr4",
    "  or eax, 1 << 5",
    "  mov cr4, eax",
    "  .byte 0xa1", // mov eax, [disp32]
    "  .long start_parameters - start_code + {base}",
    "  mov cr3, eax",
    "  mov eax, 0x80000001",
    "  cpuid",
    "  and edx, 1 << 20",
    "  shr edx, 9",
    "  mov edi, edx",
    "  mov ecx, 0xc0000080",
    "  rdmsr",
    "  or eax, 1 << 8",
    "  or eax, edi",
    "  wrmsr",
    "  mov eax, cr0",
    "  or eax, 0x80010001",
    "  mov cr0, eax",
    "  .byte 0xea",
    "  .long start_64 - start_code + {base}",
    "  .word 8",
    ".code64",
    "start_64:",
    "  mov eax, 16",
    "  mov ds, eax",
    "  mov es, eax",
    "  mov ss, eax",
    "  mov rsi, qword ptr [rip + start_parameters + 24]",
    "  mov rdi, qword ptr [rip + start_parameters + 16]",
    "  mov rax, qword ptr [rip + start_parameters + 8]",
    "  jmp rax",
    ".balign 8",
    "start_gdt:",
    "  .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cf9b000000ffff",
    "start_gdt_pointer:",
    "  .word 31",
    "  .long start_gdt - start_code + {base}",
    ".balign 8",
    "start_parameters:",
    "  .quad 0, 0, 0, 0",
    "start_code_end:",
    base = const PAGE as usize * PAGE_SIZE,
);
