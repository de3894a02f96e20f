//! Pages with their frames, for those who must not touch a count by themselves.

use crate::{Bytes, Frames, Held, Lent, Missing, Page, Run, Tags};
use core::sync::atomic::AtomicU64;

/// Where frames come from.
#[derive(Clone, Copy, Debug)]
pub struct Pool<F>(F);

impl<F: Frames> Pool<F> {
    /// Frames of this kind. Who makes it vouches that nobody else changes the counts of frames that
    /// come from it.
    pub const fn new(frames: F) -> Self {
        Pool(frames)
    }

    /// A frame for a page, with what the kind of frame begins with. `None`: there is no memory.
    pub fn claim(&self) -> Option<Fresh<F>> {
        Held::claim(self.0).map(Fresh)
    }

    /// A page without a frame.
    pub fn entry(&self) -> Entry<F> {
        Entry {
            page: Page::empty(),
            frames: self.0,
        }
    }
}

/// A frame that no page has yet.
#[derive(Debug)]
pub struct Fresh<F: Frames>(Held<F>);

/// A load under way. Dropping it does not end it: the page then waits until it is cut.
#[derive(Debug)]
pub struct Load<F: Frames>(Held<F>);

impl<F: Frames> Load<F> {
    /// Lets a device fill the page. `None`: too many do.
    pub fn lend(&self) -> Option<Lent<F>> {
        self.0.again()?.lend().ok()
    }

    /// Whether a device may still write to the page.
    pub fn is_lent(&self) -> bool {
        self.0.is_lent()
    }
}

impl<F: Bytes> Lent<F> {
    /// Puts content into the frame in place of a device, from byte `at` on.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn fill(&self, at: usize, bytes: &[u8]) {
        self.frames().copy_in(self.frame(), at, bytes);
    }

    /// As [`fill`](Self::fill), from a program; how many bytes.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn fill_from(&self, at: usize, run: Run<'_, F::Program>) -> usize {
        self.frames().copy_from(self.frame(), at, run)
    }
}

impl<F: Bytes> Held<F> {
    /// Copies from byte `at` of the frame on to a program; how many bytes.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn copy_to(&self, at: usize, run: Run<'_, F::Program>) -> usize {
        self.frames().copy_to(self.frame(), at, run)
    }

    /// Copies from a program to byte `at` of the frame on; how many bytes. The page that has it is
    /// to be [marked](Entry::mark) then.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn copy_from(&self, at: usize, run: Run<'_, F::Program>) -> usize {
        self.frames().copy_from(self.frame(), at, run)
    }
}

impl<F: Bytes> Load<F> {
    /// Puts content into the page, from byte `at` on.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn fill(&self, at: usize, bytes: &[u8]) {
        self.0.frames().copy_in(self.0.frame(), at, bytes);
    }
}

/// One page of a memory object.
#[derive(Debug)]
pub struct Entry<F: Frames> {
    page: Page<AtomicU64>,
    frames: F,
}

impl<F: Frames> Entry<F> {
    /// What is known of it at this moment.
    pub fn tags(&self) -> Tags {
        self.page.tags()
    }

    /// Whether its content is there, and may be used now.
    #[inline(always)]
    pub fn hold(&self) -> Result<Held<F>, Missing> {
        self.page.hold(self.frames)
    }

    /// Notes that the page was read by who holds its frame.
    pub fn note_use(&self, held: &Held<F>) {
        self.page.note_use(held);
    }

    /// Marks the page dirty for who lets somebody write to the frame that he holds.
    ///
    /// # Errors
    /// [`Missing::Cut`]: the page has another frame by now.
    pub fn mark(&self, held: &Held<F>) -> Result<bool, Missing> {
        self.page.mark(held)
    }

    /// A device has written to the frame: marks the page dirty, if this is its content; whether it
    /// was clean. What was written to a page that was cut counts as not written.
    #[inline]
    pub fn mark_lent(&self, lent: &Lent<F>) -> bool {
        self.page.mark_lent(lent) == Ok(true)
    }

    /// Whether the page still has the frame that is held.
    pub fn is_still(&self, held: &Held<F>) -> bool {
        self.page.is_still(held)
    }

    /// Gives a page without one a frame.
    ///
    /// # Errors
    /// It has one: `fresh` comes back.
    pub fn put(&self, fresh: Fresh<F>) -> Result<(), Fresh<F>> {
        self.page.put(fresh.0).map_err(Fresh)
    }

    /// Begins to load a page that has no frame.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn load(&self, fresh: Fresh<F>) -> Result<Load<F>, Fresh<F>> {
        self.page.load(fresh.0).map(Load).map_err(Fresh)
    }

    /// The load has brought the content. Returns whether the page still waited for it.
    pub fn end_load(&self, load: &Load<F>) -> bool {
        self.page.end_load(&load.0)
    }

    /// As [`end_load`](Self::end_load), with content that is nowhere else: the page is dirty.
    pub fn end_load_dirty(&self, load: &Load<F>) -> bool {
        self.page.end_load(&load.0) && self.page.mark(&load.0).is_ok()
    }

    /// The load brings nothing: see `Page::break_off`.
    pub fn break_off(&self, load: &Load<F>) -> bool {
        self.page.break_off(&load.0)
    }

    /// See `Page::clean`.
    pub fn clean(&self) -> bool {
        self.page.clean(self.frames)
    }

    /// See `Page::commit`.
    pub fn commit(&self) -> bool {
        self.page.commit()
    }

    /// See `Page::redo`.
    pub fn redo(&self) -> bool {
        self.page.redo()
    }

    /// See `Page::age`.
    pub fn age(&self) -> bool {
        self.page.age()
    }

    /// See `Page::remove`. The caller keeps his processor meanwhile.
    pub fn remove(&self) -> bool {
        self.page.remove(self.frames)
    }

    /// See `Page::cut`.
    pub fn cut(&self) -> bool {
        self.page.cut(self.frames)
    }
}

impl<F: Bytes> Entry<F> {
    /// Copies from byte `at` of the page on, if `is_right` says, with the frame held, that this is
    /// the page that was meant; whether it did.
    ///
    /// # Errors
    /// [`Missing::Absent`] and [`Missing::Loading`].
    ///
    /// # Panics
    /// Beyond its end.
    pub fn read(
        &self,
        at: usize,
        bytes: &mut [u8],
        is_right: impl FnOnce() -> bool,
    ) -> Result<bool, Missing> {
        self.page.read(self.frames, |frame| {
            let is_right = is_right();
            if is_right {
                self.frames.copy_out(frame, at, bytes);
            }
            is_right
        })
    }

    /// Copies to byte `at` of the page on, likewise, and marks it; whether it did, and if so
    /// whether the page was clean before.
    ///
    /// # Errors
    /// [`Missing`]. With [`Missing::Cut`] the bytes count as not written.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn write(
        &self,
        at: usize,
        bytes: &[u8],
        is_right: impl FnOnce() -> bool,
    ) -> Result<Option<bool>, Missing> {
        let copy = |frame| is_right().then(|| self.frames.copy_in(frame, at, bytes));
        let written = self.page.write(self.frames, copy)?;
        Ok(written.map(|((), was_clean)| was_clean))
    }
}

impl<F: Frames> Drop for Entry<F> {
    fn drop(&mut self) {
        self.cut();
    }
}
