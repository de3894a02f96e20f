//! A look at a heap: whether its lists and tables tell the same story. For tests.
//!
//! Each size is looked at under its lock, so the heap may be in use. But who takes or frees a slot
//! sets its owner without the lock, so that a count may be one off for a moment;
//! [`SharedHeap::is_sound`] looks again then.

use super::chunk::FreeSlot;
use super::{Chunk, SharedHeap};
use abi::Text;
use abi::shared::{CHUNK_BYTES, SMALLEST_SLOT};
use core::fmt::{self, Write};
#[cfg(feature = "audit")]
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering;

/// So long a heap in use is looked at before what does not fit is believed, in nanoseconds. The
/// thread that is between the two halves of its work may wait for a processor.
#[cfg(feature = "audit")]
const PATIENCE: u64 = 10_000_000_000;
/// Nanoseconds between two looks.
#[cfg(feature = "audit")]
const PAUSE: u64 = 1_000_000;

/// What does not fit. No text of the heap: this is said under the lock of a class.
type Wrong = Text<96>;

/// Slots of a chunk, at the most.
const MOST_SLOTS: usize = CHUNK_BYTES / SMALLEST_SLOT;

fn wrong(what: fmt::Arguments<'_>) -> Wrong {
    let mut text = Wrong::empty();
    let _ = text.write_fmt(what);
    text
}

/// A bit for each slot of a chunk.
struct Slots([u64; MOST_SLOTS / 64]);

impl Slots {
    /// Sets the bit of `slot`, which is below `end`; whether it was set, `None` if there is none.
    fn set(&mut self, slot: u32, end: u32) -> Option<bool> {
        let word = self.0.get_mut(slot as usize / 64).filter(|_| slot < end)?;
        let bit = 1 << (slot % 64);
        let was_set = *word & bit != 0;
        *word |= bit;
        Some(was_set)
    }
}

impl SharedHeap {
    /// As [`audit`](Self::audit), of a heap that may be in use.
    ///
    /// # Errors
    /// What did not fit in the last look, after ten seconds of looking.
    #[cfg(feature = "audit")]
    pub fn is_sound(&self) -> Result<(), Wrong> {
        let platform = crate::platform::platform();
        let until = platform.now() + PATIENCE;
        let never = AtomicU32::new(0);
        loop {
            let outcome = self.audit().map(drop);
            let now = platform.now();
            if outcome.is_ok() || now >= until {
                return outcome;
            }
            platform.wait(&never, 0, Some(now + PAUSE));
        }
    }

    /// How many objects there are, and what does not fit.
    ///
    /// # Errors
    /// The first chunk whose free list, owner table and count of used slots contradict each other,
    /// which is what an object that was freed twice, or freed and used, leaves behind.
    pub(crate) fn audit(&self) -> Result<usize, Wrong> {
        let mut objects = self.large.lock().len();
        for class in &self.classes {
            let class = class.lock();
            for chunk in &class.chunks {
                objects += chunk.audit()?;
            }
        }
        Ok(objects)
    }
}

impl Chunk {
    fn audit(self) -> Result<usize, Wrong> {
        // SAFETY: the chunk is in its class's list, so it is live, and the lock is held.
        let head = unsafe { self.head() };
        let mut free = Slots([0; MOST_SLOTS / 64]);
        let mut next = head.free.load(Ordering::Relaxed);
        while next != 0 {
            let known = free.set(next, head.end);
            let astray = || wrong(format_args!("the list of free slots leads to {next}"));
            if known.ok_or_else(astray)? {
                return Err(wrong(format_args!("slot {next} is free twice")));
            }
            // SAFETY: a free slot of the chunk; its content is the list's.
            next = unsafe { self.slot(next).cast::<FreeSlot>().as_ref().next };
        }
        let owned = self.owners().count();
        if owned != self.used() as usize {
            return Err(wrong(format_args!(
                "{} slots are used, {owned} have owners",
                self.used()
            )));
        }
        Ok(owned)
    }
}
