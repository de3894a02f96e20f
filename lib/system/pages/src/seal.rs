//! Whether an object may still be changed.

use crate::Word;
use core::sync::atomic::Ordering;

const SEALED: u64 = 1 << 63;

/// The object may not be changed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed;

/// Writes under way, and whether others may begin.
#[derive(Debug)]
pub struct Seal<W>(W);

/// A write under way.
#[derive(Debug)]
pub struct Writing<'a, W: Word>(&'a W);

impl<W: Word> Seal<W> {
    /// Of an object that may be changed.
    pub fn open() -> Self {
        Seal(W::new(0))
    }

    /// Begins a write of some pages.
    ///
    /// # Errors
    /// [`Sealed`].
    pub fn begin_write(&self) -> Result<Writing<'_, W>, Sealed> {
        let more = |value| (value & SEALED == 0).then_some(value + 1);
        match change(&self.0, more) {
            Some(_) => Ok(Writing(&self.0)),
            None => Err(Sealed),
        }
    }

    /// Ends a write that was [kept](Writing::keep).
    pub fn end_kept(&self) {
        change(&self.0, |value| (value & !SEALED != 0).then(|| value - 1));
    }

    /// Lets no further write begin. Returns whether none is under way either: no byte changes then
    /// any more. If not, who seals asks again.
    pub fn close(&self) -> bool {
        change(&self.0, |value| Some(value | SEALED));
        self.0.load(Ordering::Acquire) == SEALED
    }

    /// Whether no write is under way and none can begin: nothing changes any more.
    pub fn is_final(&self) -> bool {
        self.0.load(Ordering::Acquire) == SEALED
    }

    /// Whether no further write can begin.
    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) & SEALED != 0
    }
}

impl<W: Word> Writing<'_, W> {
    /// Has the write go on until [`Seal::end_kept`].
    pub fn keep(self) {
        core::mem::forget(self);
    }
}

impl<W: Word> Drop for Writing<'_, W> {
    fn drop(&mut self) {
        change(self.0, |value| Some(value - 1));
    }
}

/// Replaces the value by what `next` makes of it, until it says `None`; what was there.
pub(crate) fn change<W: Word>(word: &W, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let mut value = word.load(Ordering::Acquire);
    loop {
        match word.replace(value, next(value)?) {
            Ok(before) => return Some(before),
            Err(now) => value = now,
        }
    }
}
