//! The frame allocator: the buddy library behind the framework's trait.
//!
//! The books are made once, when the policy is put in; nothing is allocated afterwards.

use alloc::vec::Vec;

use buddy::{Buddy, Group, SECTION_PAGES, Section, groups_for};
use framework::mem::NoMemory;
use framework::mem::frames::{self, FramePolicy};
use framework::sync::SpinLock;

/// A frame allocator that splits and joins blocks of powers of two.
pub struct BuddyFrames {
    buddy: SpinLock<Option<Buddy<'static>>>,
}

impl BuddyFrames {
    /// An allocator that has no frames yet.
    pub const fn new() -> Self {
        Self {
            buddy: SpinLock::new(None),
        }
    }

    /// Makes the books and takes over all free frames. To be called once, at boot.
    pub fn install(&'static self) -> Result<(), NoMemory> {
        let sections = frames::end().div_ceil(SECTION_PAGES);
        let book = array(sections, Section::EMPTY)?;
        let groups = array(groups_for(sections), Group::EMPTY)?;
        *self.buddy.lock() = Some(Buddy::new(book, groups));
        frames::set_policy(self);
        Ok(())
    }
}

impl Default for BuddyFrames {
    fn default() -> Self {
        Self::new()
    }
}

/// Memory for ever, filled with `value`.
fn array<T: Copy>(length: usize, value: T) -> Result<&'static mut [T], NoMemory> {
    let mut values = Vec::new();
    values.try_reserve_exact(length).map_err(|_| NoMemory)?;
    values.resize(length, value);
    Ok(values.leak())
}

impl FramePolicy for BuddyFrames {
    fn alloc(&self, count: usize) -> Option<usize> {
        self.buddy.lock().as_mut()?.alloc(count)
    }

    fn free(&self, first: usize, count: usize) {
        if let Some(buddy) = self.buddy.lock().as_mut() {
            // Frames that it has already, or that are outside its books, are no use to it.
            let _ = buddy.free(first, count);
        }
    }
}
