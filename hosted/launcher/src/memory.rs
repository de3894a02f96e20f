//! Memory for domains, from `mmap`: pages, and space for images between guard pages.
//!
//! What is given back is kept for a while, since mapping and unmapping cost far more than clearing.
//! Memory that a domain may write again is zeroed when it is given out.

use hosted_core::{READ, READ_EXECUTE};
use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes in a page.
pub const PAGE: usize = 4096;
/// Runs of up to 2 to the power of this many pages are kept when they are given back.
const KEPT_CLASSES: usize = 7;
/// Pages that are kept at most, for all classes together and for images.
const MOST_KEPT: usize = 8192;

static TOTAL: AtomicUsize = AtomicUsize::new(256 << 20);
static USED: AtomicUsize = AtomicUsize::new(0);
static KEPT: Mutex<Kept> = Mutex::new(Kept {
    runs: [const { Vec::new() }; KEPT_CLASSES],
    images: BTreeMap::new(),
    pages: 0,
});

/// Memory that waits to be used again.
struct Kept {
    /// Runs of 1, 2, 4, ... pages.
    runs: [Vec<usize>; KEPT_CLASSES],
    /// Image spaces by their number of pages.
    images: BTreeMap<usize, Vec<usize>>,
    pages: usize,
}

/// Sets how many bytes all domains together may have.
pub fn set_total(bytes: usize) {
    TOTAL.store(bytes, Ordering::Relaxed);
}

/// Bytes that all domains together may have.
pub fn total() -> usize {
    TOTAL.load(Ordering::Relaxed)
}

/// Bytes that are left.
pub fn free() -> usize {
    total().saturating_sub(USED.load(Ordering::Relaxed))
}

/// Counts `bytes` as used; whether there are as many. What is refused is at no moment counted, or
/// it would be others who get nothing meanwhile.
pub fn reserve(bytes: usize) -> bool {
    let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= total());
    USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
        .is_ok()
}

/// Takes back what [`reserve`] counted.
pub fn release(bytes: usize) {
    USED.fetch_sub(bytes, Ordering::Relaxed);
}

fn kept() -> std::sync::MutexGuard<'static, Kept> {
    KEPT.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Maps `bytes` with these rights.
fn map(bytes: usize, rights: i32) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice.
    let start = unsafe { libc::mmap(null_mut(), bytes, rights, flags, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start as usize)
}

/// # Safety
/// The range is mapped and nobody uses it any more.
unsafe fn unmap(start: usize, bytes: usize) {
    if bytes > 0 {
        // SAFETY: by the caller's duty.
        unsafe { libc::munmap(start as *mut _, bytes) };
    }
}

/// # Safety
/// The range is mapped, and whoever uses it can do with these rights.
unsafe fn allow(start: usize, bytes: usize, rights: i32) -> bool {
    // SAFETY: by the caller's duty.
    unsafe { libc::mprotect(start as *mut _, bytes, rights) == 0 }
}

/// The class of runs of `count` pages that are kept.
fn class_of(count: usize) -> Option<usize> {
    let class = count.trailing_zeros() as usize;
    (count.is_power_of_two() && class < KEPT_CLASSES).then_some(class)
}

const READ_WRITE_RIGHTS: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// See [`hosted_core::Host::pages`].
pub extern "C" fn pages(count: usize) -> usize {
    let Some(bytes) = count
        .checked_mul(PAGE)
        .filter(|bytes| *bytes > 0 && reserve(*bytes))
    else {
        return 0;
    };
    if let Some(class) = class_of(count) {
        let mut kept = kept();
        if let Some(start) = kept.runs[class].pop() {
            kept.pages -= count;
            drop(kept);
            // SAFETY: the run was given back, so it is ours; it is mapped for writing.
            unsafe { (start as *mut u8).write_bytes(0, bytes) };
            return start;
        }
    }
    map_aligned(count).unwrap_or_else(|| {
        release(bytes);
        0
    })
}

/// New pages, aligned to their count if that is a power of two.
fn map_aligned(count: usize) -> Option<usize> {
    let bytes = count * PAGE;
    if !count.is_power_of_two() || count == 1 {
        return map(bytes, READ_WRITE_RIGHTS);
    }
    let whole = map(bytes.checked_mul(2)?, READ_WRITE_RIGHTS)?;
    let start = whole.next_multiple_of(bytes);
    // SAFETY: what lies before and behind the aligned part was just mapped and is used by nobody.
    unsafe {
        unmap(whole, start - whole);
        unmap(start + bytes, whole + bytes - start);
    }
    Some(start)
}

/// See [`hosted_core::Host::free_pages`].
///
/// # Safety
/// `start` came from [`pages`] with the same count, and nobody uses the pages any more.
pub unsafe extern "C" fn free_pages(start: usize, count: usize) {
    release(count * PAGE);
    if let Some(class) = class_of(count) {
        let mut kept = kept();
        if kept.pages + count <= MOST_KEPT {
            kept.pages += count;
            kept.runs[class].push(start);
            return;
        }
    }
    // SAFETY: by the caller's duty.
    unsafe { unmap(start, count * PAGE) };
}

/// See [`hosted_core::Host::image_take`].
pub extern "C" fn image_take(pages: usize) -> usize {
    let Some(bytes) = pages
        .checked_mul(PAGE)
        .filter(|bytes| *bytes > 0 && reserve(*bytes))
    else {
        return 0;
    };
    kept_image(pages)
        .or_else(|| map_image(bytes))
        .unwrap_or_else(|| {
            release(bytes);
            0
        })
}

fn kept_image(pages: usize) -> Option<usize> {
    let mut kept = kept();
    let start = kept.images.get_mut(&pages)?.pop()?;
    kept.pages -= pages;
    drop(kept);
    // SAFETY: the space was given back, so it is ours.
    unsafe {
        if !allow(start, pages * PAGE, READ_WRITE_RIGHTS) {
            return None;
        }
        (start as *mut u8).write_bytes(0, pages * PAGE);
    }
    Some(start)
}

fn map_image(bytes: usize) -> Option<usize> {
    let whole = map(bytes.checked_add(2 * PAGE)?, libc::PROT_NONE)?;
    let start = whole + PAGE;
    // SAFETY: the middle of what was just mapped.
    unsafe { allow(start, bytes, READ_WRITE_RIGHTS) }.then_some(start)
}

/// See [`hosted_core::Host::image_protect`].
///
/// # Safety
/// The pages are part of a space from [`image_take`], and are used according to these rights from
/// now on.
pub unsafe extern "C" fn image_protect(start: usize, count: usize, protection: u32) {
    let rights = match protection {
        READ => libc::PROT_READ,
        READ_EXECUTE => libc::PROT_READ | libc::PROT_EXEC,
        _ => READ_WRITE_RIGHTS,
    };
    // SAFETY: by the caller's duty.
    let done = unsafe { allow(start, count * PAGE, rights) };
    if !done {
        // An image that could be written while it runs must not run.
        crate::abort("mprotect failed");
    }
}

/// See [`hosted_core::Host::image_give`].
///
/// # Safety
/// `start` came from [`image_take`] with the same number of pages, and nobody uses them any more.
pub unsafe extern "C" fn image_give(start: usize, pages: usize) {
    release(pages * PAGE);
    // A dead domain's code and data cannot be touched even while the pages are kept.
    // SAFETY: by the caller's duty.
    let closed = unsafe { allow(start, pages * PAGE, libc::PROT_NONE) };
    let mut kept = kept();
    if closed && kept.pages + pages <= MOST_KEPT {
        kept.pages += pages;
        kept.images.entry(pages).or_default().push(start);
        return;
    }
    drop(kept);
    // SAFETY: by the caller's duty; the guard pages go along.
    unsafe { unmap(start - PAGE, (pages + 2) * PAGE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_and_aligned_also_when_used_again() {
        for count in [1, 2, 3, 16, 64, 128] {
            for _ in 0..2 {
                let start = pages(count);
                assert_ne!(start, 0);
                assert!(!count.is_power_of_two() || start.is_multiple_of(count * PAGE));
                // SAFETY: fresh pages of our own.
                let bytes =
                    unsafe { std::slice::from_raw_parts_mut(start as *mut u8, count * PAGE) };
                assert!(bytes.iter().all(|byte| *byte == 0));
                bytes.fill(0xa5);
                // SAFETY: the slice is not used any more.
                unsafe { free_pages(start, count) };
            }
        }
    }

    #[test]
    fn absurd_wishes_are_refused() {
        assert_eq!(pages(0), 0);
        assert_eq!(pages(usize::MAX / 2), 0);
        assert_eq!(pages(usize::MAX / PAGE), 0);
        assert_eq!(image_take(0), 0);
        assert_eq!(image_take(usize::MAX / PAGE), 0);
    }

    #[test]
    fn who_asks_for_too_much_takes_nothing_from_others() {
        let ends = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while ends.load(Ordering::Relaxed) == 0 {
                    assert!(!reserve(usize::MAX / 2));
                }
            });
            let refused = (0..1_000_000).filter(|_| {
                let got = reserve(PAGE);
                if got {
                    release(PAGE);
                }
                !got
            });
            let refused = refused.count();
            ends.store(1, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }

    #[test]
    fn an_image_space_is_clean_and_writable_when_used_again() {
        for _ in 0..2 {
            let start = image_take(5);
            assert_ne!(start, 0);
            // SAFETY: a fresh space of our own.
            unsafe {
                assert!((0..5 * PAGE).all(|at| *((start + at) as *const u8) == 0));
                *(start as *mut u8) = 1;
                image_protect(start, 1, READ_EXECUTE);
                image_give(start, 5);
            }
        }
    }
}
