//! Pages that a device may use.
//!
//! A device that reads gets frames of pages that have content, one that writes also those of pages
//! that are being loaded. It keeps them whatever becomes of page and object. A page with content to
//! which a device may write is marked dirty afterwards, as after any write, and until then the
//! object is not sealed. A load does not end while a device may write to its frame.

use super::super::payer::Payer;
use super::{Result, Vmo};
use crate::vmo::index::{Found, Near};
use core::sync::atomic::AtomicU64;
use interfaces::{DmaDirection, MemoryError, RpcError};
use pages::{Bytes, Held, Lent, Writing};

/// The most pages that are lent at once.
pub const MOST_LENT: u64 = 256;
/// The most that are handed over at once.
pub const PIECE: usize = 16;

const TOO_MANY: MemoryError = MemoryError::Rpc(RpcError::Busy);

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Whether there can be so many pages from `first` on that are lent at once.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`]: none, or more than [`MOST_LENT`]. [`MemoryError::Beyond`].
    pub fn can_lend(&self, first: u64, count: u64) -> Result<()> {
        if !(1..=MOST_LENT).contains(&count) {
            return Err(MemoryError::Invalid);
        }
        self.range(first, count).map(drop)
    }

    /// Lets a device use `count` pages from `first` on: shows them to `keep`, which takes them all,
    /// [`PIECE`] at a time and then the rest. Says whether the device may write to pages that have
    /// content: then each is to be [marked](Self::mark_lent) before it is dropped, and [`end_lent`]
    /// be called. On an error what was given is to be dropped.
    ///
    /// # Errors
    /// Those of [`can_lend`](Self::can_lend). [`MemoryError::Absent`]; [`MemoryError::Loading`], to
    /// the device; [`MemoryError::Sealed`], from it; no memory.
    ///
    /// [`end_lent`]: Self::end_lent
    pub fn lend(
        &self,
        first: u64,
        count: u64,
        direction: DmaDirection,
        mut keep: impl FnMut(&mut [Option<Lent<F>>]),
    ) -> Result<bool> {
        self.can_lend(first, count)?;
        let writing = match direction {
            DmaDirection::ToDevice => None,
            DmaDirection::FromDevice => Some(self.begin_write()?),
        };
        let (mut piece, mut all_load) = ([const { None }; PIECE], true);
        for at in 0..count {
            let (lent, loads) = self.lend_page(first + at, direction)?;
            let place = at as usize % PIECE;
            piece[place] = Some(lent);
            all_load &= loads;
            if place == PIECE - 1 || at == count - 1 {
                keep(&mut piece[..=place]);
            }
        }
        let writing = writing.filter(|_| !all_load);
        let writes = writing.is_some();
        if let Some(writing) = writing {
            writing.keep();
        }
        Ok(writes)
    }

    /// As [`lend`](Self::lend), of one page: most requests are for one.
    ///
    /// # Errors
    /// As there.
    pub(in crate::vmo) fn lend_one(
        &self,
        page: u64,
        direction: DmaDirection,
    ) -> Result<(Lent<F>, bool)> {
        let writing = match direction {
            DmaDirection::ToDevice => None,
            DmaDirection::FromDevice => Some(self.begin_write()?),
        };
        let (lent, loads) = self.lend_page(page, direction)?;
        match writing {
            Some(writing) if !loads => {
                writing.keep();
                Ok((lent, true))
            }
            _ => Ok((lent, false)),
        }
    }

    /// Begins a write of a device to pages that have content: it is [kept](Writing::keep) if some
    /// are lent, until [`end_lent`](Self::end_lent).
    #[inline]
    pub(in crate::vmo) fn begin_lent(&self) -> Option<Writing<'_, AtomicU64>> {
        self.begin_write().ok()
    }

    /// Lets a device use a page, if it is there and nobody is at it. It waits for nothing and takes
    /// no lock. Who lets the device write to it has begun a write.
    #[inline(always)]
    pub(in crate::vmo) fn lend_there<'a>(
        &'a self,
        near: &mut Near<'a, F>,
        page: u64,
    ) -> Option<Lent<F>> {
        lend(self.hold_there(near, page)?).ok()
    }

    /// The frame of a page that is there.
    #[inline(always)]
    fn hold_there<'a>(&'a self, near: &mut Near<'a, F>, page: u64) -> Option<Held<F>> {
        if page >= self.limit() {
            return None;
        }
        let Found::Here(place) = self.index.find_near(near, page) else {
            return None;
        };
        let held = place.entry.hold().ok()?;
        place.is_right().then_some(held)
    }

    /// A device does not write any more to what was lent, which is marked.
    pub(in crate::vmo) fn end_lent(&self) {
        self.seal.end_kept();
    }

    /// A page's frame, and whether the page is being loaded.
    #[inline]
    fn lend_page(&self, page: u64, direction: DmaDirection) -> Result<(Lent<F>, bool)> {
        // Nearly always it is there, and nobody is at it.
        match self.hold_there(&mut Near::nowhere(), page) {
            Some(held) => Ok((lend(held)?, false)),
            None => self.lend_other(page, direction),
        }
    }

    /// As [`lend_page`](Self::lend_page), whatever state the page is in.
    #[inline(never)]
    fn lend_other(&self, page: u64, direction: DmaDirection) -> Result<(Lent<F>, bool)> {
        loop {
            match self.usable(page) {
                Ok(Some((_, held))) => return Ok((lend(held)?, false)),
                Ok(None) => {}
                Err(MemoryError::Loading) if direction == DmaDirection::FromDevice => {
                    let lent = self.lend_load(page).ok_or(MemoryError::Loading)?;
                    return Ok((lent, true));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The frame of a page that is being loaded. With the lock, under which loads end, too.
    fn lend_load(&self, page: u64) -> Option<Lent<F>> {
        let state = self.state.lock();
        let at = state.loads.binary_search_by_key(&page, |load| load.page);
        state.loads[at.ok()?].load.lend()
    }

    /// A device has written to the page while it had this frame.
    pub(in crate::vmo) fn mark_lent(&self, page: u64, lent: &Lent<F>) {
        if self.mark_near(&mut Near::nowhere(), page, lent) {
            self.marked();
        }
    }

    /// As [`mark_lent`](Self::mark_lent), but tells nobody; whether the page was clean, which is to
    /// be told by [`marked`](Self::marked) then. It takes no lock.
    ///
    /// A page that still has the frame has had it since it was lent, and so has not left its leaf.
    #[inline(always)]
    pub(in crate::vmo) fn mark_near<'a>(
        &'a self,
        near: &mut Near<'a, F>,
        page: u64,
        lent: &Lent<F>,
    ) -> bool {
        loop {
            match self.index.find_near(near, page) {
                Found::Here(place) => return place.entry.mark_lent(lent),
                Found::Nothing => return false,
                Found::Changing => {}
            }
        }
    }

    /// Puts bytes at `offset` into pages that are being loaded, in place of a device; how many.
    ///
    /// # Errors
    /// Not one byte can be put: the page is not being loaded. [`MemoryError::Sealed`].
    pub fn fill(&self, offset: u64, bytes: &[u8]) -> Result<usize> {
        let _writing = self.begin_write()?;
        let mut left = bytes;
        super::bytes::in_pages(offset, bytes.len(), |page, at, count| {
            self.is_within(page)?;
            let (now, later) = left.split_at(count);
            left = later;
            self.lend_loading(page)?.fill(at, now);
            Ok(())
        })
    }

    /// The frame of a page that is being loaded.
    ///
    /// # Errors
    /// It is not; what it is.
    pub(super) fn lend_loading(&self, page: u64) -> Result<Lent<F>> {
        let is_present = || self.with_page(page, |entry| entry.tags().present) == Some(true);
        self.lend_load(page).ok_or_else(|| match is_present() {
            true => MemoryError::Present,
            false => MemoryError::Absent,
        })
    }
}

/// Lets a device use the frame that is held.
#[inline]
fn lend<F: Bytes>(held: Held<F>) -> Result<Lent<F>> {
    held.lend().map_err(|_| TOO_MANY)
}
