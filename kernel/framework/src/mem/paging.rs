//! Page tables, reached through the direct map. What an entry looks like is the machine's affair
//! ([`crate::arch::page`]); that tables are a tree of equal levels is supposed here.
//!
//! Functions here change tables and nothing else: callers hold the lock of the tables they change,
//! flush the TLB and keep account of the frames.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::frames::{FrameKind, Frames};
use super::phys_to_virt;
use crate::arch::page::{self, INDEX_BITS, LEVELS, PAGE_BITS};
use crate::arch::types::Rights;

/// Entries of a table.
const ENTRIES: usize = 1 << INDEX_BITS;

/// The lowest bit of an address that is part of the index into a table of `level`.
const fn shift(level: u32) -> u32 {
    PAGE_BITS + INDEX_BITS * (level - 1)
}

/// Bytes mapped by an entry of `level`; 4 KiB, a page, at level 1.
const fn span(level: u32) -> u64 {
    1 << shift(level)
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
    let index = address >> shift(level) & (ENTRIES - 1);
    // SAFETY: callers pass tables that they keep allocated, tables lie in RAM, RAM is in the direct
    // map, and an entry is an aligned word that is only ever accessed atomically.
    unsafe { &*((phys_to_virt(table) + index * 8) as *const AtomicU64) }
}

/// All entries of the table at physical address `table`.
fn row(table: u64) -> &'static [AtomicU64; ENTRIES] {
    // SAFETY: as in `entry`; a table is a page, so aligned, and has as many entries.
    unsafe { &*(phys_to_virt(table) as *const [AtomicU64; ENTRIES]) }
}

/// The entries that are not 0 at this moment: first and last of them, by index.
fn used(entries: &[AtomicU64]) -> Option<(usize, usize)> {
    let is_used = |entry: &AtomicU64| entry.load(Ordering::Acquire) != 0;
    let first = entries.iter().position(is_used)?;
    let last = entries.iter().rposition(is_used)?;
    Some((first, last.max(first)))
}

/// Where new tables come from: returns the physical address of a zeroed page.
pub type TableSource<'a> = &'a mut dyn FnMut() -> Option<u64>;

/// Tables that were made for the kernel, which stay.
static OF_THE_KERNEL: AtomicUsize = AtomicUsize::new(0);

/// The table below an entry of `level`, made if there is none; for pages of programs if `user`.
/// Needs no lock where all entries of this level are changed here alone: of two that make a table
/// one wins.
fn descend(
    slot: &AtomicU64,
    level: u32,
    user: bool,
    tables: TableSource,
    made: &AtomicUsize,
) -> Result<u64, MapError> {
    let value = slot.load(Ordering::Acquire);
    if page::is_present(value) {
        return match page::is_leaf(value, level) {
            true => Err(MapError::Occupied),
            false => Ok(page::address(value)),
        };
    }
    let table = tables().ok_or(MapError::NoMemory)?;
    let new = page::table(table, user);
    let Err(now) = slot.compare_exchange(value, new, Ordering::AcqRel, Ordering::Acquire) else {
        made.fetch_add(1, Ordering::Relaxed);
        return Ok(table);
    };
    // SAFETY: a `TableSource` gives tables whose ownership it has left to us, and nobody has seen
    // this one.
    drop(unsafe { Frames::from_raw(table, 1, FrameKind::PageTable) });
    match page::is_leaf(now, level) {
        true => Err(MapError::Occupied),
        false => Ok(page::address(now)),
    }
}

/// The entry that leads to the page table of `address`, made with all tables above if there is
/// none, and counted. Tables in the lower half are freed only with the root, so the entry stays
/// what it is.
pub fn make_directory(
    root: u64,
    address: usize,
    tables: TableSource,
    made: &AtomicUsize,
) -> Result<&'static AtomicU64, MapError> {
    let mut table = root;
    for level in (3..=LEVELS).rev() {
        table = descend(entry(table, address, level), level, true, tables, made)?;
    }
    let slot = entry(table, address, 2);
    descend(slot, 2, true, tables, made)?;
    Ok(slot)
}

/// The entry that leads to the page table of `address`; or, if there is none, how many bytes from
/// `address` on have none either.
#[inline]
pub fn directory(root: u64, address: usize) -> Result<&'static AtomicU64, usize> {
    let mut table = root;
    for level in (2..=LEVELS).rev() {
        let slot = entry(table, address, level);
        let value = slot.load(Ordering::Acquire);
        if !page::is_present(value) {
            return Err(span(level) as usize - (address & (span(level) as usize - 1)));
        }
        if level == 2 {
            return Ok(slot);
        }
        table = page::address(value);
    }
    unreachable!("there is a level 2")
}

/// The lowest-level entry for `address` in the table that `directory` leads to.
pub fn below(directory: &AtomicU64, address: usize) -> &'static AtomicU64 {
    entry(page::address(directory.load(Ordering::Acquire)), address, 1)
}

/// Of `count` entries from that of `address` on, in the table that `directory` leads to, the first
/// and the last that are not 0 at this moment, counted from the first of all.
pub fn used_below(directory: &AtomicU64, address: usize, count: usize) -> Option<(usize, usize)> {
    used(entries_below(directory, address, count))
}

/// The `count` entries from that of `address` on, in the table that `directory` leads to, which has
/// so many.
pub fn entries_below(directory: &AtomicU64, address: usize, count: usize) -> &'static [AtomicU64] {
    let row = row(page::address(directory.load(Ordering::Acquire)));
    let first = address >> shift(1) & (ENTRIES - 1);
    &row[first..first + count]
}

/// Fills the entries of `level` from that of `address` on, `count` or as many as its table has,
/// with `value` of their numbers from 0 on; how many that were. Tables that it makes are for pages
/// of programs if `user`. Nothing is mapped where one of them cannot be made.
fn map_row(
    root: u64,
    address: usize,
    count: usize,
    value: impl Fn(usize) -> u64,
    user: bool,
    level: u32,
    tables: TableSource,
) -> Result<usize, MapError> {
    let mut table = root;
    for above in (level + 1..=LEVELS).rev() {
        let slot = entry(table, address, above);
        table = descend(slot, above, user, tables, &OF_THE_KERNEL)?;
    }
    let entries = part_of(table, address, level, count);
    for (number, slot) in entries.iter().enumerate() {
        if slot.load(Ordering::Relaxed) != 0 {
            return Err(MapError::Occupied);
        }
        slot.store(value(number), Ordering::Release);
    }
    Ok(entries.len())
}

/// The entries of `level` from that of `address` on, `count` or as many as `table` has.
fn part_of(table: u64, address: usize, level: u32, count: usize) -> &'static [AtomicU64] {
    let first = address >> shift(level) & (ENTRIES - 1);
    &row(table)[first..ENTRIES.min(first.saturating_add(count))]
}

/// Maps `bytes` bytes at `address` to `physical` with `rights`, in the largest pages that alignment
/// and `largest` (a level) allow. All three are multiples of the page size.
/// On an error some of the pages may be mapped; none whose table could not be made.
pub fn map_range(
    root: u64,
    address: usize,
    physical: u64,
    bytes: u64,
    rights: Rights,
    largest: u32,
    tables: TableSource,
) -> Result<(), MapError> {
    let bits = page::bits(rights);
    let mut done = 0;
    while done < bytes {
        let (at, to) = (address + done as usize, physical + done);
        let fits = |level: &u32| {
            (at as u64 | to).is_multiple_of(span(*level)) && bytes - done >= span(*level)
        };
        let level = (2..=largest).rev().find(fits).unwrap_or(1);
        // Nothing larger fits before the table ends.
        let count = if level == 1 {
            (bytes - done) / span(1)
        } else {
            1
        };
        let value = |number| page::leaf(to + number as u64 * span(level), level, bits);
        let count = map_row(root, at, count as usize, value, rights.user, level, tables)?;
        done += count as u64 * span(level);
    }
    Ok(())
}

/// The lowest-level entry for `address`, if its page table exists.
pub fn leaf(root: u64, address: usize) -> Option<&'static AtomicU64> {
    leaves(root, address, 1)?.first()
}

/// The lowest-level entries from that of `address` on, `count` or as many as its page table has, if
/// that exists.
pub fn leaves(root: u64, address: usize, count: usize) -> Option<&'static [AtomicU64]> {
    let mut table = root;
    for level in (2..=LEVELS).rev() {
        let value = entry(table, address, level).load(Ordering::Acquire);
        if !page::is_present(value) || page::is_leaf(value, level) {
            return None;
        }
        table = page::address(value);
    }
    Some(part_of(table, address, 1, count))
}

/// Clears the entry, of a page of any size, that maps `address`, if there is one.
pub fn clear(root: u64, address: usize) {
    let mut table = root;
    for level in (1..=LEVELS).rev() {
        let slot = entry(table, address, level);
        let value = slot.load(Ordering::Acquire);
        if page::is_leaf(value, level) {
            slot.store(0, Ordering::Release);
            return;
        }
        if !page::is_present(value) {
            return;
        }
        table = page::address(value);
    }
}

/// The physical address that the table gives for `address`, and the rights of the lowest entry.
pub fn translate(root: u64, address: usize) -> Option<(u64, Rights)> {
    let mut table = root;
    for level in (1..=LEVELS).rev() {
        let value = entry(table, address, level).load(Ordering::Acquire);
        if !page::is_present(value) {
            return None;
        }
        if page::is_leaf(value, level) {
            let offset = address as u64 & (span(level) - 1);
            let base = page::address(value) & !(span(level) - 1);
            return Some((base + offset, page::rights(value)));
        }
        table = page::address(value);
    }
    None
}

/// Makes sure that the top-level entry for `address` has a table, so that later address spaces,
/// which copy the upper half of the top level, share everything below it.
pub fn prepare_top_level(root: u64, address: usize, tables: TableSource) -> Result<(), MapError> {
    descend(
        entry(root, address, LEVELS),
        LEVELS,
        false,
        tables,
        &OF_THE_KERNEL,
    )
    .map(|_| ())
}

/// Copies the upper half of the top level of the kernel's table into a new one.
pub fn share_upper_half(from: u64, to: u64) {
    for index in ENTRIES / 2..ENTRIES {
        let address = index << shift(LEVELS);
        let value = entry(from, address, LEVELS).load(Ordering::Acquire);
        entry(to, address, LEVELS).store(value, Ordering::Release);
    }
}

/// Visits what the lower half of a table refers to, deepest first, once each: `visit(physical,
/// is_table)` for pages of 4 KiB, hidden ones too, and for tables below the top level. The entries
/// are not changed, so the table must not be used afterwards if the visitor frees.
pub fn visit_lower_half(root: u64, visit: &mut dyn FnMut(u64, bool)) {
    visit_table(root, LEVELS, ENTRIES / 2, visit);
}

/// Visits the first `entries` entries of a table of `level`.
fn visit_table(table: u64, level: u32, entries: usize, visit: &mut dyn FnMut(u64, bool)) {
    let row = &row(table)[..entries];
    let Some((first, last)) = used(row) else {
        return;
    };
    for entry in &row[first..=last] {
        let value = entry.load(Ordering::Acquire);
        // Frame 0 is nobody's.
        let below = page::address(value);
        if below == 0 {
            continue;
        }
        if level > 1 {
            visit_table(below, level - 1, ENTRIES, visit);
        }
        visit(below, level > 1);
    }
}

/// Visits every mapped page of any size with the rights that the whole path gives it:
/// `visit(address, rights)`, where programs may use, write and execute only what every level lets
/// them. For tests.
#[cfg(feature = "selftest")]
pub(crate) fn visit_rights(root: u64, visit: &mut dyn FnMut(usize, Rights)) {
    let all = Rights {
        write: true,
        execute: true,
        user: true,
        ..Rights::default()
    };
    visit_rights_below(root, LEVELS, 0, all, visit);
}

/// Visits the pages below one table, given its address and what the path to it allows.
#[cfg(feature = "selftest")]
fn visit_rights_below(
    table: u64,
    level: u32,
    base: usize,
    path: Rights,
    visit: &mut dyn FnMut(usize, Rights),
) {
    for index in 0..ENTRIES {
        let value = entry(table, index << shift(level), level).load(Ordering::Acquire);
        if !page::is_present(value) {
            continue;
        }
        let mut address = base | index << shift(level);
        if level == LEVELS && index >= ENTRIES / 2 {
            address |= !0 << shift(LEVELS + 1);
        }
        let own = page::rights(value);
        let rights = Rights {
            write: path.write && own.write,
            execute: path.execute && own.execute,
            user: path.user && own.user,
            ..Rights::default()
        };
        if page::is_leaf(value, level) {
            visit(address, rights);
        } else {
            visit_rights_below(page::address(value), level - 1, address, rights, visit);
        }
    }
}
