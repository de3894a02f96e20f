//! Memory for the time before the frame allocator: taken from the memory map for good.

use super::map::MemoryMap;
use super::{PAGE_SIZE, phys_to_virt};

/// Hands out pages from the map, lowest first, above 1 MiB and within what is mapped.
pub(super) struct Early {
    /// What is left.
    pub map: MemoryMap,
    /// Addresses from here on are not mapped yet.
    pub limit: u64,
}

impl Early {
    /// Takes `pages` pages; their content is whatever was there.
    pub fn take(&mut self, pages: usize) -> Option<u64> {
        self.map
            .take((pages * PAGE_SIZE) as u64, 1 << 20, self.limit)
    }

    /// Takes a zeroed page.
    pub fn take_zeroed(&mut self) -> Option<u64> {
        let page = self.take(1)?;
        // SAFETY: the page was usable memory, is mapped (below `limit`), and has just been taken
        // out of the map, so nothing else uses it.
        unsafe { core::ptr::write_bytes(phys_to_virt(page) as *mut u8, 0, PAGE_SIZE) };
        Some(page)
    }
}
