//! What the pages of an object have in common.

use crate::Word;
use core::sync::atomic::Ordering;

const SEALED: u64 = 1 << 63;

/// The object may not be changed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed;

/// How many pages an object may have, and whether they may change.
#[derive(Debug)]
pub struct Bounds<W> {
    limit: W,
    /// Writes under way, and [`SEALED`].
    writers: W,
}

/// A write under way.
#[derive(Debug)]
pub struct Writing<'a, W: Word>(&'a W);

impl<W: Word> Bounds<W> {
    /// For at most `limit` pages.
    pub fn new(limit: u64) -> Self {
        Bounds {
            limit: W::new(limit),
            writers: W::new(0),
        }
    }

    /// Pages from this one on cannot be added.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::SeqCst)
    }

    /// Sets the limit. Who lowers it cuts all pages from the new one on afterwards; then there are
    /// none, and none come.
    pub fn set_limit(&self, limit: u64) {
        change(&self.limit, |_| Some(limit));
    }

    /// Begins a write of some pages.
    ///
    /// # Errors
    /// [`Sealed`].
    pub fn begin_write(&self) -> Result<Writing<'_, W>, Sealed> {
        let more = |value| (value & SEALED == 0).then_some(value + 1);
        match change(&self.writers, more) {
            true => Ok(Writing(&self.writers)),
            false => Err(Sealed),
        }
    }

    /// Lets no further write begin. Returns whether none is under way either: no byte changes then
    /// any more. If not, who seals asks again.
    pub fn seal(&self) -> bool {
        change(&self.writers, |value| Some(value | SEALED));
        self.writers.load(Ordering::Acquire) == SEALED
    }
}

impl<W: Word> Drop for Writing<'_, W> {
    fn drop(&mut self) {
        change(self.0, |value| Some(value - 1));
    }
}

/// Replaces the value by what `next` makes of it; false where it says `None`.
fn change<W: Word>(word: &W, next: impl Fn(u64) -> Option<u64>) -> bool {
    let mut value = word.load(Ordering::Acquire);
    while let Some(wanted) = next(value) {
        match word.replace(value, wanted) {
            Ok(_) => return true,
            Err(now) => value = now,
        }
    }
    false
}
