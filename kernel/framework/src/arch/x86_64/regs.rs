//! Thin wrappers of the privileged instructions.
//!
//! A function here is safe when no value of its arguments can break memory safety; the others say
//! what the caller owes. Reference: Intel SDM volume 2 and volume 3, chapter 2.

use core::arch::asm;

/// The interrupt-enable bit of RFLAGS.
pub const RFLAGS_IF: u64 = 1 << 9;
/// The direction bit, which is clear when a function is called.
pub const RFLAGS_DF: u64 = 1 << 10;
/// The resume bit: the instruction returned to does not raise its own breakpoint again.
pub const RFLAGS_RF: u64 = 1 << 16;
/// The bit that lets ring 0 reach user pages in spite of SMAP.
#[cfg(feature = "selftest")]
pub const RFLAGS_AC: u64 = 1 << 18;

/// The flags.
#[cfg(feature = "selftest")]
#[inline]
pub fn flags() -> u64 {
    let flags: u64;
    // SAFETY: reads the flags only.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags) };
    flags
}

/// Sets or clears AC, as `stac` and `clac` do, also on a processor without these.
#[cfg(feature = "selftest")]
pub fn set_ac(on: bool) {
    let flags = flags() & !RFLAGS_AC | if on { RFLAGS_AC } else { 0 };
    // SAFETY: only AC changes (and interrupts are as they were): the tests follow no user address.
    unsafe { asm!("push {}", "popfq", in(reg) flags) };
}

/// Reads a byte from an I/O port.
///
/// # Safety
/// Reading the port must not have an effect that breaks memory safety.
#[inline]
pub unsafe fn inb(port: u16) -> u8 {
    let value;
    // SAFETY: the caller vouches for the port.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack)) };
    value
}

/// Reads 16 bits from an I/O port.
///
/// # Safety
/// As for [`inb`].
#[inline]
pub unsafe fn inw(port: u16) -> u16 {
    let value;
    // SAFETY: the caller vouches for the port.
    unsafe { asm!("in ax, dx", in("dx") port, out("ax") value, options(nomem, nostack)) };
    value
}

/// Reads 32 bits from an I/O port.
///
/// # Safety
/// As for [`inb`].
#[inline]
pub unsafe fn inl(port: u16) -> u32 {
    let value;
    // SAFETY: the caller vouches for the port.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack)) };
    value
}

/// Writes a byte to an I/O port.
///
/// # Safety
/// The device behind the port must not be made to break memory safety.
#[inline]
pub unsafe fn outb(port: u16, value: u8) {
    // SAFETY: the caller vouches for the port and the value.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack)) };
}

/// Writes 16 bits to an I/O port.
///
/// # Safety
/// As for [`outb`].
#[inline]
pub unsafe fn outw(port: u16, value: u16) {
    // SAFETY: the caller vouches for the port and the value.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack)) };
}

/// Writes 32 bits to an I/O port.
///
/// # Safety
/// As for [`outb`].
#[inline]
pub unsafe fn outl(port: u16, value: u32) {
    // SAFETY: the caller vouches for the port and the value.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack)) };
}

/// Reads a model-specific register.
///
/// # Safety
/// The register must exist on this processor (else #GP).
#[inline]
pub unsafe fn rdmsr(msr: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller vouches that the register exists; reading has no other effect.
    unsafe {
        asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high, options(nomem, nostack))
    };
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The register must exist and the value must keep the kernel's invariants.
#[inline]
pub unsafe fn wrmsr(msr: u32, value: u64) {
    // SAFETY: the caller vouches for register and value.
    unsafe {
        asm!("wrmsr", in("ecx") msr, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack));
    }
}

/// What CPUID returns.
#[derive(Clone, Copy, Debug)]
pub struct Cpuid {
    /// Register EAX.
    pub eax: u32,
    /// Register EBX.
    pub ebx: u32,
    /// Register ECX.
    pub ecx: u32,
    /// Register EDX.
    pub edx: u32,
}

/// Executes CPUID; leaves above the processor's maximum read as zero.
pub fn cpuid(leaf: u32, subleaf: u32) -> Cpuid {
    let max = core::arch::x86_64::__cpuid(leaf & 0xc000_0000).eax;
    if leaf > max {
        return Cpuid {
            eax: 0,
            ebx: 0,
            ecx: 0,
            edx: 0,
        };
    }
    let raw = core::arch::x86_64::__cpuid_count(leaf, subleaf);
    Cpuid {
        eax: raw.eax,
        ebx: raw.ebx,
        ecx: raw.ecx,
        edx: raw.edx,
    }
}

/// Which debug conditions were met (DR6; SDM volume 3, 17.2.3).
#[inline]
pub fn dr6() -> u64 {
    let value;
    // SAFETY: reads a register only.
    unsafe { asm!("mov {}, dr6", out(reg) value, options(nomem, nostack)) };
    value
}

/// Forgets which debug conditions were met.
#[inline]
pub fn clear_dr6() {
    // SAFETY: the value after a reset; the register only reports.
    unsafe { asm!("mov dr6, {}", in(reg) 0xffff_0ff0_u64, options(nomem, nostack)) };
}

/// Which breakpoints are armed, and for what (DR7; SDM volume 3, 17.2.4).
#[inline]
pub fn dr7() -> u64 {
    let value;
    // SAFETY: reads a register only.
    unsafe { asm!("mov {}, dr7", out(reg) value, options(nomem, nostack)) };
    value
}

/// Arms breakpoints.
///
/// # Safety
/// Armed addresses are such that the kernel copes with the exception where it then comes.
#[inline]
pub unsafe fn set_dr7(value: u64) {
    // SAFETY: the caller vouches for the value.
    unsafe { asm!("mov dr7, {}", in(reg) value, options(nomem, nostack)) };
}

/// Makes `address` that of breakpoint 0 or 1, which is armed by [`set_dr7`].
///
/// # Safety
/// As for [`set_dr7`].
#[cfg(feature = "selftest")]
pub unsafe fn set_breakpoint(number: u8, address: u64) {
    // SAFETY: the caller vouches for the address.
    unsafe {
        match number {
            0 => asm!("mov dr0, {}", in(reg) address, options(nomem, nostack)),
            _ => asm!("mov dr1, {}", in(reg) address, options(nomem, nostack)),
        }
    }
}

/// Loads nothing into the segment registers that ring 3 can set, so that no program sees what
/// another left there. The base of the user's FS and GS becomes undefined; the kernel's GS base
/// stays.
///
/// # Safety
/// Interrupts are off, and the kernel's GS base is the active one.
#[inline]
pub unsafe fn clear_segments() {
    // SAFETY: ring 0 in 64-bit mode uses no data segment. GS is loaded while the user's base is
    // active; a non-maskable interrupt in between looks at the base itself.
    unsafe {
        asm!(
            "mov ds, {0:e}", "mov es, {0:e}", "mov fs, {0:e}",
            "swapgs", "mov gs, {0:e}", "swapgs",
            in(reg) 0, options(nostack, preserves_flags),
        );
    }
}

/// The address of the last page fault (CR2).
#[inline]
pub fn cr2() -> u64 {
    let value;
    // SAFETY: reads a register only.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack)) };
    value
}

/// The physical address of the active top-level page table (CR3).
#[inline]
pub fn cr3() -> u64 {
    let value;
    // SAFETY: reads a register only.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack)) };
    value
}

/// Switches the address space.
///
/// # Safety
/// `value` must be the physical address of a top-level table that maps the kernel half as the
/// kernel's own table does, and stays allocated while it is active.
#[inline]
pub unsafe fn set_cr3(value: u64) {
    // SAFETY: the caller vouches for the table.
    unsafe { asm!("mov cr3, {}", in(reg) value, options(nostack)) };
}

/// Reads CR0.
#[inline]
pub fn cr0() -> u64 {
    let value;
    // SAFETY: reads a register only.
    unsafe { asm!("mov {}, cr0", out(reg) value, options(nomem, nostack)) };
    value
}

/// Writes CR0.
///
/// # Safety
/// Paging, protection and write protection must stay on.
#[inline]
pub unsafe fn set_cr0(value: u64) {
    // SAFETY: the caller vouches for the value.
    unsafe { asm!("mov cr0, {}", in(reg) value, options(nostack)) };
}

/// Reads CR4.
#[inline]
pub fn cr4() -> u64 {
    let value;
    // SAFETY: reads a register only.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack)) };
    value
}

/// Writes CR4.
///
/// # Safety
/// PAE must stay on, and only bits that CPUID announces may be set.
#[inline]
pub unsafe fn set_cr4(value: u64) {
    // SAFETY: the caller vouches for the value.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack)) };
}

/// Writes extended control register 0 (the enabled XSAVE state components).
///
/// # Safety
/// CR4.OSXSAVE must be on and the value must be a valid component set of this processor.
#[inline]
pub unsafe fn set_xcr0(value: u64) {
    // SAFETY: the caller vouches for the value.
    unsafe {
        asm!("xsetbv", in("ecx") 0, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack));
    }
}

/// Drops the translation of one page from this processor's TLB.
#[inline]
pub fn invlpg(address: usize) {
    // SAFETY: forgetting a translation only costs time.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack)) };
}

/// Drops all translations but the global ones from this processor's TLB.
#[inline]
pub fn flush_tlb() {
    // SAFETY: reloads the table that is active already.
    unsafe { set_cr3(cr3()) };
}

/// The time-stamp counter.
#[inline]
pub fn rdtsc() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and CR4.TSD is never set.
    unsafe { core::arch::x86_64::_rdtsc() }
}
