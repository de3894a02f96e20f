//! Small objects of the private heap: free lists, the run that new ones are cut from, and runs that
//! are kept for when there is no memory.
//!
//! Objects have 16 bytes to 32 KiB, each class a power of two, and lie at multiples of their size
//! in runs of 64 KiB. As long as the kernel gives runs nothing is ever joined or split: that is
//! fastest. When it gives none:
//!
//! 1. a larger free object is split;
//! 2. free neighbours are joined ([`Lists::merge`]), which may make whole runs;
//! 3. an object of up to [`LARGEST_FROM_RESERVE`] bytes may be cut from a run of the reserve.
//!
//! When much is free it is joined as well, and whole runs go back to the kernel
//! ([`Lists::has_much`]).
//!
//! When half of the reserve or more is gone ([`Lists::is_short`]) the domain must not take on more
//! work. Nothing here knows the kernel; runs are brought and fetched by `heap`.

mod chain;
mod magazine;

use chain::{next_of, push, sort};
use core::ptr::null_mut;
pub use magazine::Magazine;

/// Bytes in a page.
pub const PAGE: usize = 4096;
/// Pages in a run.
pub const RUN_PAGES: usize = 16;
/// Bytes in a run, which lies at a multiple of them.
pub const RUN: usize = RUN_PAGES * PAGE;
const SMALLEST: usize = 16;
/// The largest object that comes from a run.
pub const LARGEST: usize = RUN / 2;
const CLASSES: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;
/// The largest object that may be cut from the reserve. What is larger has a size that somebody
/// chose, and whoever asks for that can take no for an answer.
pub const LARGEST_FROM_RESERVE: usize = 4 * PAGE;
/// Most runs of a reserve.
pub const MOST_SPARE: usize = 16;
/// Free objects of a class that are looked at in one merge: a lock is held meanwhile.
const MERGED_AT_ONCE: usize = 8 * 1024;
/// Bytes that must have come back since the last merge for another to be worth its time.
const MERGE_AFTER: usize = RUN;
/// Free bytes of which some are worth to be given back.
const MUCH: usize = 16 * RUN;

/// The class of objects of `size` bytes, or `None` if they are too large.
pub fn class_of(size: usize) -> Option<usize> {
    let size = size.max(SMALLEST).checked_next_power_of_two()?;
    (size <= LARGEST).then(|| (size / SMALLEST).trailing_zeros() as usize)
}

const fn size_of_class(class: usize) -> usize {
    SMALLEST << class
}

/// What becomes of a run that is offered to the reserve.
#[must_use = "a run that is not wanted goes back to the kernel, or to a list"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// It is part of the reserve.
    Kept,
    /// The reserve is full; it is the caller's still.
    NotWanted,
}

/// Where small objects come from.
pub struct Lists {
    /// First free object of each class; each holds the address of the next.
    free: [*mut u8; CLASSES],
    /// Likewise, of those that a merge has looked at and that have no free neighbour: behind those
    /// in `free`.
    later: [*mut u8; CLASSES],
    /// The rest of the last run.
    next: usize,
    end: usize,
    /// Runs for when there is no memory.
    spare: [*mut u8; MOST_SPARE],
    spares: usize,
    /// How many of them there should be.
    wanted: usize,
    /// Bytes that were put back since the last merge.
    put_back: usize,
    /// Bytes in the lists.
    listed: usize,
    /// With so many of them the next merge is worth its time for what it gives back.
    merge_at: usize,
    /// Runs that are free as a whole and not in the lists; each holds the address of the next.
    whole: *mut u8,
}

// SAFETY: what the pointers lead to belongs to who has the lists, on whatever thread that is.
unsafe impl Send for Lists {}

impl Lists {
    /// Nothing.
    pub const EMPTY: Lists = Lists {
        free: [null_mut(); CLASSES],
        later: [null_mut(); CLASSES],
        next: 0,
        end: 0,
        spare: [null_mut(); MOST_SPARE],
        spares: 0,
        wanted: 0,
        put_back: 0,
        listed: 0,
        merge_at: MUCH,
        whole: null_mut(),
    };

    /// A free object of this class, or null.
    pub fn take(&mut self, class: usize) -> *mut u8 {
        let mut object = self.free[class];
        if object.is_null() {
            object = core::mem::replace(&mut self.later[class], null_mut());
        }
        if object.is_null() {
            return self.carve(size_of_class(class));
        }
        // SAFETY: a free object holds the address of the next; it is at least 16 bytes long.
        self.free[class] = unsafe { next_of(object) };
        self.listed -= size_of_class(class);
        object
    }

    /// Takes an object back.
    ///
    /// # Safety
    /// [`take`](Self::take) gave it for this class, or it is such a piece of a run, and nobody uses
    /// it.
    pub unsafe fn put(&mut self, class: usize, object: *mut u8) {
        self.put_back = self.put_back.saturating_add(size_of_class(class));
        // SAFETY: by the caller's duty.
        unsafe { self.link(class, object) };
    }

    /// # Safety
    /// As that of [`put`](Self::put).
    unsafe fn link(&mut self, class: usize, object: *mut u8) {
        self.listed += size_of_class(class);
        // SAFETY: by the caller's duty.
        unsafe { push(&mut self.free[class], object) };
    }

    /// A new object of `size` bytes (a power of two) from the last run.
    fn carve(&mut self, size: usize) -> *mut u8 {
        let start = self.next.next_multiple_of(size);
        if self.next == 0 || start + size > self.end {
            return null_mut();
        }
        self.scrap(self.next, start);
        self.next = start + size;
        start as *mut u8
    }

    /// Puts the bytes from `from` to `to`, both multiples of 16 in one run, into the lists.
    fn scrap(&mut self, mut from: usize, to: usize) {
        while from < to {
            let aligned = from & from.wrapping_neg();
            let fits = 1 << (to - from).ilog2();
            let size = aligned.min(fits).min(LARGEST);
            let class = (size / SMALLEST).trailing_zeros() as usize;
            // SAFETY: a piece of a run of ours that nobody has, at a multiple of its size.
            unsafe { self.link(class, from as *mut u8) };
            from += size;
        }
    }

    /// Cuts new objects from `run` from now on.
    ///
    /// # Safety
    /// It is [`RUN`] bytes at a multiple of that, and this heap's alone.
    pub unsafe fn add_run(&mut self, run: *mut u8) {
        self.scrap(self.next, self.end);
        self.merge_at = self.merge_at.min((2 * self.listed).max(MUCH));
        self.next = run as usize;
        self.end = run as usize + RUN;
    }

    /// A free object of this class when there are no more runs, or null.
    pub fn scrape(&mut self, class: usize) -> *mut u8 {
        let mut object = self.split(class);
        if object.is_null() {
            if self.is_worth_a_merge() {
                self.merge();
            }
            if let Some(run) = self.take_whole() {
                // SAFETY: a run of ours.
                unsafe { self.add_run(run) };
            }
            object = self.take_or_split(class);
        }
        if object.is_null()
            && size_of_class(class) <= LARGEST_FROM_RESERVE
            && let Some(run) = self.take_spare()
        {
            // SAFETY: a run of ours, kept for this.
            unsafe { self.add_run(run) };
            object = self.take(class);
        }
        object
    }

    fn take_or_split(&mut self, class: usize) -> *mut u8 {
        match self.take(class) {
            object if object.is_null() => self.split(class),
            object => object,
        }
    }

    /// An object of this class from the smallest larger one that is free.
    fn split(&mut self, class: usize) -> *mut u8 {
        let is_there =
            |class: &usize| !self.free[*class].is_null() || !self.later[*class].is_null();
        let larger = (class + 1..CLASSES).find(is_there);
        let Some(larger) = larger else {
            return null_mut();
        };
        let object = self.take(larger);
        for half in (class..larger).rev() {
            // SAFETY: the upper half of what is left of a free object.
            unsafe { self.link(half, object.add(size_of_class(half))) };
        }
        object
    }

    /// Joins free neighbours. Whole runs become spare ones, or are left for
    /// [`take_whole`](Self::take_whole).
    pub fn merge(&mut self) {
        self.put_back = 0;
        for class in 0..CLASSES {
            let mut at = sort(self.cut_list(class));
            while !at.is_null() {
                // SAFETY: a sorted list of free objects of this class.
                unsafe {
                    let (object, size) = (at, size_of_class(class));
                    at = next_of(object);
                    let is_lower = object as usize & size == 0;
                    if is_lower && at as usize == object as usize + size {
                        at = next_of(at);
                        self.listed -= 2 * size;
                        self.put_whole(class + 1, object);
                    } else {
                        push(&mut self.later[class], object);
                    }
                }
            }
        }
        self.merge_at = (2 * self.listed).max(MUCH);
    }

    /// A run that a merge found free.
    pub fn take_whole(&mut self) -> Option<*mut u8> {
        let run = self.whole;
        if run.is_null() {
            return None;
        }
        // SAFETY: a free run, whose first word is ours.
        self.whole = unsafe { next_of(run) };
        Some(run)
    }

    /// Whether so much is free that a merge is worth its time.
    pub fn has_much(&self) -> bool {
        self.listed >= self.merge_at
    }

    /// # Safety
    /// A free object of this class, or a whole free run for the class behind the last.
    unsafe fn put_whole(&mut self, class: usize, object: *mut u8) {
        // SAFETY: by the caller's duty.
        unsafe {
            if class < CLASSES {
                self.link(class, object);
            } else if self.keep_spare(object) == Spare::NotWanted {
                push(&mut self.whole, object);
            }
        }
    }

    /// Takes the first free objects of a class out, as many as are looked at in one merge.
    fn cut_list(&mut self, class: usize) -> *mut u8 {
        let first = core::mem::replace(&mut self.free[class], null_mut());
        if first.is_null() {
            self.free[class] = core::mem::replace(&mut self.later[class], null_mut());
            if self.free[class].is_null() {
                return null_mut();
            }
            return self.cut_list(class);
        }
        let mut last = first;
        for _ in 1..MERGED_AT_ONCE {
            // SAFETY: a free object, whose first word is ours.
            unsafe {
                if next_of(last).is_null() {
                    let later = core::mem::replace(&mut self.later[class], null_mut());
                    last.cast::<*mut u8>().write(later);
                }
                if next_of(last).is_null() {
                    return first;
                }
                last = next_of(last);
            }
        }
        // SAFETY: as above.
        unsafe {
            self.free[class] = next_of(last);
            last.cast::<*mut u8>().write(null_mut());
        }
        first
    }

    /// Has `wanted` runs be kept for when there is no memory.
    pub fn want_spare(&mut self, wanted: usize) {
        self.wanted = wanted.min(MOST_SPARE);
    }

    /// Keeps a run, if it is wanted.
    pub fn keep_spare(&mut self, run: *mut u8) -> Spare {
        if self.spares >= self.wanted {
            return Spare::NotWanted;
        }
        self.spare[self.spares] = run;
        self.spares += 1;
        Spare::Kept
    }

    fn take_spare(&mut self) -> Option<*mut u8> {
        self.spares = self.spares.checked_sub(1)?;
        Some(self.spare[self.spares])
    }

    /// Whether runs of the reserve are missing.
    pub fn lacks_spare(&self) -> bool {
        self.spares < self.wanted
    }

    /// Whether so many are missing that what is left is needed for the work under way.
    pub fn is_short(&self) -> bool {
        self.lacks_spare() && self.spares <= self.wanted / 2
    }

    /// Whether a merge may find a whole run.
    pub fn is_worth_a_merge(&self) -> bool {
        self.put_back >= MERGE_AFTER
    }
}

#[cfg(test)]
mod tests;
