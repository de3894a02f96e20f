//! Kernel space: regions of mapped memory with an unmapped guard page on both sides.
//!
//! Stacks and domain images live in [`Region`]s; device registers and firmware tables in
//! [`Window`]s. No page is ever writable and executable. Unmapping goes: entries cleared, all
//! processors flushed, only then frames and addresses given back. The table lock is never held
//! across a flush.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use super::frames::{FrameKind, Frames, alloc_table, stats};
use super::holes::Holes;
use super::paging::{self, MapError};
use super::setup::kernel_table;
use super::{KSPACE, NoMemory, PAGE_SIZE, tlb};
use crate::arch::page;
use crate::arch::types::Rights;
use crate::spin::IrqLock;

/// Pages of kernel space: one top-level entry, 512 GiB.
const KSPACE_PAGES: usize = 1 << 27;
/// Frames that a region asks for at once, as long as there are so many in a row.
const FRAMES_AT_ONCE: usize = 16;
/// Pages of 2 MiB.
const LARGE_PAGES: usize = 512;

/// The free addresses; the lock also guards the page tables of kernel space.
static SPACE: IrqLock<Holes> = IrqLock::new(Holes::new());

/// What may be done with mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prot {
    /// Nothing: every access faults, the frames stay.
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
    /// Read and execute.
    ReadExecute,
}

impl Prot {
    /// As the rights of a mapping; what permits nothing has none that differ from reading.
    fn rights(self) -> Rights {
        Rights {
            write: self == Self::ReadWrite,
            execute: self == Self::ReadExecute,
            ..Rights::default()
        }
    }

    /// As it stands in the entry of a page.
    fn bits(self) -> page::Bits {
        match self {
            Self::None => page::HIDDEN,
            _ => page::bits(self.rights()),
        }
    }
}

/// Makes the address space available. Runs once, at boot.
///
/// # Panics
/// If there is no memory for the first entry of the list of free addresses.
pub(super) fn init() {
    let first = KSPACE / PAGE_SIZE;
    *SPACE.lock() = Holes::with_pages(first, first + KSPACE_PAGES).expect("memory at boot");
}

/// Addresses of kernel space, with a guard page on both sides that is never mapped.
#[derive(Debug)]
struct Addresses {
    start: usize,
    pages: usize,
}

impl Addresses {
    /// Takes addresses whose start is a multiple of `align` pages.
    fn take(pages: usize, align: usize) -> Result<Self, NoMemory> {
        let with_guards = pages.checked_add(2).ok_or(NoMemory)?;
        let first = SPACE.lock().alloc(with_guards, align, align - 1)?;
        Ok(Self {
            start: (first + 1) * PAGE_SIZE,
            pages,
        })
    }

    /// The address of a page.
    fn page(&self, index: usize) -> usize {
        self.start + index * PAGE_SIZE
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        SPACE
            .lock()
            .free(self.start / PAGE_SIZE - 1, self.pages + 2);
    }
}

/// Memory mapped in kernel space, owned by the handle. Dropping it unmaps it on all processors and
/// frees the frames; whoever drops it vouches, by the `unsafe` code that used the address, that no
/// reference into it is left.
#[derive(Debug)]
pub struct Region {
    addresses: Addresses,
    /// Pages from the start that are mapped (all, except while mapping fails half-way).
    mapped: usize,
}

/// Maps `pages` zeroed pages, readable and writable, with guard pages on both sides.
pub fn map_region(pages: usize) -> Result<Region, NoMemory> {
    map_from(pages, Frames::alloc_zeroed)
}

/// As [`map_region`], but what was in the pages still is: for who fills all of them.
pub fn map_region_to_fill(pages: usize) -> Result<Region, NoMemory> {
    map_from(pages, Frames::alloc)
}

fn map_from(
    pages: usize,
    take: fn(usize, FrameKind) -> Option<Frames>,
) -> Result<Region, NoMemory> {
    if pages == 0 || pages > stats().free {
        return Err(NoMemory);
    }
    let mut region = Region {
        addresses: Addresses::take(pages, 1)?,
        mapped: 0,
    };
    let mut run = FRAMES_AT_ONCE;
    while region.mapped < pages {
        let count = run.min(pages - region.mapped);
        match take(count, FrameKind::Kspace) {
            Some(frames) => region.map_next(frames)?,
            // There may be as many, but not in a row.
            None if run > 1 => run /= 2,
            None => return Err(NoMemory),
        }
    }
    Ok(region)
}

impl Region {
    /// Maps these as the next pages: those of each page table at once, which are all mapped or,
    /// where it cannot be made, none of them.
    fn map_next(&mut self, mut frames: Frames) -> Result<(), NoMemory> {
        let rights = Prot::ReadWrite.rights();
        while frames.count() > 0 {
            let address = self.addresses.page(self.mapped);
            let piece = frames.split(LARGE_PAGES - address / PAGE_SIZE % LARGE_PAGES);
            let bytes = piece.count() * PAGE_SIZE;
            map(address, piece.physical(), bytes, rights, 1)?;
            self.mapped += piece.count();
            piece.into_raw();
        }
        Ok(())
    }

    /// The entries of the pages `range`, which are mapped or were.
    fn entries(&self, range: Range<usize>) -> impl Iterator<Item = &'static AtomicU64> + use<> {
        let (mut at, end) = (self.addresses.page(range.start), range.end);
        let end = self.addresses.page(end);
        let rows = core::iter::from_fn(move || {
            let left = end.checked_sub(at).filter(|left| *left > 0)?;
            let row = paging::leaves(kernel_table(), at, left / PAGE_SIZE);
            let row = row.expect("tables of kernel space are never freed");
            at += row.len() * PAGE_SIZE;
            Some(row)
        });
        rows.flatten()
    }

    /// Lowest address.
    pub fn start(&self) -> usize {
        self.addresses.start
    }

    /// One past the highest address.
    pub fn end(&self) -> usize {
        self.addresses.page(self.addresses.pages)
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.addresses.pages
    }

    /// Pointer to the first byte. Following it is subject to the protection set.
    pub fn as_ptr(&self) -> *mut u8 {
        self.addresses.start as *mut u8
    }

    /// Changes what may be done with the pages `range` (counted from 0), on all processors.
    /// Making memory writable that safe code holds constants or code in, or taking rights from
    /// memory in use, leads to faults or worse: only the loader and stacks use this.
    ///
    /// # Panics
    /// If the range is not inside the region.
    pub fn protect(&self, range: Range<usize>, prot: Prot) {
        assert!(range.start <= range.end && range.end <= self.addresses.pages);
        {
            let bits = prot.bits();
            let _tables = SPACE.lock();
            for entry in self.entries(range.clone()) {
                let frame = page::address(entry.load(Ordering::Relaxed));
                entry.store(page::leaf(frame, 1, bits), Ordering::Release);
            }
        }
        tlb::flush_everywhere(self.addresses.page(range.start), range.len());
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.entries(0..self.mapped).for_each(page::hide);
        tlb::flush_everywhere(self.addresses.start, self.mapped);
        // Frames in a row are freed at once, which takes the allocator little more than one.
        let (mut first, mut count) = (0, 0);
        for entry in self.entries(0..self.mapped) {
            let frame = page::address(entry.swap(0, Ordering::AcqRel));
            if count == 0 || frame != first + (count * PAGE_SIZE) as u64 {
                // SAFETY: see `free`.
                unsafe { free(first, count) };
                (first, count) = (frame, 0);
            }
            count += 1;
        }
        // SAFETY: see `free`.
        unsafe { free(first, count) };
    }
}

/// Frees frames of a region that is being dropped.
///
/// # Safety
/// `map_next` left the ownership of these frames in entries, which are cleared by the caller, and
/// no processor has the translations any more.
unsafe fn free(first: u64, count: usize) {
    // SAFETY: by the caller's duty.
    drop(unsafe { Frames::from_raw(first, count, FrameKind::Kspace) });
}

/// Maps a range under the table lock.
fn map(
    address: usize,
    physical: u64,
    bytes: usize,
    rights: Rights,
    largest: u32,
) -> Result<(), NoMemory> {
    let _tables = SPACE.lock();
    let result = paging::map_range(
        kernel_table(),
        address,
        physical,
        bytes as u64,
        rights,
        largest,
        &mut next_table,
    );
    match result {
        Ok(()) => Ok(()),
        Err(MapError::NoMemory) => Err(NoMemory),
        Err(MapError::Occupied) => panic!("kernel space at {address:#x} is occupied"),
    }
}

/// How many tables kernel space has.
#[cfg(feature = "selftest")]
static TABLES: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// A table, which stays: kernel space has as many as its highest addresses ever wanted.
fn next_table() -> Option<u64> {
    let table = alloc_table()?;
    #[cfg(feature = "selftest")]
    TABLES.fetch_add(1, Ordering::Relaxed);
    Some(table)
}

/// How many tables kernel space has, for tests.
#[cfg(feature = "selftest")]
pub fn tables() -> usize {
    TABLES.load(Ordering::Relaxed)
}

/// How a [`Window`] is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// Read-only and cached: tables of the firmware.
    FirmwareTable,
    /// Writable and uncached: device registers.
    Device,
}

/// Physical memory that is not the allocator's, mapped in kernel space. Dropping it unmaps it.
#[derive(Debug)]
pub(crate) struct Window {
    addresses: Addresses,
    offset: usize,
    bytes: usize,
    large: bool,
}

impl Window {
    /// Maps `bytes` bytes at `physical`, in large pages where the range allows it throughout and
    /// there were no small ones before.
    pub fn map(physical: u64, bytes: usize, cache: Cache) -> Result<Self, NoMemory> {
        let offset = physical as usize % PAGE_SIZE;
        let length = (bytes + offset).next_multiple_of(PAGE_SIZE);
        let base = physical - offset as u64;
        let large_bytes = LARGE_PAGES * PAGE_SIZE;
        let aligned =
            (base as usize).is_multiple_of(large_bytes) && length.is_multiple_of(large_bytes);
        let align = if aligned { LARGE_PAGES } else { 1 };
        let addresses = Addresses::take(length / PAGE_SIZE, align)?;
        // Tables of kernel space are never freed, so one may be in the place of a large page. The
        // addresses that it is for are this window's alone.
        let has_table = |page| paging::leaf(kernel_table(), addresses.page(page)).is_some();
        let mut places = (0..addresses.pages).step_by(LARGE_PAGES);
        let large = aligned && !places.any(has_table);
        let rights = match cache {
            Cache::FirmwareTable => Prot::Read.rights(),
            Cache::Device => Rights {
                device: true,
                ..Prot::ReadWrite.rights()
            },
        };
        let window = Self {
            addresses,
            offset,
            bytes,
            large,
        };
        let largest = if large { 2 } else { 1 };
        // On an error the half-made window is dropped, which clears what was mapped.
        for pages in window.pieces() {
            let address = window.addresses.page(pages.start);
            let physical = base + (pages.start * PAGE_SIZE) as u64;
            map(address, physical, pages.len() * PAGE_SIZE, rights, largest)?;
        }
        Ok(window)
    }

    /// Pages that are mapped, or cleared, under one hold of the lock, with interrupts off: as many
    /// as one table has entries.
    fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (pages, step) = (self.addresses.pages, LARGE_PAGES * self.step());
        let piece = move |first| first..pages.min(first + step);
        (0..pages).step_by(step).map(piece)
    }

    /// Small pages for each entry.
    fn step(&self) -> usize {
        if self.large { LARGE_PAGES } else { 1 }
    }

    /// Address of the first byte asked for.
    pub fn address(&self) -> usize {
        self.addresses.start + self.offset
    }

    /// Bytes asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        for pages in self.pieces() {
            let _tables = SPACE.lock();
            for page in pages.step_by(self.step()) {
                paging::clear(kernel_table(), self.addresses.page(page));
            }
        }
        tlb::flush_everywhere(self.addresses.start, self.addresses.pages);
    }
}
