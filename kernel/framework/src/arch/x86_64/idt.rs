//! The interrupt descriptor table: one table for all processors, an entry for each of the 256
//! vectors, every entry an interrupt gate (interrupts off) on an IST stack.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use super::gdt::{KERNEL_CODE, ist};

/// What LGDT and LIDT take.
#[repr(C, packed)]
pub(super) struct TablePointer {
    pub limit: u16,
    pub base: u64,
}

/// The table as pairs of words; atomics, because every processor may write the same values.
#[repr(align(4096))]
struct Table([[AtomicU64; 2]; 256]);

static IDT: Table = Table([const { [AtomicU64::new(0), AtomicU64::new(0)] }; 256]);

// SAFETY: `trap` defines it in assembly, of this size. Only its address is used.
unsafe extern "C" {
    /// 256 entry stubs of 16 bytes each, in `trap`.
    static trap_stubs: [[u8; 16]; 256];
}

/// The IST stack that a vector enters on.
fn ist_of(vector: usize) -> u8 {
    match vector {
        1 => ist::DEBUG,
        2 => ist::NMI,
        8 => ist::DOUBLE_FAULT,
        18 => ist::MACHINE_CHECK,
        0..32 => ist::FAULT,
        _ => ist::INTERRUPT,
    }
}

/// Fills in the table (same values each time) and loads it on the calling processor.
pub(super) fn load() {
    for (vector, entry) in IDT.0.iter().enumerate() {
        let (low, high) = gate(vector);
        entry[1].store(high, Ordering::Relaxed);
        entry[0].store(low, Ordering::Relaxed);
    }
    let pointer = TablePointer {
        limit: core::mem::size_of::<Table>() as u16 - 1,
        base: core::ptr::from_ref(&IDT) as u64,
    };
    // SAFETY: the table is static and every entry leads to a stub that handles its vector.
    unsafe { asm!("lidt [{}]", in(reg) &pointer, options(nostack)) };
}

/// Where `vector`, a number below 256, enters.
pub(crate) fn entry_of(vector: usize) -> u64 {
    (&raw const trap_stubs) as u64 + (vector as u64 & 0xff) * 16
}

/// An interrupt gate to the stub of `vector`; only #BP may be raised from ring 3 by INT.
fn gate(vector: usize) -> (u64, u64) {
    let address = entry_of(vector);
    let dpl = if vector == 3 { 3 } else { 0 };
    let low = address & 0xffff
        | u64::from(KERNEL_CODE) << 16
        | u64::from(ist_of(vector)) << 32
        | (0x8e | dpl << 5) << 40
        | (address >> 16 & 0xffff) << 48;
    (low, address >> 32)
}
