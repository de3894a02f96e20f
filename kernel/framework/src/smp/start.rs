//! Starting the other processors (Intel SDM volume 3, 9.4.4): INIT, then STARTUP with the page of
//! the code below, which is copied under 1 MiB, where a processor begins in real mode.
//!
//! It goes through protected mode to long mode on the provisional page table of the boot code,
//! which maps the first GiB at address 0 too, and then leaves that at once for the kernel's own
//! table, in the higher half, on a stack of its own.

use core::arch::{global_asm, naked_asm};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::{APIC_IDS, ONLINE, request};
use crate::arch::{self, MAX_CPUS, interrupts, page};
use crate::irq::lapic;
use crate::mem::{self, PAGE_SIZE, Stack, phys_to_virt};
use crate::sync::relax;
use crate::{acpi, boot, kprintln, task, time};

/// Physical page where the code goes; the first MiB is reserved for such uses.
const PAGE: u8 = 8;
/// Pages of a scheduler stack.
const STACK_PAGES: usize = 4;
/// How long a processor may take to show up after the first and the second STARTUP. The second is
/// long: on a busy host an emulated processor may not run at all for a while.
const PATIENCE_NS: [u64; 2] = [20_000_000, 5_000_000_000];
/// How long to wait between INIT and STARTUP; processors of this century need no 10 ms.
const INIT_NS: u64 = 10_000;

/// The index, plus one, of the processor that has arrived last.
static ARRIVED: AtomicUsize = AtomicUsize::new(0);
/// Low end and top of the stack of the processor being started.
static STACK_LOW: AtomicUsize = AtomicUsize::new(0);
static STACK_TOP: AtomicUsize = AtomicUsize::new(0);

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

/// Starts all processors that the firmware lists as usable, up to [`MAX_CPUS`].
pub(crate) fn start_processors() {
    request::init();
    mem::tlb::set_shootdown(super::flush_everywhere);
    let own_id = lapic::id();
    APIC_IDS[0].store(own_id, Ordering::Relaxed);
    let listed = acpi::platform().cpus.iter().map(|cpu| cpu.apic_id);
    for apic_id in listed.filter(|id| *id != own_id) {
        let index = super::online();
        if index == MAX_CPUS {
            kprintln!("smp: more than {MAX_CPUS} processors; the others stay off");
            break;
        }
        if let Err(why) = start(index, apic_id) {
            kprintln!("smp: processor with APIC id {apic_id}: {why}");
        }
    }
    kprintln!("smp: {} processors", super::online());
}

/// Starts one processor as number `index`.
fn start(index: usize, apic_id: u32) -> Result<(), &'static str> {
    let stack = mem::alloc_stack(STACK_PAGES).map_err(|_| "no memory for its stack")?;
    STACK_LOW.store(stack.low, Ordering::Relaxed);
    STACK_TOP.store(stack.top, Ordering::Relaxed);
    APIC_IDS[index].store(apic_id, Ordering::Relaxed);
    copy_code(stack.top);
    lapic::send_init(apic_id);
    wait_until(time::now_ns() + INIT_NS, || false);
    for patience in PATIENCE_NS {
        lapic::send_startup(apic_id, PAGE);
        if wait_until(time::now_ns() + patience, || {
            ARRIVED.load(Ordering::Acquire) == index + 1
        }) {
            return Ok(());
        }
    }
    // It must not come later, when code and stack are another's.
    lapic::send_init(apic_id);
    wait_until(time::now_ns() + INIT_NS, || false);
    Err("does not start")
}

/// Spins until `done` or the deadline; returns whether it was `done`.
fn wait_until(deadline_ns: u64, done: impl Fn() -> bool) -> bool {
    while !done() {
        if time::now_ns() >= deadline_ns {
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
        boot_page_table: boot::boot_page_table(),
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
        arrive = sym arrive,
    )
}

/// Sets up the started processor and lets it run threads.
extern "C" fn arrive() -> ! {
    let index = super::online();
    if arch::init_cpu(index).is_err() {
        interrupts::halt_forever();
    }
    lapic::enable();
    time::enable_on_this_processor();
    let (low, top) = (
        STACK_LOW.load(Ordering::Relaxed),
        STACK_TOP.load(Ordering::Relaxed),
    );
    ONLINE.store(index + 1, Ordering::SeqCst);
    ARRIVED.store(index + 1, Ordering::Release);
    // SAFETY: the stack was allocated for this processor; nothing on it is needed again;
    // interrupts have been off since the start.
    unsafe { task::run_processor(low, top) }
}

/// Lets the boot processor run threads.
///
/// # Panics
/// If there is no memory for its scheduler stack.
pub(crate) fn enter_boot_processor() -> ! {
    let Stack { low, top } = mem::alloc_stack(STACK_PAGES).expect("memory at boot");
    // SAFETY: the stack is fresh, the boot stack is not needed any more, interrupts are off.
    unsafe { task::run_processor(low, top) }
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
