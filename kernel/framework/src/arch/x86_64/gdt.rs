//! Segment descriptors, task-state segments and IST stacks, one set per processor.
//!
//! Every vector enters on an IST stack, so a thread whose own stack is full still gets its fault
//! reported. The boot processor's stacks are static; the others take theirs from kernel memory.

use core::arch::asm;
use core::cell::UnsafeCell;

use crate::arch::MAX_CPUS;
use crate::arch::upcalls::{NoMemory, alloc_stack};

/// Selector of ring-0 code.
pub const KERNEL_CODE: u16 = 0x08;
/// Selector of ring-0 data.
pub const KERNEL_DATA: u16 = 0x10;
/// Selector of ring-3 data, as SYSRET wants it: the one after [`KERNEL_DATA`].
pub const USER_DATA: u16 = 0x18 | 3;
/// Selector of ring-3 code.
pub const USER_CODE: u16 = 0x20 | 3;
const TSS: u16 = 0x28;

/// Which IST stack a vector uses (1 to 7, as the IDT counts them).
pub mod ist {
    /// Double fault.
    pub const DOUBLE_FAULT: u8 = 1;
    /// Non-maskable interrupt.
    pub const NMI: u8 = 2;
    /// Machine check.
    pub const MACHINE_CHECK: u8 = 3;
    /// All other exceptions. None of them can come while the frame of another is needed: their
    /// handlers raise none that the kernel survives.
    pub const FAULT: u8 = 4;
    /// Device, timer and inter-processor interrupts.
    pub const INTERRUPT: u8 = 5;
    /// Debug exceptions. They can come at the first instruction of any other handler: a watchpoint
    /// that `mov ss` hits is reported after the next instruction, which may be `int3` or `syscall`.
    pub const DEBUG: u8 = 6;
    /// How many are in use.
    pub const COUNT: usize = 6;
}

/// Bytes of each IST stack.
pub const IST_STACK_BYTES: usize = 16 * 1024;
const PAGE: usize = 4096;

/// A stack with the page below it left unmapped by the kernel page table.
#[repr(C, align(4096))]
pub(crate) struct GuardedStack<const BYTES: usize> {
    guard: [u8; PAGE],
    stack: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: only the processor that owns the stack touches it, through its stack pointer.
unsafe impl<const BYTES: usize> Sync for GuardedStack<BYTES> {}

impl<const BYTES: usize> GuardedStack<BYTES> {
    /// An unused stack.
    pub(crate) const fn new() -> Self {
        Self {
            guard: [0; PAGE],
            stack: UnsafeCell::new([0; BYTES]),
        }
    }

    /// Address of the guard page.
    pub(crate) fn guard_page(&self) -> usize {
        self.guard.as_ptr() as usize
    }

    /// One past the highest address of the stack.
    pub(crate) fn top(&self) -> usize {
        self.stack.get() as usize + BYTES
    }

    /// Lowest usable address of the stack.
    pub(crate) fn low(&self) -> usize {
        self.stack.get() as usize
    }
}

static BOOT_IST: [GuardedStack<IST_STACK_BYTES>; ist::COUNT] =
    [const { GuardedStack::new() }; ist::COUNT];

/// The guard pages among the kernel's static data, for the kernel page table to leave out.
pub(crate) fn static_guard_pages() -> impl Iterator<Item = usize> {
    BOOT_IST.iter().map(GuardedStack::guard_page)
}

/// A 64-bit task-state segment (SDM volume 3, 8.7); only the IST entries matter.
#[repr(C, packed(4))]
struct Tss {
    reserved0: u32,
    rsp: [u64; 3],
    reserved1: u64,
    ist: [u64; 7],
    reserved2: u64,
    reserved3: u16,
    iomap_base: u16,
}

/// The tables of one processor.
#[repr(C, align(64))]
struct Tables {
    gdt: [u64; 7],
    tss: Tss,
}

struct TablesCell(UnsafeCell<Tables>);

// SAFETY: `init` runs once per index, on the processor that then owns the entry; afterwards only
// the processor's hardware reads (and marks busy) the entry.
unsafe impl Sync for TablesCell {}

static TABLES: [TablesCell; MAX_CPUS] = [const {
    TablesCell(UnsafeCell::new(Tables {
        gdt: [0; 7],
        tss: Tss {
            reserved0: 0,
            rsp: [0; 3],
            reserved1: 0,
            ist: [0; 7],
            reserved2: 0,
            reserved3: 0,
            iomap_base: core::mem::size_of::<Tss>() as u16,
        },
    }))
}; MAX_CPUS];

const CODE_64: u64 = 0x00af_9b00_0000_ffff;
const DATA: u64 = 0x00cf_9300_0000_ffff;
const DPL_3: u64 = 3 << 45;

/// Fills in and loads the tables of processor `cpu_index`.
pub(super) fn init(cpu_index: usize) -> Result<(), NoMemory> {
    let stacks = ist_stacks(cpu_index)?;
    // SAFETY: called once per processor by `init_cpu`, before the tables are in use, so this is
    // the only reference.
    let tables = unsafe { &mut *TABLES[cpu_index].0.get() };
    let mut ist = [0; 7];
    ist[..ist::COUNT].copy_from_slice(&stacks);
    tables.tss.ist = ist;
    let (low, high) = tss_descriptor(core::ptr::from_ref(&tables.tss) as u64);
    tables.gdt = [0, CODE_64, DATA, DATA | DPL_3, CODE_64 | DPL_3, low, high];
    load(&tables.gdt);
    Ok(())
}

/// The tops of the IST stacks of a processor.
fn ist_stacks(cpu_index: usize) -> Result<[u64; ist::COUNT], NoMemory> {
    let mut tops = [0; ist::COUNT];
    for (i, top) in tops.iter_mut().enumerate() {
        *top = if cpu_index == 0 {
            BOOT_IST[i].top() as u64
        } else {
            alloc_stack(IST_STACK_BYTES / PAGE)?.top as u64
        };
    }
    Ok(tops)
}

/// Descriptor of an available 64-bit TSS (SDM volume 3, 8.2.3).
fn tss_descriptor(base: u64) -> (u64, u64) {
    let limit = core::mem::size_of::<Tss>() as u64 - 1;
    let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    (low, base >> 32)
}

/// Loads GDTR, the segment registers and the task register.
fn load(gdt: &'static [u64; 7]) {
    let pointer = super::idt::TablePointer {
        limit: core::mem::size_of_val(gdt) as u16 - 1,
        base: gdt.as_ptr() as u64,
    };
    // SAFETY: the table is static and holds flat ring-0 segments at the selectors loaded here, and
    // a TSS whose IST entries are valid stacks. The far return reloads CS with the same code.
    unsafe {
        asm!(
            "lgdt [{pointer}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ds, {data:e}",
            "mov es, {data:e}",
            "mov ss, {data:e}",
            "xor {scratch:e}, {scratch:e}",
            "mov fs, {scratch:e}",
            "mov gs, {scratch:e}",
            "lldt {scratch:x}",
            "ltr {tss:x}",
            pointer = in(reg) &pointer,
            code = in(reg) u64::from(KERNEL_CODE),
            data = in(reg) u32::from(KERNEL_DATA),
            tss = in(reg) TSS,
            scratch = out(reg) _,
        );
    }
}
