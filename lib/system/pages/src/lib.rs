//! The page protocol of memory objects: who may use, write, load, clean and remove a page at the
//! same time, without a lock.
//!
//! A page is one atomic word (`Page`): the number of its frame, and what is to be known of it. A
//! frame is counted elsewhere, by who implements [`Frames`]: the kernel in the frame's slot, a test
//! in a word of its own. Whether the pages of an object may still be changed says its [`Seal`], and
//! whether it was told that some are dirty, its [`Alarm`].
//!
//! Who has a value of a type that implements [`Frames`] can break every count. So a kernel gives
//! none away, but a [`Pool`] of it: from that come pages of memory objects, [`Entry`], and frames
//! for them, [`Fresh`], and there is no way to a count but by what these do.
//!
//! # Orders
//! - A page's word changes by compare-and-swap only, with [`Ordering::SeqCst`]. Whoever reads the
//!   word with `Acquire` sees the bytes of a load that has ended, and those of a write that is
//!   marked.
//! - [`Frames::share`] acquires, and whoever drops a count releases. So who gets a count on a
//!   frame in its next life sees, in its second look at the word, that the page has lost it.
//! - [`Frames::freeze`] acquires: who freezes has seen all that was done under the counts before.
//! - The writers' count and the seal are one word.
//!
//! # Write-back
//! A page that is being written back has a mark and nothing else: no count, no note anywhere. The
//! mark keeps the page from removal, and goes with the frame when the page is cut. Whoever reads
//! what is to be written has a count as any reader, or as a device.
//!
//! # Devices
//! A device has a count as everybody else who uses a frame, and is counted as a device besides. So
//! a frame that it may write to is neither removed nor freed, whatever becomes of the page, and a
//! load can be told from one that is still being filled.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod alarm;
mod entry;
mod page;
mod seal;
#[cfg(test)]
mod tests;

pub use alarm::Alarm;
pub use entry::{Entry, Fresh, Load, Pool};
use page::Page;
pub use page::{Held, Lent, Missing, Tags};
pub use seal::{Seal, Sealed, Writing};

use core::sync::atomic::{AtomicU64, Ordering};

/// What nobody outside can be.
mod sealed {
    /// A word that does what it says.
    pub trait Honest {}

    impl Honest for core::sync::atomic::AtomicU64 {}
}

/// An atomic word of 64 bits: `core`'s, or one whose accesses a model checker watches. A word that
/// lies could have any count dropped, so there are no others.
pub trait Word: sealed::Honest + Send + Sync {
    /// A word with this value.
    fn new(value: u64) -> Self;
    /// Reads it.
    fn load(&self, order: Ordering) -> u64;
    /// Replaces `from` by `to`, with `SeqCst`, or says with `Acquire` what is there.
    fn replace(&self, from: u64, to: u64) -> Result<u64, u64>;
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    #[inline(always)]
    fn replace(&self, from: u64, to: u64) -> Result<u64, u64> {
        self.compare_exchange(from, to, Ordering::SeqCst, Ordering::Acquire)
    }
}

/// The frames under pages, and their counts. Frame 0 is nobody's; numbers have 52 bits.
///
/// A frame is unused, has a count of owners, or is frozen. A freeze lasts for a few instructions:
/// who freezes keeps its processor until then.
pub trait Frames: Copy {
    /// Takes an unused frame for untyped bytes, with a count of one. `None`: there is no memory.
    fn claim(&self) -> Option<u64>;
    /// Adds a count, with `Acquire`, if the frame is in use for untyped bytes and not frozen.
    fn share(&self, frame: u64) -> bool;
    /// Takes a count away, with `Release`; the last one frees the frame. Waits while it is frozen.
    fn release(&self, frame: u64);
    /// Freezes a frame whose count is one, with `Acquire`.
    fn freeze(&self, frame: u64) -> bool;
    /// Gives a frozen frame its count of one back, with `Release`.
    fn thaw(&self, frame: u64);
    /// Counts a device that uses a frame on which the caller has a count; `false`: they are too
    /// many.
    fn lend(&self, frame: u64) -> bool;
    /// Counts one less, before the count that it was lent with is dropped.
    fn take_back(&self, frame: u64);
    /// [`take_back`](Self::take_back) and [`release`](Self::release), at once.
    fn end_loan(&self, frame: u64) {
        self.take_back(frame);
        self.release(frame);
    }
    /// Whether a device uses the frame, on which the caller has a count.
    fn is_lent(&self, frame: u64) -> bool;
    /// Frees a frozen frame, with `Release`.
    fn give_up(&self, frame: u64);
    /// A load of some page is over: whoever waits for one looks again.
    fn wake(&self);
    /// One round of waiting for a frame to be thawed or given up.
    fn pause(&self);
    /// Whether a step is left out on purpose. Only tests of the tests do.
    #[inline(always)]
    fn breaks(&self, _step: Step) -> bool {
        false
    }
}

/// Bytes of a program's memory that follow each other.
pub struct Run<'a, P> {
    /// Whose memory.
    pub program: &'a P,
    /// Where they begin in it. Nobody has looked whether there is anything.
    pub address: u64,
    /// How many.
    pub count: usize,
}

impl<P> Clone for Run<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Run<'_, P> {}

impl<P> Run<'_, P> {
    /// At most `count` bytes of it, behind the first `done`.
    pub fn part(self, done: usize, count: usize) -> Self {
        Run {
            program: self.program,
            // What wraps is no program's, or was not one's from its first byte on.
            address: self.address.wrapping_add(done as u64),
            count: count.min(self.count.saturating_sub(done)),
        }
    }
}

/// Frames that can be reached as bytes.
pub trait Bytes: Frames {
    /// The memory of a program, which may go while it is copied.
    type Program: 'static;
    /// Copies from byte `at` of the frame on, on which the caller has a count. Others may write to
    /// it meanwhile: then any of their bytes are copied.
    ///
    /// # Panics
    /// Beyond the end of the frame.
    fn copy_out(&self, frame: u64, at: usize, bytes: &mut [u8]);
    /// Copies to byte `at` of the frame on, likewise.
    ///
    /// # Panics
    /// Beyond the end of the frame.
    fn copy_in(&self, frame: u64, at: usize, bytes: &[u8]);
    /// Copies from byte `at` of the frame on to a program, likewise: how many bytes, up to the
    /// first page that the program may not write to now.
    ///
    /// # Panics
    /// Beyond the end of the frame.
    fn copy_to(&self, frame: u64, at: usize, run: Run<'_, Self::Program>) -> usize;
    /// Copies from a program to byte `at` of the frame on, likewise, up to the first page that the
    /// program may not read now.
    ///
    /// # Panics
    /// Beyond the end of the frame.
    fn copy_from(&self, frame: u64, at: usize, run: Run<'_, Self::Program>) -> usize;
}

/// A step that tests leave out or turn round, to show that they would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A reader looks at the word again.
    SecondLook,
    /// The second look minds that the page may be loading.
    SecondLookForLoading,
    /// A write marks the page after it has copied.
    MarkLast,
    /// A mark is set only while the page has the frame that was written.
    MarkThatFrame,
    /// A page is frozen before its word is cleared.
    FreezeFirst,
    /// A load holds a count of its own.
    LoadHolds,
    /// A load that breaks off leaves no frame in the page.
    BreakOffEmpties,
    /// A load that breaks off wakes who waits for it.
    BreakOffWakes,
    /// Pages are written back once at a time.
    OneCleanAtATime,
    /// A page that is being written back is not removed.
    WriteBackKeeps,
    /// That pages are dirty is told after the mark.
    TellLast,
    /// Who looks for dirty pages quiets the alarm first.
    QuietFirst,
    /// A device keeps the count that it was lent the frame with.
    LoanHolds,
    /// A device is told from others who have a count.
    LoanCounts,
}
