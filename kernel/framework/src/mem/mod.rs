//! Memory: the physical map, frames and their metadata, page tables, kernel space and the heap.
//!
//! Address space (upper half; the lower half is user space):
//!
//! | from | what |
//! | --- | --- |
//! | `ffff_8000_0000_0000` | direct map of all RAM, writable, never executable |
//! | `ffff_c000_0000_0000` | kernel space: stacks, domain images, device registers |
//! | `ffff_ffff_8000_0000` | the kernel image, each section with its own rights |

#[cfg(target_os = "none")]
pub mod copied;
#[cfg(target_os = "none")]
mod early;
#[cfg(test)]
mod forks_model;
#[cfg(target_os = "none")]
pub mod frames;
#[cfg(target_os = "none")]
mod heap;
pub mod holes;
#[cfg(target_os = "none")]
pub mod kspace;
pub mod map;
#[cfg(test)]
mod mappings_model;
pub mod meta;
#[cfg(test)]
mod pages_model;
#[cfg(target_os = "none")]
pub(crate) mod paging;
#[cfg(target_os = "none")]
pub(crate) mod setup;
#[cfg(target_os = "none")]
mod slots;
#[cfg(target_os = "none")]
pub(crate) mod spaces;
#[cfg(test)]
mod spaces_model;
#[cfg(target_os = "none")]
pub(crate) mod tlb;
#[cfg(target_os = "none")]
pub mod untyped;

#[cfg(target_os = "none")]
pub use frames::{alloc_pages, free_pages, stats};
#[cfg(all(target_os = "none", feature = "selftest"))]
pub use heap::small_objects;
#[cfg(target_os = "none")]
pub(crate) use setup::init;
#[cfg(target_os = "none")]
pub(crate) use setup::kernel_table;
#[cfg(target_os = "none")]
pub use setup::kernel_text;

/// Bytes of a page.
pub const PAGE_SIZE: usize = 4096;
/// Where the direct map starts.
pub const DIRECT_MAP: usize = 0xffff_8000_0000_0000;
/// Where kernel space starts.
pub const KSPACE: usize = 0xffff_c000_0000_0000;
/// Where the kernel image is linked, minus its physical address.
pub const KERNEL_BASE: usize = 0xffff_ffff_8000_0000;

/// There is not enough free memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// The direct-map address of physical memory. Only RAM is really mapped there.
#[inline]
pub const fn phys_to_virt(physical: u64) -> usize {
    DIRECT_MAP + physical as usize
}

/// The physical address behind a direct-map address.
#[inline]
pub const fn virt_to_phys(address: usize) -> u64 {
    (address - DIRECT_MAP) as u64
}

/// A mapped stack.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    /// Lowest usable address.
    pub low: usize,
    /// One past the highest address.
    pub top: usize,
}

/// Maps a stack with guard pages that is never given back.
#[cfg(target_os = "none")]
pub(crate) fn alloc_stack(pages: usize) -> Result<Stack, NoMemory> {
    let region = kspace::map_region(pages)?;
    let stack = Stack {
        low: region.start(),
        top: region.end(),
    };
    core::mem::forget(region);
    Ok(stack)
}

/// Whether the active page table maps an address.
#[cfg(target_os = "none")]
pub fn is_mapped(address: usize) -> bool {
    paging::translate(crate::arch::page::root(), address).is_some()
}
