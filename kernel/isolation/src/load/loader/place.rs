//! Where an image lies in memory, and with which rights.

use crate::load::elf::{Elf, Segment};
use crate::platform::{ImageSpace, PAGE, Protection};
use core::ops::Range;

/// How many pages an image takes.
pub fn pages(elf: &Elf<'_>) -> usize {
    elf.span().div_ceil(PAGE as u64) as usize
}

/// Fills all pages of the space: copies, and clears what the file has nothing for. Then relocates
/// and protects. What the space says of itself is believed, as all that the platform says.
///
/// # Panics
/// If the space has fewer than [`pages`].
pub fn place(elf: &Elf<'_>, space: &dyn ImageSpace) {
    assert!(
        space.pages() >= pages(elf),
        "the space is made for the image"
    );
    let base = space.start().as_ptr();
    let mut filled = 0;
    for segment in elf.segments() {
        let content = elf.content(segment);
        let start = segment.address as usize;
        // SAFETY: the segment lies within the span, behind the one before (checked by
        // `Elf::parse`), and the space is ours alone.
        unsafe {
            clear(base, filled..start);
            base.add(start)
                .copy_from_nonoverlapping(content.as_ptr(), content.len());
        }
        filled = start + content.len();
    }
    // SAFETY: so much the space has, and it is ours alone.
    unsafe { clear(base, filled..space.pages() * PAGE) };
    relocate(elf, space, 0..0);
    elf.segments()
        .iter()
        .for_each(|segment| protect(space, segment));
    let relro = read_only_later(elf);
    let (first, count) = (relro.start as usize / PAGE, relro.count() / PAGE);
    if count > 0 {
        space.protect(first, count, Protection::Read);
    }
}

/// Writes zeros to the addresses `part`, counted from `base`.
///
/// # Safety
/// They belong to the caller alone, and can be written.
unsafe fn clear(base: *mut u8, part: Range<usize>) {
    // SAFETY: by the caller's duty.
    unsafe { base.add(part.start).write_bytes(0, part.len()) };
}

/// The addresses of the pages that cannot be written after relocation although their segment can.
/// Nothing else is on the first of them if it begins with its segment.
fn read_only_later(elf: &Elf<'_>) -> Range<u64> {
    const PAGE: u64 = self::PAGE as u64;
    let (start, end) = elf.relro;
    let begins = elf.segments().iter().any(|it| it.address == start);
    let first = if begins {
        start / PAGE
    } else {
        start.div_ceil(PAGE)
    };
    first * PAGE..end / PAGE * PAGE
}

/// Relocates, but for the places in `done`.
fn relocate(elf: &Elf<'_>, space: &dyn ImageSpace, done: Range<u64>) {
    let base = space.start().as_ptr();
    for (place, value) in elf.relocations_outside(done).flatten() {
        // SAFETY: eight bytes within a writable segment (checked by `Elf::relocation`), in no page
        // of `done`, so that they can be written.
        unsafe {
            base.add(place as usize)
                .cast::<u64>()
                .write_unaligned(base as u64 + value)
        };
    }
}

/// Makes a space that [`place`] filled, and an instance has used since, what it was before: all
/// pages that the instance could write are filled anew. The others are as they were, since nobody
/// could write them.
///
/// # Panics
/// If the space has fewer than [`pages`].
pub fn renew(elf: &Elf<'_>, space: &dyn ImageSpace) {
    assert!(
        space.pages() >= pages(elf),
        "the space was made for the image"
    );
    const PAGE: u64 = self::PAGE as u64;
    let relro = read_only_later(elf);
    for segment in elf.segments().iter().filter(|segment| segment.write) {
        let start = segment.address / PAGE * PAGE;
        let end = (segment.address + segment.memory).next_multiple_of(PAGE);
        if relro.is_empty() {
            refill(elf, space, segment, start..end);
        } else {
            refill(elf, space, segment, start..end.min(relro.start));
            refill(elf, space, segment, start.max(relro.end)..end);
        }
    }
    relocate(elf, space, relro);
}

/// Writes zeros to the addresses `part`, which lie in pages of the segment, and what the file has
/// for them.
fn refill(elf: &Elf<'_>, space: &dyn ImageSpace, segment: &Segment, part: Range<u64>) {
    if part.is_empty() {
        return;
    }
    let base = space.start().as_ptr();
    // SAFETY: the part lies in writable pages of the segment, which the space has, and the space is
    // ours alone.
    unsafe { clear(base, part.start as usize..part.end as usize) };
    let content = elf.content(segment);
    let start = part.start.max(segment.address);
    let end = part.end.min(segment.address + content.len() as u64);
    if start < end {
        let bytes = &content[(start - segment.address) as usize..(end - segment.address) as usize];
        // SAFETY: as above, since `start` and `end` lie in the part.
        unsafe {
            base.add(start as usize)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
    }
}

fn protect(space: &dyn ImageSpace, segment: &Segment) {
    let first = segment.address as usize / PAGE;
    let end = (segment.address + segment.memory).div_ceil(PAGE as u64) as usize;
    let protection = match (segment.write, segment.execute) {
        (true, _) => Protection::ReadWrite,
        (_, true) => Protection::ReadExecute,
        _ => Protection::Read,
    };
    space.protect(first, end - first, protection);
}
