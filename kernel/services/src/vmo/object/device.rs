//! Pages that a device may use.
//!
//! A device that reads gets frames of pages that have content, one that writes also those of pages
//! that are being loaded. It keeps them whatever becomes of page and object. A page with content to
//! which a device may write is marked dirty afterwards, as after any write, and until then the
//! object is not sealed. A load does not end while a device may write to its frame.

use super::super::payer::Payer;
use super::{NO_MEMORY, Result, Vmo};
use crate::vmo::index::Found;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use interfaces::{DmaDirection, MemoryError, RpcError};
use pages::{Bytes, Held, Lent};

/// The most pages of one loan.
pub const MOST_LENT: u64 = 256;

const TOO_MANY: MemoryError = MemoryError::Rpc(RpcError::Busy);

/// Pages in a row that a device may use as long as this exists.
pub struct Loan<F: Bytes, P: Payer> {
    object: Weak<Vmo<F, P>>,
    first: u64,
    pages: Vec<Lent<F>>,
    /// The device may write to pages that have content.
    writes: bool,
}

impl<F: Bytes, P: Payer> Loan<F, P> {
    /// The numbers of their frames.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = u64> {
        self.pages.iter().map(Lent::frame)
    }
}

impl<F: Bytes, P: Payer> Drop for Loan<F, P> {
    fn drop(&mut self) {
        // The object may be gone, and its pages with it.
        let object = match self.writes {
            true => self.object.upgrade(),
            false => None,
        };
        if let Some(object) = object {
            for (page, lent) in (self.first..).zip(&self.pages) {
                object.mark_lent(page, lent);
            }
            object.seal.end_kept();
        }
    }
}

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Lets a device use `count` pages from `first` on.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`]: none, or more than [`MOST_LENT`]. [`MemoryError::Beyond`];
    /// [`MemoryError::Absent`]; [`MemoryError::Loading`], to the device; [`MemoryError::Sealed`],
    /// from it; no memory.
    pub fn lend(
        self: &Arc<Self>,
        first: u64,
        count: u64,
        direction: DmaDirection,
    ) -> Result<Loan<F, P>> {
        if !(1..=MOST_LENT).contains(&count) {
            return Err(MemoryError::Invalid);
        }
        let range = self.range(first, count)?;
        let writing = match direction {
            DmaDirection::ToDevice => None,
            DmaDirection::FromDevice => Some(self.begin_write()?),
        };
        let mut loan = Loan {
            object: Arc::downgrade(self),
            first,
            pages: Vec::new(),
            writes: false,
        };
        let room = loan.pages.try_reserve_exact(count as usize);
        room.map_err(|_| NO_MEMORY)?;
        let mut all_load = true;
        for page in range {
            let (lent, loads) = self.lend_page(page, direction)?;
            loan.pages.push(lent);
            all_load &= loads;
        }
        if let Some(writing) = writing.filter(|_| !all_load) {
            writing.keep();
            loan.writes = true;
        }
        Ok(loan)
    }

    /// A page's frame, and whether the page is being loaded.
    fn lend_page(&self, page: u64, direction: DmaDirection) -> Result<(Lent<F>, bool)> {
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
    fn mark_lent(&self, page: u64, lent: &Lent<F>) {
        loop {
            match self.index.find(page) {
                Found::Here(place) => {
                    if place.entry.mark_lent(lent) {
                        self.marked();
                    }
                    return;
                }
                Found::Nothing => return,
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
            match self.lend_load(page) {
                Some(lent) => lent.fill(at, now),
                None if self.with_page(page, |entry| entry.tags().present) == Some(true) => {
                    return Err(MemoryError::Present);
                }
                None => return Err(MemoryError::Absent),
            }
            Ok(())
        })
    }
}

/// Lets a device use the frame that is held.
fn lend<F: Bytes>(held: Held<F>) -> Result<Lent<F>> {
    held.lend().map_err(|_| TOO_MANY)
}
