//! What the boot loader says: the `hvm_start_info` block (Xen `start_info.h`, version 1).
//!
//! All of it is copied or recorded before the kernel's own page tables replace the provisional
//! ones. The block and its lists lie below 1 GiB with every loader we know; anything higher is
//! refused rather than read through a missing mapping.

use crate::mem::map::{Kind, MemoryMap, Range};
use crate::mem::phys_to_virt;
use crate::spin::IrqLock;

const MAGIC: u32 = 0x336e_c578;
/// How far the provisional page tables reach.
const READABLE: u64 = 1 << 30;
/// Longest command line that is kept.
const COMMAND_LINE_BYTES: usize = 2048;

/// The fixed part of the block.
#[repr(C)]
#[derive(Clone, Copy)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    rsdp: u64,
    memory_map: u64,
    memory_map_entries: u32,
    reserved: u32,
}

/// One entry of the module list.
#[repr(C)]
#[derive(Clone, Copy)]
struct ModuleEntry {
    address: u64,
    size: u64,
    command_line: u64,
    reserved: u64,
}

/// One entry of the memory map; kinds are those of E820.
#[repr(C)]
#[derive(Clone, Copy)]
struct MapEntry {
    address: u64,
    size: u64,
    kind: u32,
    reserved: u32,
}

/// What is kept.
struct Boot {
    command_line: [u8; COMMAND_LINE_BYTES],
    command_line_length: usize,
    module: Option<Range>,
    rsdp: u64,
    map: MemoryMap,
}

static BOOT: IrqLock<Boot> = IrqLock::new(Boot {
    command_line: [0; COMMAND_LINE_BYTES],
    command_line_length: 0,
    module: None,
    rsdp: 0,
    map: MemoryMap::new(),
});

/// Copies a plain structure out of physical memory; `None` if it is out of reach.
fn peek<T: Copy>(address: u64) -> Option<T> {
    let end = address.checked_add(core::mem::size_of::<T>() as u64)?;
    if address == 0 || end > READABLE {
        return None;
    }
    // SAFETY: the provisional tables map this memory; `T` here is one of the plain structures of
    // this file (or a byte), for which every bit pattern is valid.
    Some(unsafe { core::ptr::read_unaligned(phys_to_virt(address) as *const T) })
}

/// Reads the start-info block at physical address `address`. Runs once, at boot.
///
/// # Panics
/// If the block is not one, or holds no memory map: there is nothing to run on then.
pub(super) fn read(address: u64) {
    let info: StartInfo = peek(address).expect("start info within reach");
    assert!(info.magic == MAGIC, "no PVH start info");
    assert!(info.version >= 1, "the loader gives no memory map");
    let mut boot = BOOT.lock();
    boot.rsdp = info.rsdp;
    boot.command_line_length = 0;
    while boot.command_line_length < COMMAND_LINE_BYTES {
        let at = boot.command_line_length;
        match peek::<u8>(info.command_line.saturating_add(at as u64)) {
            Some(byte) if byte != 0 && info.command_line != 0 => boot.command_line[at] = byte,
            _ => break,
        }
        boot.command_line_length += 1;
    }
    if info.modules > 0 {
        boot.module = peek::<ModuleEntry>(info.module_list)
            .and_then(|module| Range::from_size(module.address, module.size));
    }
    read_map(&info, &mut boot.map);
}

/// Collects the memory map: first what is usable, then whatever takes from it.
fn read_map(info: &StartInfo, map: &mut MemoryMap) {
    for kind in [Kind::Usable, Kind::Reserved] {
        for i in 0..u64::from(info.memory_map_entries) {
            let entry_address = info.memory_map.saturating_add(i * 24);
            let entry: MapEntry = peek(entry_address).expect("memory map within reach");
            if Kind::from_e820(entry.kind) == kind {
                map.record(entry.address, entry.size, kind);
            }
        }
    }
}

/// The normalised map of usable memory, as the loader gave it.
pub(crate) fn memory_map() -> MemoryMap {
    BOOT.lock().map.clone()
}

/// Physical address of the ACPI root pointer, 0 if the loader gave none.
pub(crate) fn rsdp() -> u64 {
    BOOT.lock().rsdp
}

/// Where the first module lies in physical memory.
pub(crate) fn module_range() -> Option<Range> {
    BOOT.lock().module
}

/// The first module the loader brought (the domain archive). It stays in memory for good.
pub fn module() -> Option<&'static [u8]> {
    let range = module_range()?;
    let length = usize::try_from(range.end - range.start).ok()?;
    // SAFETY: memory setup checked that the module lies in usable memory, took its frames away
    // from the allocator for good, and mapped them in the direct map; nobody writes them.
    Some(unsafe { core::slice::from_raw_parts(phys_to_virt(range.start) as *const u8, length) })
}

/// The kernel's command line; empty if there is none or it is not UTF-8.
pub fn command_line() -> &'static str {
    let boot = BOOT.lock();
    let bytes: *const [u8] = &raw const boot.command_line[..boot.command_line_length];
    // SAFETY: the bytes are in a static and written only by `read`, which runs once before
    // anything can call this.
    core::str::from_utf8(unsafe { &*bytes }).unwrap_or("")
}
