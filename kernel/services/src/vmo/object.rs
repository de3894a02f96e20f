//! A memory object: pages, who pays for them, and what is under way with them.

mod bytes;
mod change;
mod device;
mod loads;
mod mappings;
mod programs;
mod told;
mod writeback;

use super::index::{Books, Found, Index, Place};
use super::payer::{Charged, Payer};
use crate::event::Raiser;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use interfaces::{MemoryError, PageKind, PageTags, RpcError, VmoFill, VmoInfo};
use isolation::lock::Lock;
use isolation::platform::PAGE;
use loads::Loading;
use mappings::Mapping;
use pages::{Alarm, Bytes, Entry, Pool, Seal, Tags, Writing};

pub use super::index::MOST_PAGES;
pub use device::{MOST_LENT, PIECE};
pub use mappings::Mapped;
pub use programs::MOST_BYTES;

/// The most that is done for a range in one call, in pages.
pub const AT_ONCE: u64 = 512;
/// Loads that can be under way in one object, and mappings that it can have: of each so many.
const MOST_UNDER_WAY: usize = 4096;

type Result<T> = core::result::Result<T, MemoryError>;

const NO_MEMORY: MemoryError = MemoryError::Rpc(RpcError::NoMemory);

/// A memory object.
pub struct Vmo<F: Bytes, P: Payer> {
    fill: VmoFill,
    /// It has no page from this one on. Changes under the lock.
    limit: AtomicU64,
    seal: Seal<AtomicU64>,
    alarm: Alarm<AtomicU64>,
    /// How often loads have ended; who waits for one waits for this word.
    ended: AtomicU32,
    /// How many do.
    waiting: AtomicU32,
    pool: Pool<F>,
    index: Index<F>,
    state: Lock<State<F, P>>,
}

/// Changes one at a time.
struct State<F: Bytes, P: Payer> {
    payer: P,
    charge: P::Charge,
    /// Pages that have memory.
    pages: u64,
    books: Books,
    /// In the order of their pages.
    loads: Vec<Loading<F, P>>,
    /// In the order of their numbers.
    mappings: Vec<Mapping>,
    /// Somebody sets the limit.
    limiting: bool,
    /// Raised when pages become dirty.
    raiser: Option<Arc<Raiser>>,
}

impl<F: Bytes, P> State<F, P>
where
    P: Payer,
{
    /// Charges for what is there whatever limits say: by `charge`, or, if somebody else pays by
    /// now, to him. What is left over is to be dropped without the lock.
    fn add_charge(&mut self, charge: P::Charge) -> Option<P::Charge> {
        let left = self.charge.absorb(charge).err()?;
        let anyway = self.payer.charge_anyway(left.bytes());
        let absorbed = self.charge.absorb(anyway);
        debug_assert!(absorbed.is_ok(), "it is charged to who pays");
        Some(left)
    }

    /// Forgets loads of those pages of the range that are `gone`.
    fn forget(&mut self, range: Range<u64>, gone: impl Fn(u64) -> bool) {
        let first = self.loads.partition_point(|load| load.page < range.start);
        let behind = self.loads.partition_point(|load| load.page < range.end);
        self.loads
            .extract_if(first..behind, |load| gone(load.page))
            .for_each(drop);
    }
}

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// An object of at most `limit` pages from `pool`, for which `payer` pays.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`]: more than [`MOST_PAGES`]. No memory.
    pub fn new(pool: Pool<F>, payer: P, limit: u64, fill: VmoFill) -> Result<Self> {
        if limit > MOST_PAGES {
            return Err(MemoryError::Beyond);
        }
        let charge = payer
            .charge(core::mem::size_of::<Self>())
            .ok_or(NO_MEMORY)?;
        Ok(Vmo {
            fill,
            limit: AtomicU64::new(limit),
            seal: Seal::open(),
            alarm: Alarm::quiet(),
            ended: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            pool,
            index: Index::new(),
            state: Lock::new(State {
                payer,
                charge,
                pages: 0,
                books: Books::default(),
                loads: Vec::new(),
                mappings: Vec::new(),
                limiting: false,
                raiser: None,
            }),
        })
    }

    /// What is known of it.
    pub fn info(&self) -> VmoInfo {
        let state = self.state.lock();
        VmoInfo {
            limit: self.limit(),
            pages: state.pages,
            bytes: state.charge.bytes() as u64,
            sealed: self.seal.is_closed(),
            fill: self.fill,
        }
    }

    /// Pages that it may have now.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Acquire)
    }

    /// Begins to change it.
    fn begin_write(&self) -> Result<Writing<'_, AtomicU64>> {
        self.seal.begin_write().map_err(|_| MemoryError::Sealed)
    }

    fn is_within(&self, page: u64) -> Result<()> {
        match page < self.limit() {
            true => Ok(()),
            false => Err(MemoryError::Beyond),
        }
    }

    /// Lets nobody change it any more: no page comes, goes or changes. Loads under way bring
    /// nothing.
    ///
    /// # Errors
    /// `Rpc(Busy)`: a write is under way.
    pub fn seal(&self) -> Result<()> {
        if !self.seal.close() {
            return Err(MemoryError::Rpc(RpcError::Busy));
        }
        // Nobody can write but where there are pages.
        let mut from = 0;
        while let Some(pages) = self.leaf_from(from) {
            from = pages.end;
            self.protect(pages);
        }
        Ok(())
    }

    /// The pages of the first leaf from page `from` on.
    fn leaf_from(&self, from: u64) -> Option<Range<u64>> {
        let _state = self.state.lock();
        let start = self.index.next_leaf(from)?;
        let pages = self.index.leaf(start)?.len() as u64;
        let base = start / pages * pages;
        Some(base..base + pages)
    }

    /// What is known of a page, which counts as not used from then on.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn tags(&self, page: u64) -> Result<PageTags> {
        self.is_within(page)?;
        self.break_off_dead(page);
        let found = self.with_page(page, |entry| {
            let tags = entry.tags();
            entry.age();
            PageTags {
                present: tags.present,
                dirty: tags.dirty,
                writeback: tags.writeback,
                accessed: tags.accessed,
                loading: tags.loading,
            }
        });
        Ok(found.unwrap_or(PageTags {
            present: false,
            dirty: false,
            writeback: false,
            accessed: false,
            loading: false,
        }))
    }

    /// What `look` makes of the page's entry, with the lock; `None`: it has none.
    fn with_page<R>(&self, page: u64, look: impl FnOnce(&Entry<F>) -> R) -> Option<R> {
        let _state = self.state.lock();
        match self.index.find(page) {
            Found::Here(Place { entry, .. }) => Some(look(entry)),
            _ => None,
        }
    }

    /// The first page from `from` on of this kind.
    pub fn next(&self, from: u64, kind: PageKind) -> Option<u64> {
        match kind {
            PageKind::Present => self.find_page(from, |tags| tags.present),
            PageKind::Dirty => {
                self.alarm.look();
                self.find_page(from, |tags| tags.dirty || tags.writeback)
            }
        }
    }

    /// The first page from `from` on that `is_meant`.
    fn find_page(&self, mut from: u64, is_meant: impl Fn(Tags) -> bool) -> Option<u64> {
        loop {
            // One leaf at a time.
            let state = self.state.lock();
            let start = self.index.next_leaf(from)?;
            let leaf = self.index.leaf(start)?;
            let first = (start % leaf.len() as u64) as usize;
            let found = leaf[first..]
                .iter()
                .position(|entry| is_meant(entry.tags()));
            let pages = leaf.len() as u64;
            drop(state);
            match found {
                Some(at) => return Some(start + at as u64),
                None => from = (start / pages + 1) * pages,
            }
        }
    }

    /// The first pages of what is meant, as many as are done in one call.
    fn range(&self, first: u64, count: u64) -> Result<Range<u64>> {
        let end = first.checked_add(count).ok_or(MemoryError::Beyond)?;
        if end > self.limit() {
            return Err(MemoryError::Beyond);
        }
        Ok(first..end.min(first + AT_ONCE))
    }

    /// Makes room for `more` in a list.
    fn room_for<T>(
        &self,
        more: usize,
        list: impl Fn(&mut State<F, P>) -> &mut Vec<T>,
    ) -> Result<()> {
        loop {
            let mut state = self.state.lock();
            let payer = state.payer.clone();
            let (length, room) = (list(&mut state).len(), list(&mut state).capacity());
            drop(state);
            let wanted = length + more;
            if wanted > MOST_UNDER_WAY {
                return Err(MemoryError::Rpc(RpcError::Busy));
            }
            let longer = (2 * room).max(wanted).max(8);
            if wanted <= room || self.lengthen(&payer, longer, &list)? {
                return Ok(());
            }
        }
    }

    /// Gives a list room for `room` items, which `payer` pays for; whether it had less before.
    fn lengthen<T>(
        &self,
        payer: &P,
        room: usize,
        list: impl Fn(&mut State<F, P>) -> &mut Vec<T>,
    ) -> Result<bool> {
        let bytes = |room: usize| room * size_of::<T>();
        let charge = payer.charge(bytes(room)).ok_or(NO_MEMORY)?;
        let pages = bytes(room).div_ceil(PAGE);
        payer.claim(pages, &mut || Some(())).ok_or(NO_MEMORY)?;
        let mut longer = Vec::new();
        longer.try_reserve_exact(room).map_err(|_| NO_MEMORY)?;
        let mut state = self.state.lock();
        let items = list(&mut state);
        if items.capacity() >= longer.capacity() {
            drop(state);
            return Ok(false);
        }
        longer.append(items);
        let before = core::mem::replace(items, longer);
        let left = state.add_charge(charge);
        let back = state.charge.split(bytes(before.capacity()));
        drop(state);
        drop((before, left, back));
        Ok(true)
    }

    /// Takes the leaf that `page` is in out of the tree, if it has no page any more. With the lock.
    fn tidy(&self, books: &mut Books, page: u64) {
        let leaf = self.index.leaf(page);
        if leaf.is_some_and(|leaf| leaf.iter().all(|entry| !entry.tags().present)) {
            self.index.drop_leaf(books, page);
        }
    }

    /// Charges all of it to `payer` from now on.
    ///
    /// # Errors
    /// His limit refuses; nothing has changed.
    pub fn adopt(&self, payer: &P) -> Result<()> {
        let mut bytes = {
            let mut state = self.state.lock();
            if state.charge.pass_to(payer) {
                state.payer = payer.clone();
                return Ok(());
            }
            state.charge.bytes()
        };
        loop {
            let charge = payer.charge(bytes).ok_or(NO_MEMORY)?;
            let mut state = self.state.lock();
            if state.charge.bytes() == bytes {
                state.payer = payer.clone();
                let before = core::mem::replace(&mut state.charge, charge);
                drop(state);
                drop(before);
                return Ok(());
            }
            bytes = state.charge.bytes();
        }
    }
}
