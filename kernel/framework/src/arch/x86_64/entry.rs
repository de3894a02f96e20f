//! The PVH entry point (the page `pvh.pandoc` of Xen's documentation): 32-bit protected mode to the
//! higher half.
//!
//! The provisional page tables map the first GiB of physical memory three times: at 0 (for the
//! jump itself), at the direct map and at the kernel's link address. They stay in memory because
//! application processors pass through them too; the kernel's own tables, built later, have no
//! identity mapping.

use core::arch::global_asm;

use super::gdt::GuardedStack;
use crate::arch::upcalls;

const BOOT_STACK_BYTES: usize = 64 * 1024;

static BOOT_STACK: GuardedStack<BOOT_STACK_BYTES> = GuardedStack::new();

/// The guard page below the boot stack.
pub(super) fn boot_stack_guard() -> usize {
    BOOT_STACK.guard_page()
}

/// Lowest usable address of the boot stack.
pub(crate) fn boot_stack_low() -> usize {
    BOOT_STACK.low()
}

// SAFETY: the assembly below defines it. Only its address is used.
unsafe extern "C" {
    static boot_pml4: u8;
}

/// Physical address (below 4 GiB) of the provisional top-level page table, for the start-up code
/// of application processors. It maps the first GiB at 0, at the direct map and at the kernel's
/// link address, all writable and executable: leave it as soon as possible.
pub(super) fn boot_page_table() -> u64 {
    (&raw const boot_pml4) as u64
}

/// 64-bit entry: moves to the boot stack; RDI holds the start-info address.
#[unsafe(naked)]
extern "C" fn high_entry() -> ! {
    core::arch::naked_asm!(
        "lea rsp, [rip + {stack} + {top}]",
        "xor ebp, ebp",
        "call {main}",
        "ud2",
        stack = sym BOOT_STACK,
        top = const 4096 + BOOT_STACK_BYTES,
        main = sym upcalls::boot_main,
    )
}

// Bits: CR4.PAE = 1 << 5; EFER.LME = 1 << 8, EFER.NXE = 1 << 11;
// CR0.PG = 1 << 31, CR0.WP = 1 << 16.
// Page entries: 3 = present, writable; 0x83 = the same as a 2 MiB page.
global_asm!(
    ".section .note.pvh, \"a\", @note",
    ".balign 4",
    ".long 4, 8, 18", // name size, descriptor size, XEN_ELFNOTE_PHYS32_ENTRY
    ".asciz \"Xen\"",
    ".quad pvh_entry",
    ".section .boot.text, \"ax\"",
    ".code32",
    ".global pvh_entry",
    "pvh_entry:",
    "  cld",
    "  mov esi, ebx", // CPUID clobbers EBX
    "  mov edi, offset boot_pd",
    "  mov eax, 0x83",
    "  xor ecx, ecx",
    "2:",
    "  mov [edi + ecx*8], eax",
    "  mov dword ptr [edi + ecx*8 + 4], 0",
    "  add eax, 0x200000",
    "  inc ecx",
    "  cmp ecx, 512",
    "  jne 2b",
    "  mov eax, offset boot_pd",
    "  or eax, 3",
    "  mov dword ptr [boot_pdpt_low], eax",
    "  mov dword ptr [boot_pdpt_high + 510*8], eax",
    "  mov eax, offset boot_pdpt_low",
    "  or eax, 3",
    "  mov dword ptr [boot_pml4], eax",
    "  mov dword ptr [boot_pml4 + 256*8], eax",
    "  mov eax, offset boot_pdpt_high",
    "  or eax, 3",
    "  mov dword ptr [boot_pml4 + 511*8], eax",
    "  mov eax, cr4",
    "  or eax, 1 << 5",
    "  mov cr4, eax",
    "  mov eax, offset boot_pml4",
    "  mov cr3, eax",
    "  mov eax, 0x80000001",
    "  cpuid",
    "  and edx, 1 << 20",
    "  shr edx, 9", // NX bit of CPUID to EFER.NXE
    "  mov edi, edx",
    "  mov ecx, 0xc0000080",
    "  rdmsr",
    "  or eax, 1 << 8",
    "  or eax, edi",
    "  wrmsr",
    "  mov eax, cr0",
    "  or eax, 0x80010001",
    "  mov cr0, eax",
    "  lgdt [boot_gdt_pointer]",
    "  .byte 0xea", // far jump to 8:boot_long_mode (PVH gives no stack for a far return)
    "  .long boot_long_mode",
    "  .word 8",
    ".code64",
    "boot_long_mode:",
    "  mov eax, 16",
    "  mov ds, eax",
    "  mov es, eax",
    "  mov ss, eax",
    "  mov edi, esi",
    "  movabs rax, offset {high}",
    "  jmp rax",
    ".balign 8",
    "boot_gdt:",
    "  .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff",
    "boot_gdt_pointer:",
    "  .word 23",
    "  .quad boot_gdt",
    ".section .boot.bss, \"aw\", @nobits",
    ".balign 4096",
    ".global boot_pml4",
    "boot_pml4: .skip 4096",
    "boot_pdpt_low: .skip 4096",
    "boot_pdpt_high: .skip 4096",
    "boot_pd: .skip 4096",
    high = sym high_entry,
);
