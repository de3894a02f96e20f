//! What the boot loader says: the `hvm_start_info` block (Xen `start_info.h`, version 1).
//!
//! The block and its lists lie below 1 GiB with every loader we know; anything higher is refused
//! rather than read through a missing mapping.

use crate::arch::upcalls::{Boot, Kind, MemoryMap, Range, phys_to_virt};

const MAGIC: u32 = 0x336e_c578;
/// How far the provisional page tables reach.
const READABLE: u64 = 1 << 30;
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
pub(crate) fn read(address: u64, boot: &mut Boot) {
    let info: StartInfo = peek(address).expect("start info within reach");
    assert!(info.magic == MAGIC, "no PVH start info");
    assert!(info.version >= 1, "the loader gives no memory map");
    boot.firmware = info.rsdp;
    // Out of reach is the end as well, and so is address 0.
    let bytes = (info.command_line..READABLE).map_while(peek::<u8>);
    let _ = bytes
        .take_while(|byte| *byte != 0)
        .all(|byte| boot.push(byte));
    if info.modules > 0 {
        boot.module = peek::<ModuleEntry>(info.module_list)
            .and_then(|module| Range::from_size(module.address, module.size));
    }
    read_map(&info, &mut boot.map);
}

/// What an E820 type means: 1 is usable memory, everything else is not.
fn kind_of(number: u32) -> Kind {
    match number {
        1 => Kind::Usable,
        _ => Kind::Reserved,
    }
}

/// Collects the memory map: first what is usable, then whatever takes from it.
fn read_map(info: &StartInfo, map: &mut MemoryMap) {
    for kind in [Kind::Usable, Kind::Reserved] {
        for i in 0..u64::from(info.memory_map_entries) {
            let entry_address = info.memory_map.saturating_add(i * 24);
            let entry: MapEntry = peek(entry_address).expect("memory map within reach");
            if kind_of(entry.kind) == kind {
                map.record(entry.address, entry.size, kind);
            }
        }
    }
}
