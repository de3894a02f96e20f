//! The word of one page, and all that may happen to it.

use crate::{Frames, Step, Word};
use core::mem::ManuallyDrop;
use core::num::NonZeroU64;
use core::sync::atomic::Ordering;

const EMPTY: u64 = 0;
const DIRTY: u64 = 1 << 63;
const WRITEBACK: u64 = 1 << 62;
const ACCESSED: u64 = 1 << 61;
const LOADING: u64 = 1 << 60;
const FRAME: u64 = (1 << 52) - 1;

/// Why a page cannot be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It has no frame.
    Absent,
    /// It is being loaded. [`Frames::wake`] says when to look again.
    Loading,
    /// It had a frame when the copy began, and was cut off meanwhile: nothing was written.
    Cut,
}

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    /// It has a frame.
    pub present: bool,
    /// It was written since the last [`Page::clean`].
    pub dirty: bool,
    /// It is being written back. Whoever finds this after a crash takes it for dirty.
    pub writeback: bool,
    /// It was used since the last [`Page::age`].
    pub accessed: bool,
    /// Its content is not there yet.
    pub loading: bool,
}

/// A count on a frame.
#[derive(Debug)]
pub struct Held<F: Frames> {
    frames: F,
    frame: u64,
}

impl<F: Frames> Held<F> {
    /// The one count on a new frame. `None`: there is no memory.
    pub fn claim(frames: F) -> Option<Self> {
        let frame = frames.claim()?;
        Some(Held { frames, frame })
    }

    /// The frame's number.
    pub fn frame(&self) -> u64 {
        self.frame
    }

    /// The frame's number; its count is the caller's.
    fn into_frame(self) -> u64 {
        ManuallyDrop::new(self).frame
    }

    pub(crate) fn frames(&self) -> F {
        self.frames
    }

    /// Another count on the same frame. `None`: there are too many.
    pub(crate) fn again(&self) -> Option<Self> {
        let (frames, frame) = (self.frames, self.frame);
        frames.share(frame).then_some(Held { frames, frame })
    }
}

impl<F: Frames> Drop for Held<F> {
    #[inline]
    fn drop(&mut self) {
        self.frames.release(self.frame);
    }
}

impl<F: Frames> Held<F> {
    /// Lets a device use the frame, with this count.
    ///
    /// # Errors
    /// Too many do: the count comes back.
    #[inline]
    pub fn lend(self) -> Result<Lent<F>, Self> {
        let frames = self.frames;
        // Frame 0 is nobody's.
        let Some(frame) = NonZeroU64::new(self.frame) else {
            return Err(self);
        };
        if !frames.breaks(Step::LoanHolds) {
            if !frames.lend(self.frame) {
                return Err(self);
            }
            self.into_frame();
        }
        Ok(Lent { frames, frame })
    }

    /// Whether a device uses the frame.
    pub fn is_lent(&self) -> bool {
        self.frames.is_lent(self.frame) && !self.frames.breaks(Step::LoanCounts)
    }
}

/// A count on a frame that a device uses. It lasts until the device does so no more. An `Option` of
/// it takes no more room, as lists of them are long.
#[derive(Debug)]
pub struct Lent<F: Frames> {
    frames: F,
    frame: NonZeroU64,
}

impl<F: Frames> Lent<F> {
    /// The frame's number.
    pub fn frame(&self) -> u64 {
        self.frame.get()
    }

    pub(crate) fn frames(&self) -> F {
        self.frames
    }
}

impl<F: Frames> Lent<F> {
    /// Drops it, without a call for that.
    #[inline(always)]
    pub fn end(self) {
        ManuallyDrop::new(self).give_back();
    }

    #[inline(always)]
    fn give_back(&self) {
        if !self.frames.breaks(Step::LoanHolds) {
            self.frames.end_loan(self.frame());
        }
    }
}

impl<F: Frames> Drop for Lent<F> {
    #[inline]
    fn drop(&mut self) {
        self.give_back();
    }
}

/// One page of a memory object.
#[derive(Debug)]
pub struct Page<W>(W);

impl<W: Word> Page<W> {
    /// A page without a frame.
    pub fn empty() -> Self {
        Page(W::new(EMPTY))
    }

    /// What is known of it at this moment.
    pub fn tags(&self) -> Tags {
        let word = self.0.load(Ordering::Acquire);
        Tags {
            present: word & FRAME != 0,
            dirty: word & DIRTY != 0,
            writeback: word & WRITEBACK != 0,
            accessed: word & ACCESSED != 0,
            loading: word & LOADING != 0,
        }
    }

    /// Replaces the word by what `next` makes of it, until it says `None`. Returns what was there.
    #[inline]
    fn update(&self, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            match self.0.replace(word, next(word)?) {
                Ok(before) => return Some(before),
                Err(now) => word = now,
            }
        }
    }

    /// A count on the page's frame, whose content is there.
    ///
    /// # Errors
    /// [`Missing::Absent`] and [`Missing::Loading`].
    #[inline(always)]
    pub fn hold<F: Frames>(&self, frames: F) -> Result<Held<F>, Missing> {
        match self.hold_at_once(frames) {
            Some(held) => Ok(held),
            None => self.hold_at_last(frames),
        }
    }

    /// Not inlined, since it is seldom needed where most is held.
    #[inline(never)]
    fn hold_at_last<F: Frames>(&self, frames: F) -> Result<Held<F>, Missing> {
        loop {
            usable(self.0.load(Ordering::Acquire))?;
            if let Some(held) = self.hold_at_once(frames) {
                return Ok(held);
            }
            // Somebody removes the page, or has done so.
            frames.pause();
        }
    }

    /// A count on the page's frame, if it has its content and nobody is at it.
    #[inline(always)]
    fn hold_at_once<F: Frames>(&self, frames: F) -> Option<Held<F>> {
        let word = self.0.load(Ordering::Acquire);
        let frame = usable(word).ok()?;
        if !frames.share(frame) {
            return None;
        }
        let held = Held { frames, frame };
        // Before the count was raised the frame may have gone to somebody else, or gone and come
        // back for another load of this page.
        let mut mask = FRAME | LOADING;
        if frames.breaks(Step::SecondLookForLoading) {
            mask = FRAME;
        }
        let again = self.0.load(Ordering::Acquire);
        (again & mask == word & mask || frames.breaks(Step::SecondLook)).then_some(held)
    }

    /// Has `copy` read from the page's frame.
    ///
    /// # Errors
    /// [`Missing::Absent`] and [`Missing::Loading`].
    pub fn read<F: Frames, R>(&self, frames: F, copy: impl FnOnce(u64) -> R) -> Result<R, Missing> {
        let held = self.hold(frames)?;
        let result = copy(held.frame);
        self.note_use(&held);
        Ok(result)
    }

    /// Notes that the page was used, if it still has this frame.
    pub(crate) fn note_use<F: Frames>(&self, held: &Held<F>) {
        let unused = |word| word & FRAME == held.frame && word & ACCESSED == 0;
        self.update(|word| unused(word).then_some(word | ACCESSED));
    }

    /// Has `copy` write to the page's frame, and marks the page, unless it says `None`: then it has
    /// not written. The second result is whether the page was clean before.
    ///
    /// # Errors
    /// [`Missing`]. With [`Missing::Cut`] whatever was copied counts as not written.
    pub fn write<F: Frames, R>(
        &self,
        frames: F,
        copy: impl FnOnce(u64) -> Option<R>,
    ) -> Result<Option<(R, bool)>, Missing> {
        let held = self.hold(frames)?;
        if held.frames.breaks(Step::MarkLast) {
            let first = self.mark(&held)?;
            return Ok(copy(held.frame).map(|result| (result, first)));
        }
        let Some(result) = copy(held.frame) else {
            return Ok(None);
        };
        Ok(Some((result, self.mark(&held)?)))
    }

    /// Marks the page dirty if it still has this frame. Returns whether it was clean.
    pub(crate) fn mark<F: Frames>(&self, held: &Held<F>) -> Result<bool, Missing> {
        self.mark_frame(held.frames, held.frame, FRAME)
    }

    /// Marks the page dirty for a device that has written to this frame, if the page has it still,
    /// and its content. A load of a frame that is lent does not end, so there is none when it is
    /// marked.
    #[inline]
    pub fn mark_lent<F: Frames>(&self, lent: &Lent<F>) -> Result<bool, Missing> {
        self.mark_frame(lent.frames, lent.frame(), FRAME | LOADING)
    }

    /// Marks the page dirty if its word has this frame and no other bits of `mask`.
    #[inline]
    fn mark_frame<F: Frames>(&self, frames: F, frame: u64, mask: u64) -> Result<bool, Missing> {
        let any = frames.breaks(Step::MarkThatFrame);
        let dirty = |word| (word & mask == frame || any).then_some(word | DIRTY | ACCESSED);
        let before = self.update(dirty).ok_or(Missing::Cut)?;
        Ok(before & DIRTY == 0)
    }

    /// Whether the page still has the frame that is held, with its content. By a compare-and-swap,
    /// not a load, which could be done before what was stored earlier: so who has made a page table
    /// for the frame sees that the page has lost it, or whoever took it away sees the table.
    pub(crate) fn is_still<F: Frames>(&self, held: &Held<F>) -> bool {
        usable(self.update(Some).unwrap_or(EMPTY)) == Ok(held.frame)
    }

    /// Takes the dirty mark away for a write-back, by one compare-and-swap. Returns whether there
    /// is something to write, and no earlier write-back under way. Until it is over the page is not
    /// removed, so whoever writes it back can hold its frame.
    pub fn clean<F: Frames>(&self, frames: F) -> bool {
        let mut mind = DIRTY | WRITEBACK | LOADING;
        if frames.breaks(Step::OneCleanAtATime) {
            mind = DIRTY | LOADING;
        }
        let due = |word| (word & mind == DIRTY).then_some(word & !DIRTY | WRITEBACK);
        self.update(due).is_some()
    }

    /// The write-back is on the disk. Returns whether there was one: a page that was cut has none
    /// any more.
    pub fn commit(&self) -> bool {
        let over = |word| (word & WRITEBACK != 0).then_some(word & !WRITEBACK);
        self.update(over).is_some()
    }

    /// The write-back will not end: the page is dirty again. Returns whether there was one.
    pub fn redo(&self) -> bool {
        let dirty = |word| (word & WRITEBACK != 0).then_some(word & !WRITEBACK | DIRTY);
        self.update(dirty).is_some()
    }

    /// Clears the mark of use. Returns whether it was set.
    pub fn age(&self) -> bool {
        let unused = |word| (word & ACCESSED != 0).then_some(word & !ACCESSED);
        self.update(unused).is_some()
    }

    /// Gives a page without one this frame, whose count is the page's from now on.
    ///
    /// # Errors
    /// The page has a frame, or is being loaded: `held` comes back.
    pub fn put<F: Frames>(&self, held: Held<F>) -> Result<(), Held<F>> {
        match self.0.replace(EMPTY, held.frame) {
            Ok(_) => {
                held.into_frame();
                Ok(())
            }
            Err(_) => Err(held),
        }
    }

    /// Begins to load the page into this frame. The count that is returned is the request's: it
    /// lasts until no device writes to the frame any more.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn load<F: Frames>(&self, held: Held<F>) -> Result<Held<F>, Held<F>> {
        let shared = held.frames.breaks(Step::LoadHolds) || held.frames.share(held.frame);
        // Nobody else knows the frame, and a frame has room for many counts.
        debug_assert!(shared, "a frame of one's own can be shared");
        match self.0.replace(EMPTY, held.frame | LOADING) {
            Ok(_) => Ok(held),
            Err(_) => {
                held.frames.release(held.frame);
                Err(held)
            }
        }
    }

    /// Takes the frame out of a word that has these bits of [`FRAME`] and [`LOADING`].
    fn detach(&self, bits: u64) -> Option<u64> {
        self.update(|word| (word & (FRAME | LOADING) == bits).then_some(EMPTY))
    }

    /// The load that holds this frame has brought the content. Returns whether the page still
    /// waited for it.
    pub fn end_load<F: Frames>(&self, held: &Held<F>) -> bool {
        let there = self.update(|word| (word == held.frame | LOADING).then_some(held.frame));
        held.frames.wake();
        there.is_some()
    }

    /// The load that holds this frame brings nothing. The page is empty, its next load gets another
    /// frame, and this one stays the request's. Returns whether the page still waited for it.
    pub fn break_off<F: Frames>(&self, held: &Held<F>) -> bool {
        let frames = held.frames;
        if frames.breaks(Step::BreakOffEmpties) {
            return self.end_load(held);
        }
        let waited = self.detach(held.frame | LOADING).is_some();
        if waited {
            frames.release(held.frame);
        }
        if !frames.breaks(Step::BreakOffWakes) {
            frames.wake();
        }
        waited
    }

    /// Frees the page's frame if the page is clean and nobody else has a count on it. Returns
    /// whether it did; otherwise the page was never without it.
    pub fn remove<F: Frames>(&self, frames: F) -> bool {
        let word = self.0.load(Ordering::Acquire);
        let frame = word & FRAME;
        let mut mind = DIRTY | WRITEBACK | LOADING;
        if frames.breaks(Step::WriteBackKeeps) {
            mind = DIRTY | LOADING;
        }
        if frame == 0 || word & mind != 0 {
            return false;
        }
        if frames.breaks(Step::FreezeFirst) {
            return self.remove_clearing_first(frames, word);
        }
        if !frames.freeze(frame) {
            return false;
        }
        // The frame may have left the page before it was frozen, or be written to since. A `cut`
        // that comes now waits for the thaw with its count.
        let cleared = self.0.replace(word, EMPTY).is_ok();
        match cleared {
            true => frames.give_up(frame),
            false => frames.thaw(frame),
        }
        cleared
    }

    /// What [`Step::FreezeFirst`] is there against.
    fn remove_clearing_first<F: Frames>(&self, frames: F, word: u64) -> bool {
        if self.0.replace(word, EMPTY).is_err() {
            return false;
        }
        let frozen = frames.freeze(word & FRAME);
        match frozen {
            true => frames.give_up(word & FRAME),
            false => drop(self.0.replace(EMPTY, word)),
        }
        frozen
    }

    /// Takes the frame away from the page whatever its state is. It lives on by the counts of
    /// others: of who reads, of a request, of a mapping. Returns whether there was one.
    pub fn cut<F: Frames>(&self, frames: F) -> bool {
        let mut word = self.0.load(Ordering::Acquire);
        while word & FRAME != 0 {
            match self.0.replace(word, EMPTY) {
                Ok(_) => {
                    frames.release(word & FRAME);
                    frames.wake();
                    return true;
                }
                Err(now) => word = now,
            }
        }
        false
    }
}

/// The frame of a word whose content is there.
#[inline]
fn usable(word: u64) -> Result<u64, Missing> {
    match word & FRAME {
        0 => Err(Missing::Absent),
        _ if word & LOADING != 0 => Err(Missing::Loading),
        frame => Ok(frame),
    }
}
