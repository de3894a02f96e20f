//! Memory at boot: the kernel's own page tables, then the frame allocator.

use core::ops::Range as AddressRange;
use core::sync::atomic::{AtomicU64, Ordering};

use super::early::Early;
use super::map::{MemoryMap, Range};
use super::paging;
use super::{DIRECT_MAP, KERNEL_BASE, KSPACE, PAGE_SIZE, frames};
use crate::arch::types::Rights;
use crate::arch::{guard_pages, page};
use crate::boot;

// SAFETY: the linker script defines them. Only their addresses are used.
unsafe extern "C" {
    static __text_start: u8;
    static __text_end: u8;
    static __rodata_start: u8;
    static __rodata_end: u8;
    static __data_start: u8;
    static __kernel_end: u8;
}

/// The rights of what the kernel's own table maps. All translations but those of kernel space,
/// which change, stay when a program's table is loaded.
const CONSTANTS: Rights = Rights {
    write: false,
    execute: false,
    user: false,
    device: false,
    global: true,
};
const DATA: Rights = Rights {
    write: true,
    ..CONSTANTS
};
const CODE: Rights = Rights {
    execute: true,
    ..CONSTANTS
};

static KERNEL_TABLE: AtomicU64 = AtomicU64::new(0);

/// Physical address of the kernel's top-level page table.
pub fn kernel_table() -> u64 {
    KERNEL_TABLE.load(Ordering::Relaxed)
}

/// The addresses of the kernel's code.
pub fn kernel_text() -> AddressRange<usize> {
    (&raw const __text_start) as usize..(&raw const __text_end) as usize
}

/// Brings up memory. Runs once, on the boot processor.
///
/// # Panics
/// If the machine has too little memory for the tables.
pub(crate) fn init() {
    let usable = boot::start_info::memory_map();
    let mut early = Early {
        map: usable.clone(),
        limit: 1 << 30,
    };
    let kernel_end = (&raw const __kernel_end) as usize - KERNEL_BASE;
    early.map.remove(Range {
        start: 0,
        end: kernel_end as u64,
    });
    if let Some(module) = boot::start_info::module_range() {
        assert!(
            usable.contains(&module),
            "the archive lies outside of memory"
        );
        early.map.remove(module);
    }
    let root = build_kernel_table(&usable, &mut early);
    KERNEL_TABLE.store(root, Ordering::Relaxed);
    activate_kernel_table();
    early.limit = u64::MAX;
    frames::init(early, usable.end());
    super::kspace::init();
    let stats = frames::stats();
    crate::kprintln!(
        "memory: {} MiB usable, {} MiB free",
        usable.total() >> 20,
        (stats.free * PAGE_SIZE) >> 20
    );
}

/// Switches this processor, which has none of the kernel's tables yet, to the kernel's own page
/// table.
fn activate_kernel_table() {
    // SAFETY: the table maps the kernel image, the direct map and kernel space, and is never freed.
    unsafe { page::load_root(kernel_table()) };
}

/// Builds the kernel's page table: direct map, kernel image, an empty kernel space.
fn build_kernel_table(usable: &MemoryMap, early: &mut Early) -> u64 {
    let root = early
        .take_zeroed()
        .expect("memory for the first page table");
    let mut tables = || early.take_zeroed();
    let largest = page::largest_level();
    let mut map = |address: usize, physical: u64, end: u64, rights: Rights, largest: u32| {
        if physical < end {
            paging::map_range(
                root,
                address,
                physical,
                end - physical,
                rights,
                largest,
                &mut tables,
            )
            .expect("memory for the kernel page tables");
        }
    };
    // The kernel's code and constants are writable nowhere, in the direct map neither.
    let fixed = physical_of((&raw const __text_start) as usize)
        ..physical_of((&raw const __rodata_end) as usize);
    for range in usable.ranges() {
        let parts = [
            (range.start, range.end.min(fixed.start), DATA),
            (
                range.start.max(fixed.start),
                range.end.min(fixed.end),
                CONSTANTS,
            ),
            (range.start.max(fixed.end), range.end, DATA),
        ];
        for (start, end, rights) in parts {
            map(DIRECT_MAP + start as usize, start, end, rights, largest);
        }
    }
    for (start, end, rights) in kernel_sections() {
        map(start, physical_of(start), physical_of(end), rights, 1);
    }
    paging::prepare_top_level(root, KSPACE, &mut tables).expect("memory for kernel space");
    for guard in guard_pages() {
        paging::leaf(root, guard)
            .expect("guard pages lie in the kernel's data")
            .store(0, Ordering::Relaxed);
    }
    root
}

/// The kernel image's sections and their rights. They are mapped in small pages, so that guard
/// pages can be taken out.
fn kernel_sections() -> [(usize, usize, Rights); 3] {
    let at = |symbol: *const u8| symbol as usize;
    [
        (at(&raw const __text_start), at(&raw const __text_end), CODE),
        (
            at(&raw const __rodata_start),
            at(&raw const __rodata_end),
            CONSTANTS,
        ),
        (
            at(&raw const __data_start),
            at(&raw const __kernel_end),
            DATA,
        ),
    ]
}

/// The physical address of a kernel-image address.
fn physical_of(address: usize) -> u64 {
    (address - KERNEL_BASE) as u64
}
