//! Small free objects at hand: some of each size, which were taken from the lists together and go
//! back there together, so that the lock of the lists is seldom asked for.

use super::chain::{next_of, push};
use super::{Lists, size_of_class};
use core::ptr::null_mut;

/// Sizes that a magazine has: up to 512 bytes.
const SIZES: usize = 6;
/// The most objects of a size, and how many come and go together.
const MOST: u32 = 32;
const SOME: u32 = MOST / 2;

/// Free objects of the smaller sizes.
pub struct Magazine {
    /// First free object of each size; each holds the address of the next.
    first: [*mut u8; SIZES],
    count: [u32; SIZES],
}

// SAFETY: what the pointers lead to belongs to who has the magazine, on whatever thread that is.
unsafe impl Send for Magazine {}

impl Magazine {
    /// Nothing.
    pub const EMPTY: Magazine = Magazine {
        first: [null_mut(); SIZES],
        count: [0; SIZES],
    };

    /// Whether objects of this class are kept in magazines.
    pub fn has(class: usize) -> bool {
        class < SIZES
    }

    /// A free object of a class that magazines have, or null.
    pub fn take(&mut self, class: usize) -> *mut u8 {
        let object = self.first[class];
        if !object.is_null() {
            // SAFETY: a free object of ours, which holds the address of the next.
            self.first[class] = unsafe { next_of(object) };
            self.count[class] -= 1;
        }
        object
    }

    /// Takes an object of such a class back. If there are many now, some are for the
    /// [lists](Self::empty).
    ///
    /// # Safety
    /// As that of [`Lists::put`].
    pub unsafe fn put(&mut self, class: usize, object: *mut u8) -> bool {
        // SAFETY: by the caller's duty.
        unsafe { push(&mut self.first[class], object) };
        self.count[class] += 1;
        self.count[class] >= MOST
    }

    /// Has some more objects from the lists, as far as they have any; one for the caller, or null.
    pub fn fill(&mut self, class: usize, lists: &mut Lists) -> *mut u8 {
        let own = lists.take(class);
        for _ in 1..SOME {
            let object = lists.take(class);
            if object.is_null() {
                break;
            }
            // SAFETY: the lists have given it for this class just now.
            unsafe { self.put(class, object) };
        }
        own
    }

    /// Gives some objects of a class to the lists.
    pub fn empty(&mut self, class: usize, lists: &mut Lists) {
        self.give(class, SOME, lists);
    }

    /// Gives all objects to the lists.
    pub fn empty_all(&mut self, lists: &mut Lists) {
        (0..SIZES).for_each(|class| self.give(class, u32::MAX, lists));
    }

    fn give(&mut self, class: usize, most: u32, lists: &mut Lists) {
        for _ in 0..most.min(self.count[class]) {
            let object = self.take(class);
            // SAFETY: it was put here, or taken from the lists, for this class.
            unsafe { lists.put(class, object) };
        }
    }
}

const _: () = assert!(size_of_class(SIZES - 1) == 512);
