//! What one device uses of memory objects: runs of pages, each of them a loan with a number.
//!
//! The number has the place of the loan below, and above it how often the place was used, so that a
//! number whose loan has ended means nothing any more.
//!
//! All room comes at once, before the first loan: places, and pieces that have 16 pages each. A
//! loan of one page has it in its place, any other one has as many pieces as it needs, in a chain.
//! So it takes no memory: what has to be written back to make some goes through here. Places and
//! pieces are made as they are needed first, in the room that is there, since a driver that
//! restarts has used few.
//!
//! The lock guards places and pieces. Pages are lent and given back without it, a piece at a time.
//! What is behind the lock is not replaced once it has room, as long as others can reach it: chains
//! that are being filled or emptied stay what they are.

use super::Result;
use super::object::{PIECE, Vmo};
use super::payer::Payer;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::{mem, ptr};
use interfaces::{DmaRun, MemoryError, RpcError};
use isolation::domain::account::Charge;
use isolation::lock::Lock;
use isolation::platform::PAGE;
use pages::{Bytes, Lent};

/// The most loans at a time.
pub const MOST_LOANS: usize = 1024;
/// Pieces for all of them; one of a single page counts as one.
const PIECES: usize = 1024;

const TOO_MANY: MemoryError = MemoryError::Rpc(RpcError::Busy);

/// What somebody is charged with for pages: it can be divided, and put together again.
pub trait Share: Sized {
    /// Takes that for `pages` pages out of it.
    fn split(&mut self, pages: usize) -> Self;
    /// Takes another one in, unless that is somebody else's: then it comes back.
    fn join(&mut self, other: Self) -> Option<Self>;
}

impl Share for Option<Charge> {
    #[inline]
    fn split(&mut self, pages: usize) -> Self {
        let bytes = pages * PAGE;
        match self.as_mut()? {
            charge if charge.bytes() > bytes => Some(charge.split(bytes)),
            // All of it.
            _ => self.take(),
        }
    }

    #[inline]
    fn join(&mut self, other: Self) -> Option<Self> {
        match (self.as_mut(), other) {
            (Some(charge), Some(other)) => charge.absorb(other).err().map(Some),
            (_, other) => mem::replace(self, other).map(Some),
        }
    }
}

/// Pages that a device uses, and what its driver is charged with for them.
struct Loan<F: Bytes, P: Payer, C> {
    /// Whose they are, if the device may write to such that have content.
    written: Option<Weak<Vmo<F, P>>>,
    first: u64,
    pages: u64,
    /// The page, where it is one.
    single: Option<Lent<F>>,
    /// The first of its pieces.
    chain: Link,
    charge: C,
}

/// A place or a piece, by its number plus one; 0: none.
type Link = u32;

struct Place<F: Bytes, P: Payer, C> {
    loan: Option<Loan<F, P, C>>,
    uses: u32,
    /// While it has no loan: the next such place.
    next: Link,
}

struct Room<F: Bytes> {
    pages: [Option<Lent<F>>; PIECE],
    /// The next one of the loan, or the next free one.
    next: Link,
}

/// All loans of a device.
pub struct Loans<F: Bytes, P: Payer, C: Share> {
    places: Vec<Place<F, P, C>>,
    free_place: Link,
    pieces: Vec<Room<F>>,
    free_piece: Link,
    /// Pieces that are free.
    left: usize,
    /// Loans that there are.
    count: usize,
    /// For the room.
    charge: Option<C>,
}

/// What was met of loans that one call ends.
struct Ended<F: Bytes, P: Payer, C> {
    /// The last object whose pages were written.
    object: Option<Arc<Vmo<F, P>>>,
    charge: Option<C>,
}

impl<F: Bytes, P: Payer, C: Share> Ended<F, P, C> {
    /// Whether a loan is of one page, and that of the same object if it was written.
    #[inline]
    fn is_like(&self, loan: &Loan<F, P, C>) -> bool {
        let Some(written) = &loan.written else {
            return loan.single.is_some();
        };
        let object = self.object.as_ref();
        let is_same = object.is_some_and(|object| ptr::eq(written.as_ptr(), Arc::as_ptr(object)));
        is_same && loan.single.is_some()
    }

    /// Notes what was charged for a loan. That of somebody else comes back.
    #[inline]
    fn add(&mut self, charge: C) -> Option<C> {
        match &mut self.charge {
            Some(sum) => sum.join(charge),
            None => {
                self.charge = Some(charge);
                None
            }
        }
    }
}

/// The place of a number, and how often that was used.
fn parts(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}

impl<F: Bytes, P: Payer, C: Share> Default for Loans<F, P, C> {
    /// None, and no room for any.
    fn default() -> Self {
        Loans {
            places: Vec::new(),
            free_place: 0,
            pieces: Vec::new(),
            free_piece: 0,
            left: 0,
            count: 0,
            charge: None,
        }
    }
}

/// An empty list with room for so many.
fn room_for<T>(count: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    let room = all.try_reserve_exact(count);
    room.map_err(|_| RpcError::NoMemory)?;
    Ok(all)
}

/// Moves pages from a piece into one that is empty, as far as that reaches.
fn hand_over<F: Bytes>(from: &mut [Option<Lent<F>>], to: &mut [Option<Lent<F>>]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.take();
    }
}

impl<F: Bytes, P: Payer, C: Share> Loans<F, P, C> {
    /// What the room takes, in bytes.
    pub const BYTES: usize =
        MOST_LOANS * size_of::<Place<F, P, C>>() + PIECES * size_of::<Room<F>>();

    /// Room for all loans that there can be, paid for with `charge`.
    ///
    /// # Errors
    /// No memory.
    pub fn with_room(charge: C) -> Result<Self> {
        Ok(Loans {
            places: room_for(MOST_LOANS)?,
            free_place: 0,
            pieces: room_for(PIECES)?,
            free_piece: 0,
            left: PIECES,
            count: 0,
            charge: Some(charge),
        })
    }

    /// Whether there can be any.
    pub fn has_room(&self) -> bool {
        self.charge.is_some()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each loan's pages and charge.
    pub fn each(&mut self) -> impl Iterator<Item = (usize, &mut C)> {
        let loans = self.places.iter_mut().filter_map(|it| it.loan.as_mut());
        loans.map(|loan| (loan.pages as usize, &mut loan.charge))
    }

    /// Takes pieces for so many pages.
    fn take_pieces(&mut self, pages: u64) -> Result<Link> {
        let pieces = (pages as usize).div_ceil(PIECE);
        if pieces > self.left {
            return Err(TOO_MANY);
        }
        let mut chain = 0;
        for _ in 0..pieces {
            chain = self.take_piece(chain);
        }
        self.left -= pieces;
        Ok(chain)
    }

    /// Takes a piece, behind which `next` comes. There is one.
    fn take_piece(&mut self, next: Link) -> Link {
        let at = self.free_piece;
        if at == 0 {
            let pages = [const { None }; PIECE];
            self.pieces.push(Room { pages, next });
            return self.pieces.len() as Link;
        }
        self.free_piece = mem::replace(&mut self.piece(at).next, next);
        at
    }

    fn piece(&mut self, link: Link) -> &mut Room<F> {
        &mut self.pieces[link as usize - 1]
    }

    /// Frees the first piece of a chain, which then begins with the next. What was in it goes to
    /// `pages`, which has room for all.
    fn free_first(&mut self, chain: &mut Link, pages: &mut [Option<Lent<F>>]) {
        let (first, free) = (*chain, self.free_piece);
        let piece = self.piece(first);
        hand_over(&mut piece.pages, pages);
        *chain = mem::replace(&mut piece.next, free);
        self.free_piece = first;
        self.left += 1;
    }

    /// Whether another loan can be noted. Its pieces were taken before, if it has some.
    #[inline]
    fn has_place(&mut self, has_pieces: bool) -> bool {
        if self.free_place == 0 && self.places.len() < MOST_LOANS {
            self.places.push(Place {
                loan: None,
                uses: 0,
                next: 0,
            });
            self.free_place = self.places.len() as Link;
        }
        self.free_place != 0 && (has_pieces || self.left > 0)
    }

    /// Notes a loan; its number.
    #[inline]
    fn put(&mut self, loan: Loan<F, P, C>) -> core::result::Result<u64, Loan<F, P, C>> {
        if !self.has_place(loan.chain != 0) {
            return Err(loan);
        }
        let at = self.free_place - 1;
        self.left -= usize::from(loan.chain == 0);
        let place = &mut self.places[at as usize];
        self.free_place = place.next;
        place.loan = Some(loan);
        self.count += 1;
        Ok(u64::from(place.uses) << 32 | u64::from(at))
    }

    /// The loan in place `at`, which is none any more, if it and how often the place was used are
    /// what is `meant`.
    #[inline]
    fn take(
        &mut self,
        at: u32,
        meant: impl FnOnce(u32, &Loan<F, P, C>) -> bool,
    ) -> Option<Loan<F, P, C>> {
        let place = self.places.get_mut(at as usize)?;
        let uses = place.uses;
        let loan = place.loan.take_if(|loan| meant(uses, loan))?;
        place.uses = place.uses.wrapping_add(1);
        place.next = self.free_place;
        self.free_place = at + 1;
        self.left += usize::from(loan.chain == 0);
        self.count -= 1;
        Some(loan)
    }

    /// Lends the device `runs` of pages of `object`, in their order, until one is refused: notes
    /// their numbers there, and tells their frames to `tell`. How many are lent. `charge` is for
    /// all of them; what is left of it goes. If, with the lock, the device `may` have none any
    /// more, the rest is refused.
    ///
    /// # Errors
    /// That of the first run: those of [`Vmo::lend`]. `Rpc(Busy)`: there are too many loans, or of
    /// too many pages. `Rpc(Refused)`: it may not have them.
    pub fn lend(
        this: &Lock<Self>,
        object: &Arc<Vmo<F, P>>,
        runs: &mut [DmaRun],
        mut charge: C,
        mut tell: impl FnMut(u64),
        may: impl Fn() -> bool,
    ) -> Result<usize> {
        let mut done = 0;
        loop {
            done += Self::lend_there(
                this,
                object,
                &mut runs[done..],
                &mut charge,
                &mut tell,
                &may,
            );
            let Some(run) = runs.get_mut(done) else {
                return Ok(done);
            };
            match Self::lend_run(this, object, run, &mut charge, &mut tell, &may) {
                Ok(number) => run.hold = number,
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
            }
            done += 1;
        }
    }

    /// Lends the first of `runs` that are of one page each which is there, as nearly all are; how
    /// many. The lock is taken once, and for none of them does anybody wait.
    fn lend_there(
        this: &Lock<Self>,
        object: &Arc<Vmo<F, P>>,
        runs: &mut [DmaRun],
        charge: &mut C,
        mut tell: impl FnMut(u64),
        may: impl FnOnce() -> bool,
    ) -> usize {
        let mut loans = this.lock();
        if !may() {
            return 0;
        }
        for (done, run) in runs.iter_mut().enumerate() {
            if run.pages != 1 || !loans.has_place(false) {
                return done;
            }
            let Some((lent, writes)) = object.lend_there(run.first, run.direction) else {
                return done;
            };
            tell(lent.frame());
            let loan = Loan {
                written: writes.then(|| Arc::downgrade(object)),
                first: run.first,
                pages: 1,
                single: Some(lent),
                chain: 0,
                charge: charge.split(1),
            };
            let Ok(number) = loans.put(loan) else {
                return done;
            };
            run.hold = number;
        }
        runs.len()
    }

    /// Lends a run; the loan's number.
    fn lend_run(
        this: &Lock<Self>,
        object: &Arc<Vmo<F, P>>,
        run: &DmaRun,
        charge: &mut C,
        tell: impl FnMut(u64),
        may: impl FnOnce() -> bool,
    ) -> Result<u64> {
        let (single, chain, writes) = match run.pages {
            1 => Self::lend_page(object, run, tell)?,
            _ => Self::lend_pieces(this, object, run, tell)?,
        };
        let loan = Loan {
            written: writes.then(|| Arc::downgrade(object)),
            first: run.first,
            pages: run.pages,
            single,
            chain,
            charge: charge.split(run.pages as usize),
        };
        let mut loans = this.lock();
        let put = match may() {
            true => loans.put(loan).map_err(|loan| (TOO_MANY, loan)),
            false => Err((RpcError::Refused.into(), loan)),
        };
        drop(loans);
        put.map_err(|(error, loan)| {
            Self::give_back(this, loan);
            error
        })
    }

    /// Lends a run of one page: the page, no pieces, and whether the device writes to content.
    fn lend_page(
        object: &Vmo<F, P>,
        run: &DmaRun,
        mut tell: impl FnMut(u64),
    ) -> Result<(Option<Lent<F>>, Link, bool)> {
        let (lent, writes) = object.lend_one(run.first, run.direction)?;
        tell(lent.frame());
        Ok((Some(lent), 0, writes))
    }

    /// Lends a run of several pages: no single one, the pieces, and whether the device writes to
    /// content.
    fn lend_pieces(
        this: &Lock<Self>,
        object: &Vmo<F, P>,
        run: &DmaRun,
        mut tell: impl FnMut(u64),
    ) -> Result<(Option<Lent<F>>, Link, bool)> {
        object.can_lend(run.first, run.pages)?;
        let mut chain = this.lock().take_pieces(run.pages)?;
        let mut at = chain;
        let lent = object.lend(run.first, run.pages, run.direction, |piece| {
            piece.iter().flatten().for_each(|lent| tell(lent.frame()));
            let mut loans = this.lock();
            let room = loans.piece(at);
            hand_over(piece, &mut room.pages);
            at = room.next;
        });
        if lent.is_err() {
            Self::empty(this, &mut chain, run.first, None);
        }
        lent.map(|writes| (None, chain, writes))
    }

    /// The device uses the pages of the loans with these numbers no more; whether there were all.
    pub fn end(this: &Lock<Self>, numbers: &[u64]) -> bool {
        let mut all = true;
        let mut ended = Ended {
            object: None,
            charge: None,
        };
        let mut left = numbers;
        while let Some((number, others)) = left.split_first() {
            left = others;
            let (at, uses) = parts(*number);
            let loan = this.lock().take(at, |now, _| now == uses);
            let Some(loan) = loan else {
                all = false;
                continue;
            };
            let (back, object) = Self::give_back(this, loan);
            ended.object = object.or(ended.object);
            drop(ended.add(back));
            // Nearly always the others are of the same object.
            let count = Self::end_like(this, left, &mut ended);
            left = &left[count..];
        }
        all
    }

    /// Ends the first loans of these numbers that are of one page each and of the object that was
    /// met before; how many. The lock is taken once: nothing waits under it, and what may be the
    /// last share of something is dropped without it.
    fn end_like(this: &Lock<Self>, numbers: &[u64], ended: &mut Ended<F, P, C>) -> usize {
        let (mut count, mut writes, mut was_clean) = (0, 0, false);
        let mut of_others = None;
        let mut loans = match numbers {
            [] => return 0,
            _ => this.lock(),
        };
        for number in numbers {
            let (at, uses) = parts(*number);
            let loan = loans.take(at, |now, loan| now == uses && ended.is_like(loan));
            let Some(loan) = loan else { break };
            count += 1;
            if let Some(object) = ended.object.as_ref().filter(|_| loan.written.is_some()) {
                writes += 1;
                was_clean |= loan
                    .single
                    .as_ref()
                    .is_some_and(|lent| object.mark_page(loan.first, lent));
            }
            of_others = ended.add(loan.charge);
            if of_others.is_some() {
                break;
            }
        }
        drop(loans);
        drop(of_others);
        if let Some(object) = &ended.object {
            if was_clean {
                object.marked();
            }
            (0..writes).for_each(|_| object.end_lent());
        }
        count
    }

    /// The device uses nothing any more.
    pub fn end_all(this: &Lock<Self>) {
        let places = this.lock().places.len() as u32;
        for at in 0..places {
            let loan = this.lock().take(at, |_, _| true);
            if let Some(loan) = loan {
                Self::give_back(this, loan);
            }
        }
    }

    /// Gives the pages of a loan back; what was charged for them, and the object, if they were
    /// written and it is still there.
    fn give_back(this: &Lock<Self>, mut loan: Loan<F, P, C>) -> (C, Option<Arc<Vmo<F, P>>>) {
        // The object may be gone, and its pages with it.
        let object = loan.written.take().and_then(|object| object.upgrade());
        if let Some((lent, object)) = loan.single.as_ref().zip(object.as_ref()) {
            object.mark_lent(loan.first, lent);
        }
        loan.single = None;
        if loan.chain != 0 {
            Self::empty(this, &mut loan.chain, loan.first, object.as_deref());
        }
        if let Some(object) = &object {
            object.end_lent();
        }
        (loan.charge, object)
    }

    /// Empties pieces, whose pages are marked in `object`, from the page `first` on.
    fn empty(this: &Lock<Self>, chain: &mut Link, first: u64, object: Option<&Vmo<F, P>>) {
        let (mut page, mut piece) = (first, [const { None }; PIECE]);
        while *chain != 0 {
            this.lock().free_first(chain, &mut piece);
            for lent in piece.iter_mut().filter_map(Option::take) {
                if let Some(object) = object {
                    object.mark_lent(page, &lent);
                }
                page += 1;
            }
        }
    }
}

impl<F: Bytes, P: Payer, C: Share> Drop for Loans<F, P, C> {
    fn drop(&mut self) {
        // What remains of it has no loan.
        if !self.is_empty() {
            Self::end_all(&Lock::new(mem::take(self)));
        }
    }
}
