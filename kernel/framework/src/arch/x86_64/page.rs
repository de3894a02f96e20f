//! The format of four-level page tables (SDM volume 3, 4.5), and the table that is in use.

use super::cpu::{Features, features};
use super::regs;
use crate::arch::types::Rights;
use core::sync::atomic::{AtomicU64, Ordering};

/// Levels of tables. The lowest is level 1; an entry of it maps one page.
pub const LEVELS: u32 = 4;
/// Bits of an address that are an index into one table.
pub const INDEX_BITS: u32 = 9;
/// Bits of an address inside a page.
pub const PAGE_BITS: u32 = 12;

/// The entry is valid.
const PRESENT: u64 = 1;
/// Writes are allowed.
const WRITABLE: u64 = 1 << 1;
/// Ring 3 may use it.
const USER: u64 = 1 << 2;
/// Write-through and uncached together: device registers.
const UNCACHED: u64 = 1 << 3 | 1 << 4;
/// The entry maps a large page.
const LARGE: u64 = 1 << 7;
/// Survives a change of address space.
const GLOBAL: u64 = 1 << 8;
/// Instructions are not fetched.
const NO_EXECUTE: u64 = 1 << 63;
/// Bits of an entry, at any level, that the processor leaves to the kernel.
pub const MARKS: [u64; 3] = [1 << 9, 1 << 10, 1 << 11];
/// The physical address in an entry.
const ADDRESS_MASK: u64 = 0x000f_ffff_ffff_f000;

/// The highest level whose entries may map a page by themselves.
pub fn largest_level() -> u32 {
    if features().has(Features::PAGE_1G) {
        3
    } else {
        2
    }
}

/// Rights as they stand in the entry of a page.
#[derive(Clone, Copy)]
pub struct Bits(u64);

/// What stands in an entry of level 1 that maps nothing and keeps the address of a page.
pub const HIDDEN: Bits = Bits(0);

/// These rights, and that of reading.
#[inline]
pub fn bits(rights: Rights) -> Bits {
    let bit = |on: bool, bits: u64| if on { bits } else { 0 };
    let no_execute = !rights.execute && features().has(Features::NX);
    Bits(
        PRESENT
            | bit(rights.write, WRITABLE)
            | bit(rights.user, USER)
            | bit(rights.device, UNCACHED)
            | bit(rights.global, GLOBAL)
            | bit(no_execute, NO_EXECUTE),
    )
}

/// An entry of `level` for the page at `physical`.
#[inline]
pub fn leaf(physical: u64, level: u32, bits: Bits) -> u64 {
    physical | bits.0 | if level > 1 { LARGE } else { 0 }
}

/// An entry that leads to the table at `physical` and takes no right away from the pages below it;
/// programs reach them only if `user`.
#[inline]
pub fn table(physical: u64, user: bool) -> u64 {
    physical | PRESENT | WRITABLE | if user { USER } else { 0 }
}

/// Makes an entry of level 1 a [`HIDDEN`] one.
#[inline]
pub fn hide(entry: &AtomicU64) {
    entry.fetch_and(ADDRESS_MASK, Ordering::AcqRel);
}

/// Whether the entry maps a page or leads to a table.
#[inline]
pub fn is_present(entry: u64) -> bool {
    entry & PRESENT != 0
}

/// Whether the entry, if it is present, maps a page. One of the lowest level always does.
#[inline]
pub fn is_leaf(entry: u64, level: u32) -> bool {
    level == 1 || entry & LARGE != 0
}

/// The physical address of the page or table of an entry, one that is [`HIDDEN`] too. Bits below
/// the size of a large page may be set.
#[inline]
pub fn address(entry: u64) -> u64 {
    entry & ADDRESS_MASK
}

/// The rights that a present entry gives, or that a table lets through.
#[inline]
pub fn rights(entry: u64) -> Rights {
    Rights {
        write: entry & WRITABLE != 0,
        execute: entry & NO_EXECUTE == 0,
        user: entry & USER != 0,
        device: entry & UNCACHED != 0,
        global: entry & GLOBAL != 0,
    }
}

/// The same entry without the right to write.
#[inline]
pub fn read_only(entry: u64) -> u64 {
    entry & !WRITABLE
}

/// The physical address of the top-level table in use.
#[inline]
pub fn root() -> u64 {
    regs::cr3() & ADDRESS_MASK
}

/// Puts a top-level table in use on this processor. All translations of the one before are
/// forgotten but the global ones.
///
/// # Safety
/// `table` is the physical address of a top-level table that maps the kernel half as the kernel's
/// own table does, and stays allocated while it is in use.
#[inline]
pub unsafe fn load_root(table: u64) {
    // SAFETY: the caller vouches for the table.
    unsafe { regs::set_cr3(table) };
}

/// Forgets the translation of one page on this processor.
#[inline]
pub fn flush_page(address: usize) {
    regs::invlpg(address);
}

/// Forgets all translations but the global ones on this processor.
#[inline]
pub fn flush_all() {
    regs::flush_tlb();
}
