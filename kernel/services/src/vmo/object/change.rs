//! Pages that come and go: memory for them, limits, cuts, evictions.

use super::super::index::{Index, Wanted};
use super::super::payer::{Charged, Payer};
use super::{MOST_PAGES, NO_MEMORY, Result, State, Vmo};
use core::sync::atomic::Ordering;
use interfaces::{MemoryError, RpcError, VmoFill};
use isolation::platform::PAGE;
use pages::{Bytes, Entry, Fresh};

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
    /// Gives a page memory that has none: `put` does, with the lock. Returns whether it did;
    /// otherwise there is some, or the page is being loaded.
    pub(super) fn add(
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
        self.loads_ended();
        self.unmap(start..behind);
        Some(behind)
    }

    /// Gives an absent page of an object of zeros memory.
    pub(super) fn bring(&self, page: u64) -> Result<()> {
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
}
