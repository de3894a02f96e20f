//! Tests of frames, kernel space and the heap; half of them misuse.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::faults::{rewrite, touch};
use super::{LOOKS, Test, catch, gives_back};
use crate::check;
use crate::log;
use crate::mem::frames::{self, FrameKind, FramePolicy, Frames, MetaError};
use crate::mem::kspace::{self, Prot, Region};
use crate::mem::paging;
use crate::mem::{self, PAGE_SIZE};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("mem-pages-come-back", pages_come_back),
    ("mem-pages-are-zeroed", pages_are_zeroed),
    ("mem-region-comes-back", region_comes_back),
    ("mem-region-guards", region_guards),
    ("mem-region-protect", region_protect),
    ("mem-region-dropped", region_dropped),
    ("mem-region-of-several-tables", region_of_several_tables),
    (
        "mem-no-page-writable-and-executable",
        no_page_writable_and_executable,
    ),
    ("mem-too-large", too_large),
    ("mem-typed-is-not-shared", typed_is_not_shared),
    ("mem-kernel-frames-are-reserved", kernel_frames_are_reserved),
    ("mem-lying-policy", lying_policy),
    ("mem-heap-random", heap_random),
    ("mem-heap-exhausted", heap_exhausted),
    ("log-keeps-the-last-bytes", log_keeps_the_last_bytes),
];

fn pages_come_back() -> Result<(), String> {
    let five = || {
        let before = mem::stats().free;
        let pages = mem::alloc_pages(5).ok_or("no memory")?;
        let taken = before - mem::stats().free;
        // SAFETY: allocated just above, not used since.
        unsafe { mem::free_pages(pages, 5) };
        Ok::<_, String>(taken)
    };
    gives_back(|| five().map(drop))?;
    let exact = (0..LOOKS).any(|_| five() == Ok(5));
    check!(exact, "5 pages are not 5 pages");
    Ok(())
}

fn pages_are_zeroed() -> Result<(), String> {
    for _ in 0..2 {
        let pages = mem::alloc_pages(3).ok_or("no memory")?;
        // SAFETY: three pages of our own.
        let bytes = unsafe { core::slice::from_raw_parts_mut(pages.as_ptr(), 3 * PAGE_SIZE) };
        check!(bytes.iter().all(|&byte| byte == 0), "a page was not zeroed");
        bytes.fill(0xaa);
        // SAFETY: allocated just above; the slice is not used any more.
        unsafe { mem::free_pages(pages, 3) };
    }
    Ok(())
}

/// A region of `pages` pages.
fn region(pages: usize) -> Result<Region, String> {
    kspace::map_region(pages).map_err(|_| String::from("no memory"))
}

fn region_comes_back() -> Result<(), String> {
    // The first round may need page tables, which stay.
    gives_back(|| {
        for _ in 0..10 {
            let (first, second) = (region(17)?, region(40)?);
            rewrite(first.start());
            rewrite(second.end() - 1);
        }
        Ok(())
    })
}

/// The address that the function given to `catch` uses.
static TARGET: AtomicUsize = AtomicUsize::new(0);

/// Whether a read (or a write) at `address` faults.
fn faults(address: usize, write: bool) -> bool {
    TARGET.store(address, Ordering::Relaxed);
    let target = || TARGET.load(Ordering::Relaxed);
    let fault = if write {
        catch(|| rewrite(TARGET.load(Ordering::Relaxed)))
    } else {
        catch(|| touch(TARGET.load(Ordering::Relaxed)))
    };
    fault.is_some_and(|fault| fault.address == target() as u64)
}

fn region_guards() -> Result<(), String> {
    let region = region(2)?;
    check!(!faults(region.start(), true), "the first byte faults");
    check!(!faults(region.end() - 1, true), "the last byte faults");
    check!(faults(region.start() - 1, false), "no guard below");
    check!(faults(region.end(), false), "no guard above");
    Ok(())
}

fn region_protect() -> Result<(), String> {
    let region = region(3)?;
    region.protect(1..2, Prot::Read);
    let (first, middle) = (region.start(), region.start() + PAGE_SIZE);
    check!(!faults(first, true), "the first page lost its rights");
    check!(!faults(middle, false), "a read-only page cannot be read");
    check!(faults(middle, true), "a read-only page can be written");
    region.protect(1..2, Prot::None);
    check!(faults(middle, false), "a page without rights can be read");
    region.protect(1..2, Prot::ReadExecute);
    check!(faults(middle, true), "an executable page can be written");
    Ok(())
}

fn region_dropped() -> Result<(), String> {
    let start = {
        let region = region(1)?;
        rewrite(region.start());
        region.start()
    };
    check!(faults(start, false), "a dropped region can be read");
    Ok(())
}

/// Entries of a page table.
const ROW: usize = 512;

/// Pages of a region that begins in one table and ends in another are pages of its own, are all
/// taken away, and come back.
fn region_of_several_tables() -> Result<(), String> {
    gives_back(|| {
        let region = region(2 * ROW + 40)?;
        let pages = || (0..region.pages()).map(|page| region.start() + page * PAGE_SIZE);
        let physical = |page| Some(paging::translate(mem::kernel_table(), page)?.0);
        let mut frames: Vec<_> = pages().filter_map(physical).collect();
        frames.sort_unstable();
        frames.dedup();
        check!(frames.len() == region.pages(), "pages share frames");
        region.protect(ROW - 3..2 * ROW + 3, Prot::Read);
        for (page, address) in pages().enumerate() {
            let is_read_only = (ROW - 3..2 * ROW + 3).contains(&page);
            check!(
                faults(address, true) == is_read_only,
                "rights of page {page}"
            );
        }
        let all: Vec<_> = pages().collect();
        drop(region);
        let left = all.into_iter().find(|page| physical(*page).is_some());
        check!(left.is_none(), "{left:x?} is still mapped");
        Ok(())
    })
}

/// Looks at every page that the kernel's table maps.
fn no_page_writable_and_executable() -> Result<(), String> {
    let (mut pages, mut wrong) = (0, None);
    paging::visit_rights(mem::kernel_table(), &mut |address, rights| {
        pages += 1;
        let writable_code = rights.write && rights.execute;
        let executable_data = rights.execute && address < mem::KERNEL_BASE && address < mem::KSPACE;
        if writable_code || executable_data || rights.user {
            wrong = Some((address, rights));
        }
    });
    check!(wrong.is_none(), "wrong rights: {wrong:x?}");
    check!(pages > 100, "only {pages} pages were seen");
    Ok(())
}

fn too_large() -> Result<(), String> {
    let before = mem::stats().free;
    check!(mem::alloc_pages(0).is_none(), "0 pages were allocated");
    check!(
        mem::alloc_pages(usize::MAX / 8192).is_none(),
        "too much was allocated"
    );
    check!(
        kspace::map_region(before + 1).is_err(),
        "more than memory was mapped"
    );
    check!(
        kspace::map_region(usize::MAX).is_err(),
        "usize::MAX pages were mapped"
    );
    let mut bytes: Vec<u8> = Vec::new();
    check!(bytes.try_reserve(1 << 45).is_err(), "the heap gave 32 TiB");
    // Page tables made for the attempt are kept for later regions; they are few.
    check!(mem::stats().free + 300 > before, "memory was lost");
    Ok(())
}

fn typed_is_not_shared() -> Result<(), String> {
    let kernel = Frames::alloc(1, FrameKind::Kernel).ok_or("no memory")?;
    check!(kernel.share().is_err(), "a kernel frame was shared");
    let untyped = Frames::alloc(1, FrameKind::Untyped).ok_or("no memory")?;
    check!(untyped.share().is_ok(), "an untyped frame was not shared");
    Ok(())
}

fn kernel_frames_are_reserved() -> Result<(), String> {
    let code = (mem::kernel_text().start - mem::KERNEL_BASE) / PAGE_SIZE;
    for frame in [0, code, usize::MAX - 1, 1 << 40] {
        let claim = Frames::from_unused(frame, 1, FrameKind::Untyped);
        check!(claim.is_err(), "frame {frame:#x} was given away");
    }
    let table = mem::kernel_table() as usize / PAGE_SIZE;
    let claim = Frames::from_unused(table, 1, FrameKind::Untyped);
    check!(
        claim.is_err_and(|why| why == MetaError::Reserved),
        "the page table was given away"
    );
    Ok(())
}

/// A policy that proposes what it should not.
struct Liar;

/// The frame the liar proposes.
static LIE: AtomicUsize = AtomicUsize::new(0);

impl FramePolicy for Liar {
    fn alloc(&self, _count: usize) -> Option<usize> {
        Some(LIE.load(Ordering::Relaxed))
    }

    fn free(&self, _first: usize, _count: usize) {}
}

fn lying_policy() -> Result<(), String> {
    let mine = Frames::alloc(1, FrameKind::Kernel).ok_or("no memory")?;
    let lies = frames::policy_lies();
    for lie in [mine.physical() as usize / PAGE_SIZE, 0x200, usize::MAX] {
        LIE.store(lie, Ordering::Relaxed);
        let got = frames::alloc_with(&Liar, 1, FrameKind::Kernel);
        check!(got.is_none(), "the lie {lie:#x} was believed");
    }
    check!(
        frames::policy_lies() == lies + 3,
        "the lies were not counted"
    );
    Ok(())
}

/// Random allocations of many sizes, each filled and checked before it is freed.
fn heap_random() -> Result<(), String> {
    let mut live: Vec<Vec<u8>> = Vec::new();
    let mut seed = 12345_u64;
    for round in 0..4000_u64 {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let size = (seed >> 33) as usize % (1 << (seed >> 60));
        live.push(alloc::vec![round as u8; size]);
        if live.len() > 50 {
            let old = live.swap_remove((seed >> 20) as usize % 50);
            check!(
                old.windows(2).all(|pair| pair[0] == pair[1]),
                "a block was overwritten"
            );
        }
    }
    Ok(())
}

/// Takes all memory through the heap, in large and small pieces, and gives it back.
fn heap_exhausted() -> Result<(), String> {
    gives_back(exhaust_the_heap)
}

fn exhaust_the_heap() -> Result<(), String> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for size in [8 << 20, 1 << 20, 64 << 10, 5000, 700] {
        loop {
            let mut piece = Vec::new();
            if pieces.try_reserve(1).is_err() || piece.try_reserve_exact(size).is_err() {
                break;
            }
            pieces.push(piece);
        }
    }
    let left = mem::stats().free;
    check!(left < 100, "{left} pages are left");
    check!(mem::alloc_pages(64).is_none(), "there was more memory");
    check!(
        kspace::map_region(64).is_err(),
        "there was memory for a region"
    );
    Ok(())
}

fn log_keeps_the_last_bytes() -> Result<(), String> {
    let before = log::written();
    crate::kprintln!("a line for the ring");
    let mut bytes = [0; 200];
    let (start, count) = log::read(before, &mut bytes);
    check!(start == before, "asked for {before}, got {start}");
    let text = core::str::from_utf8(&bytes[..count]).map_err(|_| "not text")?;
    check!(text.contains("a line for the ring\n"), "got {text:?}");
    let before = log::written();
    crate::kprintln!("one\nline {}", "\x1b[2J\u{9b}");
    let (_, count) = log::read(before, &mut bytes);
    let text = core::str::from_utf8(&bytes[..count]).map_err(|_| "not text")?;
    check!(text.ends_with("] one line  [2J \n"), "got {text:?}");
    let (start, _) = log::read(0, &mut bytes);
    check!(
        log::written() - start <= 64 << 10,
        "older than the ring is long"
    );
    let (start, count) = log::read(u64::MAX, &mut bytes);
    check!(count == 0 && start <= log::written(), "the future was read");
    Ok(())
}
