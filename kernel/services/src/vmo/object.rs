//! A memory object: pages, who pays for them, and what is under way with them.

use super::index::{Books, Found, Index, Place, Wanted};
use super::payer::{Charged, Payer};
use alloc::sync::Weak;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::{MemoryError, PageKind, PageTags, RpcError, VmoFill, VmoInfo};
use isolation::lock::Lock;
use isolation::platform::PAGE;
use pages::{Bytes, Cleaned, Entry, Fresh, Held, Load, Missing, Pool, Seal, Writing};

pub use super::index::MOST_PAGES;

/// The most that is done for a range in one call, in pages.
pub const AT_ONCE: u64 = 512;
/// Loads and write-backs that can be under way in one object, and mappings that it can have: of
/// each so many.
const MOST_UNDER_WAY: usize = 4096;

type Result<T> = core::result::Result<T, MemoryError>;

const NO_MEMORY: MemoryError = MemoryError::Rpc(RpcError::NoMemory);

/// A memory object.
pub struct Vmo<F: Bytes, P: Payer> {
    fill: VmoFill,
    /// It has no page from this one on. Changes under the lock.
    limit: AtomicU64,
    seal: Seal<AtomicU64>,
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
    /// In the order of their pages.
    cleaned: Vec<(u64, Cleaned<F>)>,
    /// In the order of their numbers.
    mappings: Vec<Mapping>,
    /// Somebody sets the limit.
    limiting: bool,
}

/// Where pages of an object may be mapped.
struct Mapping {
    number: u64,
    space: Weak<dyn Mapped>,
    /// Where the first of them is there, as the number of a page.
    at: u64,
    pages: Range<u64>,
}

/// An address space in which pages of objects are mapped. It is called without a lock of an object,
/// and meant are pages by their numbers in the space: also where others have been mapped since, who
/// then meet a fault that they need not have met.
pub trait Mapped: Send + Sync {
    /// Unmaps those of these pages that are an object's; none of them is reached by its translation
    /// afterwards.
    fn unmap(&self, pages: Range<u64>);
    /// Lets nobody write to those of these pages that are an object's; nobody does afterwards.
    fn protect(&self, pages: Range<u64>);
}

struct Loading<F: Bytes, P> {
    page: u64,
    load: Load<F>,
    loader: P,
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

    /// Forgets what is under way with those pages of the range that are `gone`.
    fn forget(&mut self, range: Range<u64>, gone: impl Fn(u64) -> bool) {
        let first = self.loads.partition_point(|load| load.page < range.start);
        let behind = self.loads.partition_point(|load| load.page < range.end);
        self.loads
            .extract_if(first..behind, |load| gone(load.page))
            .for_each(drop);
        let first = self
            .cleaned
            .partition_point(|(page, _)| *page < range.start);
        let behind = self.cleaned.partition_point(|(page, _)| *page < range.end);
        self.cleaned
            .extract_if(first..behind, |(page, _)| gone(*page))
            .for_each(drop);
    }
}

/// The number of the next mapping of any object.
static NEXT_MAPPING: AtomicU64 = AtomicU64::new(1);

/// What becomes of a page that is to be added.
enum Added<F: Bytes> {
    /// It has memory now.
    Done,
    /// Somebody else added one, or it is being loaded.
    There(Fresh<F>),
    /// Nodes are wanted first.
    First(Fresh<F>, Wanted),
    /// Somebody else pays since.
    OtherPayer(Fresh<F>),
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
            pool,
            index: Index::new(),
            state: Lock::new(State {
                payer,
                charge,
                pages: 0,
                books: Books::default(),
                loads: Vec::new(),
                cleaned: Vec::new(),
                mappings: Vec::new(),
                limiting: false,
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

    /// Reads from byte `offset`; how many bytes, fewer than asked for at the limit, or before a
    /// page that cannot be read now.
    ///
    /// # Errors
    /// Not one byte can be read; why.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let mut left = bytes;
        in_pages(offset, left.len(), |page, at, count| {
            let (now, later) = core::mem::take(&mut left).split_at_mut(count);
            left = later;
            self.read_page(page, at, now)
        })
    }

    fn read_page(&self, page: u64, at: usize, bytes: &mut [u8]) -> Result<()> {
        loop {
            self.is_within(page)?;
            match self.index.find(page) {
                Found::Here(place) => match place.entry.read(at, bytes, || place.is_right()) {
                    Ok(true) => return Ok(()),
                    Ok(false) => continue,
                    Err(_) if !place.is_right() => continue,
                    Err(Missing::Absent | Missing::Cut) => {}
                    Err(Missing::Loading) => match self.break_off_dead(page) {
                        true => continue,
                        false => return Err(MemoryError::Loading),
                    },
                },
                Found::Nothing => {}
                Found::Changing => continue,
            }
            match self.fill {
                VmoFill::Zero => bytes.fill(0),
                VmoFill::Load => return Err(MemoryError::Absent),
            }
            return Ok(());
        }
    }

    /// Writes at byte `offset`; how many bytes, as in [`read`](Self::read).
    ///
    /// # Errors
    /// Not one byte can be written; why.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<usize> {
        let _writing = self.begin_write()?;
        let mut left = bytes;
        in_pages(offset, bytes.len(), |page, at, count| {
            // Who seals does not wait for a long write.
            if self.seal.is_closed() {
                return Err(MemoryError::Sealed);
            }
            let (now, later) = left.split_at(count);
            left = later;
            self.write_page(page, at, now)
        })
    }

    /// Begins to change it.
    fn begin_write(&self) -> Result<Writing<'_, AtomicU64>> {
        self.seal.begin_write().map_err(|_| MemoryError::Sealed)
    }

    fn write_page(&self, page: u64, at: usize, bytes: &[u8]) -> Result<()> {
        loop {
            self.is_within(page)?;
            match self.index.find(page) {
                Found::Here(place) => match place.entry.write(at, bytes, || place.is_right()) {
                    Ok(Some(_)) => return Ok(()),
                    Ok(None) | Err(Missing::Cut) => continue,
                    Err(_) if !place.is_right() => continue,
                    Err(Missing::Absent) => {}
                    Err(Missing::Loading) => match self.break_off_dead(page) {
                        true => continue,
                        false => return Err(MemoryError::Loading),
                    },
                },
                Found::Nothing => {}
                Found::Changing => continue,
            }
            self.bring(page)?;
        }
    }

    fn is_within(&self, page: u64) -> Result<()> {
        match page < self.limit() {
            true => Ok(()),
            false => Err(MemoryError::Beyond),
        }
    }

    /// Gives a page memory that has none: `put` does, with the lock. Returns whether it did;
    /// otherwise there is some, or the page is being loaded.
    fn add(
        &self,
        page: u64,
        put: impl Fn(&Entry<F>, Fresh<F>, &mut State<F, P>) -> core::result::Result<(), Fresh<F>>,
    ) -> Result<bool> {
        let mut payer = self.state.lock().payer.clone();
        let (mut charge, mut fresh) = self.memory_of(&payer)?;
        loop {
            match self.add_once(page, &mut charge, fresh, &put)? {
                Added::Done => return Ok(true),
                Added::There(_) => return Ok(false),
                Added::First(kept, wanted) => {
                    self.prepare(&payer, wanted)?;
                    fresh = kept;
                }
                Added::OtherPayer(kept) => {
                    payer = self.state.lock().payer.clone();
                    charge = Some(payer.charge(PAGE).ok_or(NO_MEMORY)?);
                    fresh = kept;
                }
            }
        }
    }

    /// A page of memory that `payer` pays for.
    fn memory_of(&self, payer: &P) -> Result<(Option<P::Charge>, Fresh<F>)> {
        let charge = payer.charge(PAGE).ok_or(NO_MEMORY)?;
        let fresh = payer.claim(1, &mut || self.pool.claim());
        Ok((Some(charge), fresh.ok_or(NO_MEMORY)?))
    }

    /// One attempt at [`add`](Self::add). What is left over is dropped without the lock.
    fn add_once(
        &self,
        page: u64,
        charge: &mut Option<P::Charge>,
        fresh: Fresh<F>,
        put: impl Fn(&Entry<F>, Fresh<F>, &mut State<F, P>) -> core::result::Result<(), Fresh<F>>,
    ) -> Result<Added<F>> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if page >= self.limit() {
            drop(guard);
            return Err(MemoryError::Beyond);
        }
        let Ok(entry) = self.index.make(&mut state.books, page) else {
            let wanted = self.index.wanted(&state.books, page);
            return Ok(Added::First(fresh, wanted));
        };
        if entry.tags().present {
            return Ok(Added::There(fresh));
        }
        if let Some(Err(other)) = charge.take().map(|charge| state.charge.absorb(charge)) {
            *charge = Some(other);
            self.tidy(&mut state.books, page);
            return Ok(Added::OtherPayer(fresh));
        }
        match put(entry, fresh, state) {
            Ok(()) => {
                state.pages += 1;
                Ok(Added::Done)
            }
            Err(fresh) => {
                *charge = Some(state.charge.split(PAGE));
                self.tidy(&mut state.books, page);
                Ok(Added::There(fresh))
            }
        }
    }

    /// Prepares nodes, which `payer` pays for.
    fn prepare(&self, payer: &P, wanted: Wanted) -> Result<()> {
        let cost = Index::<F>::cost(wanted);
        let mut charge = payer.charge(cost).ok_or(NO_MEMORY)?;
        // The heap may have room where the machine has none for him.
        let pages = cost.div_ceil(PAGE);
        payer.claim(pages, &mut || Some(())).ok_or(NO_MEMORY)?;
        let (bytes, is_whole) = self.index.prepare(wanted, self.pool);
        let used = charge.split(bytes);
        let mut state = self.state.lock();
        if is_whole {
            Index::<F>::is_prepared(&mut state.books, wanted);
        }
        let left = state.add_charge(used);
        drop(state);
        drop((left, charge));
        match is_whole {
            true => Ok(()),
            false => Err(NO_MEMORY),
        }
    }

    /// Sets the number of pages, and cuts off those from there on.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`], [`MemoryError::Sealed`]. `Rpc(Busy)`: somebody else is at it.
    pub fn set_limit(&self, limit: u64) -> Result<()> {
        if limit > MOST_PAGES {
            return Err(MemoryError::Beyond);
        }
        let _writing = self.begin_write()?;
        {
            let mut state = self.state.lock();
            // Who cuts for a lower limit would take away what came after a higher one.
            if core::mem::replace(&mut state.limiting, true) {
                return Err(MemoryError::Rpc(RpcError::Busy));
            }
            self.limit.store(limit, Ordering::Release);
        }
        let mut from = limit;
        while let Some(next) = self.each_leaf(from, u64::MAX, |entry| entry.cut()) {
            from = next;
        }
        self.state.lock().limiting = false;
        Ok(())
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
    pub fn next(&self, mut from: u64, kind: PageKind) -> Option<u64> {
        loop {
            // One leaf at a time.
            let state = self.state.lock();
            let start = self.index.next_leaf(from)?;
            let leaf = self.index.leaf(start)?;
            let first = (start % leaf.len() as u64) as usize;
            let found = leaf.iter().skip(first).position(|entry| {
                let tags = entry.tags();
                match kind {
                    PageKind::Present => tags.present,
                    PageKind::Dirty => tags.dirty || tags.writeback,
                }
            });
            let pages = leaf.len() as u64;
            drop(state);
            match found {
                Some(at) => return Some(start + at as u64),
                None => from = (start / pages + 1) * pages,
            }
        }
    }

    /// Takes pages away from the first leaf from `from` on, and before `end`, by `take`, which says
    /// whether the page has lost its memory. Returns where to go on.
    fn each_leaf(&self, from: u64, end: u64, take: impl Fn(&Entry<F>) -> bool) -> Option<u64> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let start = self.index.next_leaf(from).filter(|start| *start < end)?;
        let leaf = self.index.leaf(start)?;
        let pages = leaf.len() as u64;
        let base = start / pages * pages;
        let behind = (base + pages).min(end);
        let mut taken = 0;
        for page in start..behind {
            if take(&leaf[(page - base) as usize]) {
                taken += 1;
            }
        }
        state.forget(start..behind, |page| {
            !leaf[(page - base) as usize].tags().present
        });
        state.pages -= taken;
        let charge = state.charge.split(taken as usize * PAGE);
        self.tidy(&mut state.books, start);
        drop(guard);
        drop(charge);
        self.unmap(start..behind);
        Some(behind)
    }

    /// Does `change` to each mapping that has some of these pages: with its space, and where it has
    /// them.
    fn each_mapping(&self, pages: Range<u64>, change: impl Fn(&dyn Mapped, Range<u64>)) {
        let mut last = 0;
        loop {
            let state = self.state.lock();
            let from = state.mappings.partition_point(|it| it.number <= last);
            let meets = |it: &&Mapping| it.pages.start < pages.end && pages.start < it.pages.end;
            let Some(found) = state.mappings[from..].iter().find(meets) else {
                return;
            };
            last = found.number;
            let there = |page: u64| {
                found.at + (page.clamp(found.pages.start, found.pages.end) - found.pages.start)
            };
            let there = there(pages.start)..there(pages.end);
            let space = found.space.clone();
            drop(state);
            if let Some(space) = space.upgrade() {
                change(&*space, there);
            }
        }
    }

    fn unmap(&self, pages: Range<u64>) {
        self.each_mapping(pages, |space, there| space.unmap(there));
    }

    fn protect(&self, pages: Range<u64>) {
        self.each_mapping(pages, |space, there| space.protect(there));
    }

    /// Notes that `pages` of it may be mapped in `space` from now on, from page `at` of that on;
    /// the mapping's number, which no other has.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`]; no memory, or too many.
    pub fn add_mapping(&self, space: Weak<dyn Mapped>, at: u64, pages: Range<u64>) -> Result<u64> {
        if pages.end > self.limit() {
            return Err(MemoryError::Beyond);
        }
        self.room_for(|state| &mut state.mappings)?;
        let mut state = self.state.lock();
        if state.mappings.len() == state.mappings.capacity() {
            return Err(MemoryError::Rpc(RpcError::Busy));
        }
        let number = NEXT_MAPPING.fetch_add(1, Ordering::Relaxed);
        state.mappings.push(Mapping {
            number,
            space,
            at,
            pages,
        });
        Ok(number)
    }

    /// Forgets a mapping, of which no page is mapped any more.
    pub fn remove_mapping(&self, number: u64) {
        let mut state = self.state.lock();
        let at = state.mappings.binary_search_by_key(&number, |it| it.number);
        let removed = at.ok().map(|at| state.mappings.remove(at));
        drop(state);
        drop(removed);
    }

    /// Has `enter` map a page, with its frame held, for reading or for writing. It is given a
    /// function that says, with the page's table locked, whether it still may: whether the page
    /// has this frame, and, for writing, is marked dirty. `enter` says whether it has mapped the
    /// page; if not, all begins anew.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) and [`write`](Self::write), and what `enter` says.
    pub fn map_page<E: From<MemoryError>>(
        &self,
        page: u64,
        write: bool,
        enter: impl Fn(&Held<F>, &dyn Fn() -> bool) -> core::result::Result<bool, E>,
    ) -> core::result::Result<(), E> {
        let _writing = match write {
            true => Some(self.begin_write()?),
            false => None,
        };
        loop {
            let Some((place, held)) = self.usable(page)? else {
                continue;
            };
            let may = || match place.is_right() {
                true if write => place.entry.mark(&held).is_ok(),
                is_right => is_right && place.entry.is_still(&held),
            };
            if enter(&held, &may)? {
                return Ok(());
            }
        }
    }

    /// A page that can be used now, with its frame held; `None`: one has to look again.
    fn usable(&self, page: u64) -> Result<Option<(Place<'_, F>, Held<F>)>> {
        self.is_within(page)?;
        let place = match self.index.find(page) {
            Found::Here(place) => place,
            Found::Changing => return Ok(None),
            Found::Nothing => return self.bring(page).map(|()| None),
        };
        match place.entry.hold() {
            Ok(held) => Ok(Some((place, held))),
            Err(_) if !place.is_right() => Ok(None),
            Err(Missing::Absent | Missing::Cut) => self.bring(page).map(|()| None),
            Err(Missing::Loading) => match self.break_off_dead(page) {
                true => Ok(None),
                false => Err(MemoryError::Loading),
            },
        }
    }

    /// Gives an absent page of an object of zeros memory.
    fn bring(&self, page: u64) -> Result<()> {
        match self.fill {
            VmoFill::Zero => self.add(page, |entry, fresh, _| entry.put(fresh)).map(drop),
            VmoFill::Load => Err(MemoryError::Absent),
        }
    }

    /// Takes the memory of pages away, whatever they hold; how many pages of the range are done.
    ///
    /// # Errors
    /// [`MemoryError::Sealed`], [`MemoryError::Beyond`].
    pub fn cut(&self, first: u64, count: u64) -> Result<u64> {
        let _writing = self.begin_write()?;
        let range = self.range(first, count)?;
        let mut from = range.start;
        while let Some(next) = self.each_leaf(from, range.end, |entry| entry.cut()) {
            from = next;
        }
        Ok(range.end - range.start)
    }

    /// Takes the memory of clean pages away that nobody uses; how many.
    ///
    /// # Errors
    /// [`MemoryError::Sealed`]: what came again could be something else. [`MemoryError::Beyond`].
    pub fn evict(&self, first: u64, count: u64) -> Result<u64> {
        let _writing = self.begin_write()?;
        let range = self.range(first, count)?;
        let evicted = core::cell::Cell::new(0);
        let take = |entry: &Entry<F>| {
            let removed = entry.remove();
            evicted.set(evicted.get() + u64::from(removed));
            removed
        };
        // A page that is mapped is in use.
        self.unmap(range.clone());
        let mut from = range.start;
        while let Some(next) = self.each_leaf(from, range.end, take) {
            from = next;
        }
        Ok(evicted.get())
    }

    /// The first pages of what is meant, as many as are done in one call.
    fn range(&self, first: u64, count: u64) -> Result<Range<u64>> {
        let end = first.checked_add(count).ok_or(MemoryError::Beyond)?;
        if end > self.limit() {
            return Err(MemoryError::Beyond);
        }
        Ok(first..end.min(first + AT_ONCE))
    }

    /// Begins to load pages on behalf of `loader`; how many from `first` on, until the first that
    /// is there.
    ///
    /// # Errors
    /// Not one; why. [`MemoryError::Invalid`] of an object of zeros.
    pub fn load(&self, loader: &P, first: u64, count: u64) -> Result<u64> {
        if self.fill == VmoFill::Zero {
            return Err(MemoryError::Invalid);
        }
        let _writing = self.begin_write()?;
        let range = self.range(first, count)?;
        let mut done = 0;
        for page in range {
            match self.load_one(loader, page) {
                Ok(()) => done += 1,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn load_one(&self, loader: &P, page: u64) -> Result<()> {
        self.break_off_dead(page);
        loop {
            self.room_for(|state| &mut state.loads)?;
            let added = self.add(page, |entry, fresh, state| {
                // The room that was made may have gone to another.
                if state.loads.len() == state.loads.capacity() {
                    return Err(fresh);
                }
                let at = state.loads.partition_point(|other| other.page < page);
                let load = entry.load(fresh)?;
                let loader = loader.clone();
                state.loads.insert(at, Loading { page, load, loader });
                Ok(())
            })?;
            if added {
                return Ok(());
            }
            if self.with_page(page, |entry| entry.tags().present) == Some(true) {
                return Err(MemoryError::Present);
            }
        }
    }

    /// Makes room for one more in a list.
    fn room_for<T>(&self, list: impl Fn(&mut State<F, P>) -> &mut Vec<T>) -> Result<()> {
        loop {
            let mut state = self.state.lock();
            let payer = state.payer.clone();
            let (length, room) = (list(&mut state).len(), list(&mut state).capacity());
            drop(state);
            if length >= MOST_UNDER_WAY {
                return Err(MemoryError::Rpc(RpcError::Busy));
            }
            if length < room || self.lengthen(&payer, (2 * room).max(8), &list)? {
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

    /// The content of pages that are being loaded, from `first` on; how many were still waited for.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`]: no whole number of pages, or more than [`AT_ONCE`].
    /// [`MemoryError::Beyond`], [`MemoryError::Sealed`].
    pub fn end_load(&self, first: u64, content: &[u8]) -> Result<u64> {
        let count = (content.len() / PAGE) as u64;
        if !content.len().is_multiple_of(PAGE) || count > AT_ONCE {
            return Err(MemoryError::Invalid);
        }
        let _writing = self.begin_write()?;
        let range = self.range(first, count)?;
        let mut ended = 0;
        for (page, bytes) in range.zip(content.chunks_exact(PAGE)) {
            let Some(load) = self.take_load(page, |_| true) else {
                continue;
            };
            load.load.fill(0, bytes);
            let waited = self.with_page(page, |entry| entry.end_load(&load.load));
            ended += u64::from(waited == Some(true));
        }
        Ok(ended)
    }

    /// Takes the load of `page` out of the list, if there is one that is `meant`.
    fn take_load(
        &self,
        page: u64,
        meant: impl FnOnce(&Loading<F, P>) -> bool,
    ) -> Option<Loading<F, P>> {
        let mut state = self.state.lock();
        let at = state
            .loads
            .binary_search_by_key(&page, |load| load.page)
            .ok()?;
        meant(&state.loads[at]).then(|| state.loads.remove(at))
    }

    /// The content of these pages does not come; how many were still waited for.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn break_off(&self, first: u64, count: u64) -> Result<u64> {
        let range = self.range(first, count)?;
        Ok(range
            .filter(|&page| self.break_off_one(page, |_| true))
            .count() as u64)
    }

    /// Breaks the load of a page off whose loader is dead; whether it did.
    fn break_off_dead(&self, page: u64) -> bool {
        self.break_off_one(page, |load| !load.loader.is_alive())
    }

    fn break_off_one(&self, page: u64, meant: impl FnOnce(&Loading<F, P>) -> bool) -> bool {
        let Some(load) = self.take_load(page, meant) else {
            return false;
        };
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Found::Here(Place { entry, .. }) = self.index.find(page) else {
            return false;
        };
        if !entry.break_off(&load.load) {
            return false;
        }
        self.tidy(&mut state.books, page);
        state.pages -= 1;
        let charge = state.charge.split(PAGE);
        drop(guard);
        drop(charge);
        true
    }

    /// Takes the leaf that `page` is in out of the tree, if it has no page any more. With the lock.
    fn tidy(&self, books: &mut Books, page: u64) {
        let leaf = self.index.leaf(page);
        if leaf.is_some_and(|leaf| leaf.iter().all(|entry| !entry.tags().present)) {
            self.index.drop_leaf(books, page);
        }
    }

    /// Begins to write back dirty pages of the range: the first ones in a row; `None`: there is
    /// none that is not being written back already.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`]; no memory, or too many are under way.
    pub fn clean(&self, first: u64, count: u64) -> Result<Option<(u64, u64)>> {
        let end = first.checked_add(count).filter(|end| *end <= self.limit());
        let end = end.ok_or(MemoryError::Beyond)?;
        let mut page = first;
        while let Some(dirty) = self.next(page, PageKind::Dirty).filter(|page| *page < end) {
            let done = self.clean_from(dirty, end.min(dirty + AT_ONCE))?;
            if done > 0 {
                self.protect(dirty..dirty + done);
                return Ok(Some((dirty, done)));
            }
            page = dirty + 1;
        }
        Ok(None)
    }

    /// Begins to write back the dirty pages from `first` on that follow each other; how many.
    fn clean_from(&self, first: u64, end: u64) -> Result<u64> {
        for page in first..end {
            match self.clean_one(page) {
                Ok(true) => {}
                Err(error) if page == first => return Err(error),
                Ok(false) | Err(_) => return Ok(page - first),
            }
        }
        Ok(end - first)
    }

    fn clean_one(&self, page: u64) -> Result<bool> {
        self.room_for(|state| &mut state.cleaned)?;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Found::Here(Place { entry, .. }) = self.index.find(page) else {
            return Ok(false);
        };
        if state.cleaned.len() == state.cleaned.capacity() {
            return Err(MemoryError::Rpc(RpcError::Busy));
        }
        let Some(cleaned) = entry.clean() else {
            return Ok(false);
        };
        let at = state.cleaned.partition_point(|(other, _)| *other < page);
        state.cleaned.insert(at, (page, cleaned));
        Ok(true)
    }

    /// Ends the write-back of pages by `end`, with the lock; how many `end` says were.
    fn end_clean(
        &self,
        first: u64,
        count: u64,
        end: impl Fn(&Entry<F>, Cleaned<F>) -> bool,
    ) -> Result<u64> {
        let range = self.range(first, count)?;
        let mut ended = 0;
        for page in range {
            let mut state = self.state.lock();
            let at = state.cleaned.binary_search_by_key(&page, |(page, _)| *page);
            let Ok(at) = at else {
                continue;
            };
            let (_, cleaned) = state.cleaned.remove(at);
            if let Found::Here(Place { entry, .. }) = self.index.find(page) {
                ended += u64::from(end(entry, cleaned));
            }
        }
        Ok(ended)
    }

    /// These pages, that were being written back, are where they belong; how many were.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn commit(&self, first: u64, count: u64) -> Result<u64> {
        self.end_clean(first, count, |entry, cleaned| entry.commit(&cleaned))
    }

    /// These pages, that were being written back, are dirty again; how many were.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`].
    pub fn redo(&self, first: u64, count: u64) -> Result<u64> {
        self.end_clean(first, count, |entry, cleaned| entry.redo(cleaned))
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

/// Does `step` for each page that `length` bytes from `offset` on lie in: with the page, the place
/// in it, and how many bytes. How many bytes were done before one that failed.
///
/// # Errors
/// The first one failed; why. The end is beyond all numbers.
fn in_pages(
    offset: u64,
    length: usize,
    mut step: impl FnMut(u64, usize, usize) -> Result<()>,
) -> Result<usize> {
    offset
        .checked_add(length as u64)
        .ok_or(MemoryError::Beyond)?;
    let mut done = 0;
    while done < length {
        let from = offset + done as u64;
        let at = from as usize % PAGE;
        let count = (PAGE - at).min(length - done);
        match step(from / PAGE as u64, at, count) {
            Ok(()) => done += count,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}
