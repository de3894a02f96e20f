//! Four-level page tables (SDM volume 3, 4.5), reached through the direct map.
//!
//! Functions here change tables and nothing else: callers hold the lock of the tables they change,
//! flush the TLB and keep account of the frames.

use core::sync::atomic::{AtomicU64, Ordering};

use super::phys_to_virt;

/// The entry is valid.
pub const PRESENT: u64 = 1;
/// Writes are allowed.
pub const WRITABLE: u64 = 1 << 1;
/// Ring 3 may use it.
pub const USER: u64 = 1 << 2;
/// Write-through and uncached together: device registers.
pub const UNCACHED: u64 = 1 << 3 | 1 << 4;
/// The entry maps a large page.
const LARGE: u64 = 1 << 7;
/// Survives a change of address space.
pub const GLOBAL: u64 = 1 << 8;
/// Instructions are not fetched.
pub const NO_EXECUTE: u64 = 1 << 63;
/// The physical address in an entry.
pub const ADDRESS_MASK: u64 = 0x000f_ffff_ffff_f000;

/// Bytes mapped by an entry of level 1 (4 KiB) to 4.
const fn span(level: u32) -> u64 {
    4096 << (9 * (level - 1))
}

/// A page table was in the way of a large page, or a page is mapped already, or no memory was left
/// for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// No memory for a table.
    NoMemory,
    /// Something is mapped there already.
    Occupied,
}

/// The entry of `level` for `address` in the table at physical address `table`.
fn entry(table: u64, address: usize, level: u32) -> &'static AtomicU64 {
    let index = address >> (12 + 9 * (level - 1)) & 511;
    // SAFETY: callers pass tables that they keep allocated, tables lie in RAM, RAM is in the direct
    // map, and an entry is an aligned word that is only ever accessed atomically.
    unsafe { &*((phys_to_virt(table) + index * 8) as *const AtomicU64) }
}

/// Where new tables come from: returns the physical address of a zeroed page.
pub type TableSource<'a> = &'a mut dyn FnMut() -> Option<u64>;

/// The table below an entry, made if there is none. `USER` in `flags` is passed to the entry.
fn descend(slot: &AtomicU64, flags: u64, tables: TableSource) -> Result<u64, MapError> {
    let value = slot.load(Ordering::Acquire);
    if value & LARGE != 0 {
        return Err(MapError::Occupied);
    }
    if value & PRESENT != 0 {
        return Ok(value & ADDRESS_MASK);
    }
    let table = tables().ok_or(MapError::NoMemory)?;
    slot.store(table | PRESENT | WRITABLE | flags & USER, Ordering::Release);
    Ok(table)
}

/// Maps one page of `level` (1: 4 KiB, 2: 2 MiB, 3: 1 GiB).
fn map_page(
    root: u64,
    address: usize,
    value: u64,
    level: u32,
    tables: TableSource,
) -> Result<(), MapError> {
    let mut table = root;
    for above in (level + 1..=4).rev() {
        table = descend(entry(table, address, above), value, tables)?;
    }
    let slot = entry(table, address, level);
    if slot.load(Ordering::Relaxed) != 0 {
        return Err(MapError::Occupied);
    }
    slot.store(value, Ordering::Release);
    Ok(())
}

/// Maps `bytes` bytes at `address` to `physical` with `flags` (PRESENT is added), in the largest
/// pages that alignment and `largest` (a level) allow. All three are multiples of the page size.
/// On an error some of the pages may be mapped.
pub fn map_range(
    root: u64,
    address: usize,
    physical: u64,
    bytes: u64,
    flags: u64,
    largest: u32,
    tables: TableSource,
) -> Result<(), MapError> {
    let mut done = 0;
    while done < bytes {
        let (at, to) = (address + done as usize, physical + done);
        let fits = |level: &u32| {
            (at as u64 | to).is_multiple_of(span(*level)) && bytes - done >= span(*level)
        };
        let level = (2..=largest).rev().find(fits).unwrap_or(1);
        let large = if level > 1 { LARGE } else { 0 };
        map_page(root, at, to | flags | PRESENT | large, level, tables)?;
        done += span(level);
    }
    Ok(())
}

/// The lowest-level entry for `address`, if its page table exists.
pub fn leaf(root: u64, address: usize) -> Option<&'static AtomicU64> {
    let mut table = root;
    for level in (2..=4).rev() {
        let value = entry(table, address, level).load(Ordering::Acquire);
        if value & PRESENT == 0 || value & LARGE != 0 {
            return None;
        }
        table = value & ADDRESS_MASK;
    }
    Some(entry(table, address, 1))
}

/// Clears the entry, of a page of any size, that maps `address`, if there is one.
pub fn clear(root: u64, address: usize) {
    let mut table = root;
    for level in (1..=4).rev() {
        let slot = entry(table, address, level);
        let value = slot.load(Ordering::Acquire);
        if level == 1 || value & LARGE != 0 {
            slot.store(0, Ordering::Release);
            return;
        }
        if value & PRESENT == 0 {
            return;
        }
        table = value & ADDRESS_MASK;
    }
}

/// The physical address and the flags that the table gives for `address`.
pub fn translate(root: u64, address: usize) -> Option<(u64, u64)> {
    let mut table = root;
    for level in (1..=4).rev() {
        let value = entry(table, address, level).load(Ordering::Acquire);
        if value & PRESENT == 0 {
            return None;
        }
        if level == 1 || value & LARGE != 0 {
            let offset = address as u64 & (span(level) - 1);
            let base = value & ADDRESS_MASK & !(span(level) - 1);
            return Some((base + offset, value & !ADDRESS_MASK));
        }
        table = value & ADDRESS_MASK;
    }
    None
}

/// Makes sure that the top-level entry for `address` has a table, so that later address spaces,
/// which copy the upper half of the top level, share everything below it.
pub fn prepare_top_level(root: u64, address: usize, tables: TableSource) -> Result<(), MapError> {
    descend(entry(root, address, 4), 0, tables).map(|_| ())
}

/// Copies the upper half of the top level of the kernel's table into a new one.
pub fn share_upper_half(from: u64, to: u64) {
    for index in 256..512_usize {
        let address = index << 39;
        let value = entry(from, address, 4).load(Ordering::Acquire);
        entry(to, address, 4).store(value, Ordering::Release);
    }
}

/// Visits what the lower half of a table refers to, deepest first, once each: `visit(physical,
/// is_table)` for pages of 4 KiB and for tables below the top level. The entries are not changed,
/// so the table must not be used afterwards if the visitor frees.
pub fn visit_lower_half(root: u64, visit: &mut dyn FnMut(u64, bool)) {
    visit_table(root, 4, 256, visit);
}

/// Visits the first `entries` entries of a table of `level`.
fn visit_table(table: u64, level: u32, entries: usize, visit: &mut dyn FnMut(u64, bool)) {
    for index in 0..entries {
        let address = index << (12 + 9 * (level - 1));
        let value = entry(table, address, level).load(Ordering::Acquire);
        if value & PRESENT == 0 {
            continue;
        }
        let below = value & ADDRESS_MASK;
        if level > 1 {
            visit_table(below, level - 1, 512, visit);
        }
        visit(below, level > 1);
    }
}

/// Visits every mapped page of any size with the rights that the whole path gives it:
/// `visit(address, flags)`, where `flags` has WRITABLE and USER only if every level has them, and
/// NO_EXECUTE if any level has it. For tests.
#[cfg(feature = "selftest")]
pub(crate) fn visit_rights(root: u64, visit: &mut dyn FnMut(usize, u64)) {
    visit_rights_below(root, 4, 0, WRITABLE | USER, visit);
}

/// Visits the pages below one table, given its address and what the path to it allows.
#[cfg(feature = "selftest")]
fn visit_rights_below(
    table: u64,
    level: u32,
    base: usize,
    path: u64,
    visit: &mut dyn FnMut(usize, u64),
) {
    for index in 0..512_usize {
        let value = entry(table, index << (12 + 9 * (level - 1)), level).load(Ordering::Acquire);
        if value & PRESENT == 0 {
            continue;
        }
        let mut address = base | index << (12 + 9 * (level - 1));
        if level == 4 && index >= 256 {
            address |= 0xffff << 48;
        }
        let rights = path & value & (WRITABLE | USER) | (path | value) & NO_EXECUTE;
        if level == 1 || value & LARGE != 0 {
            visit(address, rights);
        } else {
            visit_rights_below(value & ADDRESS_MASK, level - 1, address, rights, visit);
        }
    }
}
