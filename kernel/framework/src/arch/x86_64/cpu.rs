//! Processor features, and the block of a processor by its register, GS.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::regs;
use crate::arch::cpu::{PerCpu, SCHED_WORDS, block};
use crate::arch::upcalls::kprintln;

/// What is kept in the block for this machine alone.
#[repr(C)]
pub(in crate::arch) struct Own {
    /// The user stack pointer while the system-call entry switches stacks.
    pub(super) user_rsp: AtomicUsize,
    /// Kernel stack pointer to return to when user mode traps.
    pub(super) kernel_rsp: AtomicUsize,
    /// Address of the registers of the program that runs on this processor, or ran last.
    pub(super) user_registers: AtomicUsize,
    /// Vector and error code of the last trap from ring 3.
    pub(super) user_vector: AtomicUsize,
    pub(super) user_error: AtomicUsize,
}

impl Own {
    /// Of a processor that runs no program.
    pub(in crate::arch) const fn new() -> Self {
        Self {
            user_rsp: AtomicUsize::new(0),
            kernel_rsp: AtomicUsize::new(0),
            user_registers: AtomicUsize::new(0),
            user_vector: AtomicUsize::new(0),
            user_error: AtomicUsize::new(0),
        }
    }
}

const MSR_EFER: u32 = 0xc000_0080;
const MSR_STAR: u32 = 0xc000_0081;
const MSR_LSTAR: u32 = 0xc000_0082;
const MSR_SFMASK: u32 = 0xc000_0084;
const MSR_GS_BASE: u32 = 0xc000_0101;
const MSR_KERNEL_GS_BASE: u32 = 0xc000_0102;

/// Protection features that the kernel uses when the processor has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u32);

impl Features {
    /// No-execute pages.
    pub const NX: Self = Self(1);
    /// Ring 0 cannot execute user pages.
    pub const SMEP: Self = Self(2);
    /// Ring 0 cannot touch user pages by accident.
    pub const SMAP: Self = Self(4);
    /// Ring 3 cannot read descriptor-table registers.
    pub const UMIP: Self = Self(8);
    /// 1 GiB pages.
    pub const PAGE_1G: Self = Self(16);
    /// XSAVE and its control register.
    pub const XSAVE: Self = Self(32);

    /// Whether all features of `other` are present.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Asks the processor.
    fn detect() -> Self {
        let basic = regs::cpuid(1, 0);
        let structured = regs::cpuid(7, 0);
        let extended = regs::cpuid(0x8000_0001, 0);
        let bit = |word: u32, n: u32, feature: Self| if word >> n & 1 != 0 { feature.0 } else { 0 };
        Self(
            bit(extended.edx, 20, Self::NX)
                | bit(structured.ebx, 7, Self::SMEP)
                | bit(structured.ebx, 20, Self::SMAP)
                | bit(structured.ecx, 2, Self::UMIP)
                | bit(extended.edx, 26, Self::PAGE_1G)
                | bit(basic.ecx, 26, Self::XSAVE),
        )
    }
}

static FEATURES: AtomicU32 = AtomicU32::new(0);

/// The features in use, as found on the boot processor.
#[inline]
pub fn features() -> Features {
    Features(FEATURES.load(Ordering::Relaxed))
}

/// The processor this code runs on. A preemptible caller may have moved by the time it looks.
#[inline]
pub fn this_cpu() -> &'static PerCpu {
    let block: *const PerCpu;
    // SAFETY: `install_block` put the address of a static block into its own word before any code
    // that calls this ran on this processor.
    unsafe {
        core::arch::asm!("mov {}, gs:[{own}]", out(reg) block, own = const abi::words::OWN, options(nostack, readonly, preserves_flags));
        &*block
    }
}

/// Instruction pointer, stack pointer and rbp of whoever calls this.
#[inline(always)]
pub(crate) fn place() -> [usize; 3] {
    let (ip, sp, bp);
    // SAFETY: reads registers only.
    unsafe {
        core::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) ip, out(reg) sp, out(reg) bp, options(nomem, nostack, preserves_flags))
    };
    [ip, sp, bp]
}

/// Whether this is QEMU's software emulation.
pub(crate) fn is_emulated() -> bool {
    let under_hypervisor = regs::cpuid(1, 0).ecx >> 31 != 0;
    let name = regs::cpuid(0x4000_0000, 0);
    under_hypervisor
        && [name.ebx, name.ecx, name.edx]
            == [
                u32::from_le_bytes(*b"TCGT"),
                u32::from_le_bytes(*b"CGTC"),
                u32::from_le_bytes(*b"GTCG"),
            ]
}

/// Word `WORD` of [`PerCpu::sched`] of the processor this code runs on, read in one instruction, so
/// that a preemption cannot fall between finding the block and reading it.
#[inline]
pub(crate) fn sched_word<const WORD: usize>() -> usize {
    const { assert!(WORD < SCHED_WORDS) };
    let value;
    // SAFETY: GS points to a block of `PerCpu` from `install_block` on, and the word lies in it.
    unsafe {
        core::arch::asm!(
            "mov {}, gs:[{offset}]",
            out(reg) value,
            offset = const offset_of!(PerCpu, sched) + 8 * WORD,
            options(nostack, readonly, preserves_flags),
        );
    }
    value
}

/// Points GS at the block of processor `cpu_index`.
pub(super) fn install_block(cpu_index: usize) {
    let block = block(cpu_index);
    let address = core::ptr::from_ref(block) as usize;
    block.words.own.store(address, Ordering::Relaxed);
    block.words.number.store(cpu_index, Ordering::Relaxed);
    // SAFETY: both registers exist on every x86-64 processor; the kernel's GS base must be this
    // block from here on, and user mode starts with a base of zero.
    unsafe {
        regs::wrmsr(MSR_GS_BASE, address as u64);
        regs::wrmsr(MSR_KERNEL_GS_BASE, 0);
    }
}

const CR0_MP: u64 = 1 << 1;
const CR0_EM: u64 = 1 << 2;
const CR0_TS: u64 = 1 << 3;
const CR0_NE: u64 = 1 << 5;
const CR0_WP: u64 = 1 << 16;
const CR4_PGE: u64 = 1 << 7;
const CR4_OSFXSR: u64 = 1 << 9;
const CR4_OSXMMEXCPT: u64 = 1 << 10;
const CR4_UMIP: u64 = 1 << 11;
const CR4_OSXSAVE: u64 = 1 << 18;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

/// Turns on every protection feature that the processor has.
pub(super) fn enable_features() {
    let found = Features::detect();
    FEATURES.store(found.0, Ordering::Relaxed);
    let mut cr4 = regs::cr4() | CR4_PGE | CR4_OSFXSR | CR4_OSXMMEXCPT;
    for (feature, bit) in [
        (Features::SMEP, CR4_SMEP),
        (Features::SMAP, CR4_SMAP),
        (Features::UMIP, CR4_UMIP),
        (Features::XSAVE, CR4_OSXSAVE),
    ] {
        if found.has(feature) {
            cr4 |= bit;
        }
    }
    let cr0 = (regs::cr0() | CR0_MP | CR0_NE | CR0_WP) & !(CR0_EM | CR0_TS);
    // SAFETY: only announced bits are set; paging, PAE and write protection stay on. The kernel
    // has no user mappings, so SMEP and SMAP cannot fault it. EFER.NXE is set where NX exists.
    unsafe {
        regs::set_cr0(cr0);
        regs::set_cr4(cr4);
        let nxe = if found.has(Features::NX) { 1 << 11 } else { 0 };
        regs::wrmsr(MSR_EFER, regs::rdmsr(MSR_EFER) | nxe);
    }
    super::vector::enable();
}

/// Prepares the SYSCALL instruction: where it enters and which flags it clears.
pub(super) fn enable_syscall() {
    let star = u64::from(super::gdt::KERNEL_DATA) << 48 | u64::from(super::gdt::KERNEL_CODE) << 32;
    // SAFETY: the registers exist on every x86-64 processor. The entry is the assembly in `trap`,
    // which expects exactly these selectors and interrupts masked. SFMASK clears every flag
    // that could disturb the kernel (IF, DF, TF, AC, NT, IOPL).
    unsafe {
        regs::wrmsr(MSR_EFER, regs::rdmsr(MSR_EFER) | 1);
        regs::wrmsr(MSR_STAR, star);
        regs::wrmsr(MSR_LSTAR, super::trap::syscall_entry_address());
        regs::wrmsr(MSR_SFMASK, 0x0004_7700);
    }
}

/// Says in the log which protection features are on and which the processor lacks.
pub fn log_features() {
    let found = features();
    for (feature, name) in [
        (Features::NX, "NX"),
        (Features::SMEP, "SMEP"),
        (Features::SMAP, "SMAP"),
        (Features::UMIP, "UMIP"),
    ] {
        if !found.has(feature) {
            kprintln!("cpu: WARNING: no {name}; the kernel runs without this protection");
        }
    }
    if found.has(Features(15)) {
        kprintln!("cpu: NX SMEP SMAP UMIP on");
    }
}
