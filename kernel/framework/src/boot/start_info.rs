//! What the boot loader says. The machine reads it, in the loader's own format, before the kernel's
//! own page tables replace the provisional ones.

use crate::arch::loader;
use crate::mem::map::{MemoryMap, Range};
use crate::mem::phys_to_virt;
use crate::spin::IrqLock;

/// Longest command line that is kept.
const COMMAND_LINE_BYTES: usize = 2048;

/// What is kept.
pub(crate) struct Boot {
    command_line: [u8; COMMAND_LINE_BYTES],
    command_line_length: usize,
    /// Where the first module lies in physical memory.
    pub module: Option<Range>,
    /// Physical address of the root of the firmware's tables, 0 if the loader gave none.
    pub firmware: u64,
    /// What memory there is.
    pub map: MemoryMap,
}

impl Boot {
    /// Adds a byte to the command line; says whether there was room.
    pub fn push(&mut self, byte: u8) -> bool {
        let end = self.command_line.get_mut(self.command_line_length);
        let has_room = end.is_some();
        if let Some(end) = end {
            *end = byte;
            self.command_line_length += 1;
        }
        has_room
    }
}

static BOOT: IrqLock<Boot> = IrqLock::new(Boot {
    command_line: [0; COMMAND_LINE_BYTES],
    command_line_length: 0,
    module: None,
    firmware: 0,
    map: MemoryMap::new(),
});

/// Has the machine read what the loader left for it at physical address `address`. Runs once, at
/// boot.
///
/// # Panics
/// If that is not what it should be: there is nothing to run on then.
pub(super) fn read(address: u64) {
    loader::read(address, &mut BOOT.lock());
}

/// The normalised map of usable memory, as the loader gave it.
pub(crate) fn memory_map() -> MemoryMap {
    BOOT.lock().map.clone()
}

/// Physical address of the ACPI root pointer, 0 if the loader gave none.
pub(crate) fn rsdp() -> u64 {
    BOOT.lock().firmware
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
