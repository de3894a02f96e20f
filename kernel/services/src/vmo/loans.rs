//! What one device uses of memory objects: runs of pages, each of them a loan with a number.
//!
//! The number has the place of the loan below, and above it how often the place was used, so that a
//! number whose loan has ended means nothing any more.
//!
//! All room comes at once, before the first loan: places, pieces that have 16 pages each, and
//! [`accounts`]. A loan of one page has it in its place, any other one has as many pieces as it
//! needs, in a chain. So it takes no memory: what has to be written back to make some goes through
//! here. All of it is made as it is needed first, in the room that is there, since a driver that
//! restarts has used little.
//!
//! The lock guards all of it. Pages that are there are lent with it, and pages of loans that have
//! one each are given back with it: a call takes it once for all of them. All others are lent and
//! given back without it, a piece at a time. Under it nobody waits or takes another lock, but that
//! of the free frames when a page is given back that nobody else has, and no object, account or
//! charge is dropped.
//!
//! What is behind the lock is not replaced once it has room, as long as others can reach it: chains
//! that are being filled or emptied stay what they are.

mod accounts;

use super::Result;
use super::index::Near;
use super::object::{PIECE, Vmo};
use super::payer::Payer;
use accounts::Accounts;
pub use accounts::{Pays, Share};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use interfaces::{DmaDirection, DmaRun, MemoryError, RpcError};
use isolation::lock::{Guard, Lock};
use pages::{Bytes, Lent};

/// The most loans at a time.
pub const MOST_LOANS: usize = 1024;
/// Pieces for all of them; one of a single page counts as one.
const PIECES: usize = 1024;

const TOO_MANY: MemoryError = MemoryError::Rpc(RpcError::Busy);

/// A place, a piece or an account, by its number plus one; 0: none.
type Link = u32;

/// Where a loan is: pages that a device uses. It lies in a cache line.
struct Place<F: Bytes> {
    first: u64,
    /// The page, where it is one.
    single: Option<Lent<F>>,
    pages: u32,
    /// The first of its pieces.
    chain: Link,
    /// In which account it is; 0: there is no loan here.
    account: Link,
    /// The device may write to pages of it that have content.
    writes: bool,
    /// How often the place was used.
    uses: u32,
    /// While there is no loan: the next such place.
    next: Link,
}

/// What was in a place.
struct Loan<F: Bytes> {
    first: u64,
    single: Option<Lent<F>>,
    pages: u32,
    chain: Link,
    account: Link,
    writes: bool,
}

impl<F: Bytes> Place<F> {
    /// One that was never used.
    const fn new() -> Self {
        Place {
            first: 0,
            single: None,
            pages: 0,
            chain: 0,
            account: 0,
            writes: false,
            uses: 0,
            next: 0,
        }
    }

    /// Puts a loan of one page here, which is of the `account`.
    #[inline]
    fn put_single(&mut self, first: u64, page: Lent<F>, account: Link, writes: bool) {
        self.first = first;
        self.single = Some(page);
        self.pages = 1;
        self.chain = 0;
        self.account = account;
        self.writes = writes;
    }

    /// Puts a loan here.
    fn put(&mut self, loan: Loan<F>) {
        self.first = loan.first;
        self.single = loan.single;
        self.pages = loan.pages;
        self.chain = loan.chain;
        self.account = loan.account;
        self.writes = loan.writes;
    }

    /// Whether a loan of one page is here that has this number and is of the `account`.
    #[inline]
    fn is_single(&self, number: u64, account: Link) -> bool {
        // No account has number 0.
        self.account == account && self.uses == parts(number).1 && self.chain == 0
    }

    /// Has no loan here any more, so that its number means nothing; what was the next free place is
    /// behind this one.
    #[inline]
    fn clear(&mut self, next: Link) {
        self.account = 0;
        self.uses = self.uses.wrapping_add(1);
        self.next = next;
    }
}

struct Room<F: Bytes> {
    pages: [Option<Lent<F>>; PIECE],
    /// The next one of the loan, or the next free one.
    next: Link,
}

/// All loans of a device.
pub struct Loans<F: Bytes, P: Payer, C: Share> {
    places: Vec<Place<F>>,
    free_place: Link,
    pieces: Vec<Room<F>>,
    free_piece: Link,
    /// Pieces that are free.
    left: usize,
    /// Loans that there are.
    count: usize,
    accounts: Accounts<F, P, C>,
    /// For the room.
    charge: Option<C>,
}

/// Loans of one page each that were taken together.
#[derive(Default)]
struct Singles {
    count: usize,
    /// By which the device wrote.
    writes: usize,
    /// A page of theirs was clean until then.
    was_clean: bool,
}

/// Where pages of loans are noted: with whom, and of what.
struct Terms<'a, F: Bytes, P: Payer> {
    account: Link,
    object: &'a Vmo<F, P>,
}

/// The place of a number, and how often that was used.
fn parts(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}

#[inline]
fn pages_of(runs: &[DmaRun]) -> usize {
    if let [run] = runs {
        return run.pages as usize;
    }
    runs.iter().map(|run| run.pages as usize).sum()
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
            accounts: Accounts::none(),
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
    pub const BYTES: usize = MOST_LOANS * size_of::<Place<F>>()
        + PIECES * size_of::<Room<F>>()
        + Accounts::<F, P, C>::BYTES;

    /// Room for all loans that there can be, paid for with `charge`.
    ///
    /// # Errors
    /// No memory.
    pub fn with_room(charge: C) -> Result<Self> {
        Ok(Loans {
            places: room_for(MOST_LOANS)?,
            pieces: room_for(PIECES)?,
            left: PIECES,
            accounts: Accounts::with_room()?,
            charge: Some(charge),
            ..Self::default()
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

    /// What is charged for loans: how many pages each charge is for.
    pub fn each(&mut self) -> impl Iterator<Item = (usize, &mut C)> {
        self.accounts.each()
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

    /// A place for another loan, which stays free until it is [taken](Self::fill). Its pieces were
    /// taken before, if it has some.
    #[inline]
    fn free_place(&mut self, has_pieces: bool) -> Option<Link> {
        if !has_pieces && self.left == 0 {
            return None;
        }
        match self.free_place {
            0 => self.new_place(),
            place => Some(place),
        }
    }

    /// Makes a place, if there can be another one.
    #[cold]
    fn new_place(&mut self) -> Option<Link> {
        if self.places.len() >= MOST_LOANS {
            return None;
        }
        self.places.push(Place::new());
        self.free_place = self.places.len() as Link;
        Some(self.free_place)
    }

    /// Has a loan put into the place, which is [free](Self::free_place); its number.
    #[inline]
    fn fill(&mut self, place: Link, pieces: bool, put: impl FnOnce(&mut Place<F>)) -> u64 {
        let at = place - 1;
        let place = &mut self.places[at as usize];
        put(place);
        self.free_place = place.next;
        self.left -= usize::from(!pieces);
        self.count += 1;
        u64::from(place.uses) << 32 | u64::from(at)
    }

    /// The place of the loan with this number.
    #[inline]
    fn place(&mut self, number: u64) -> Option<&mut Place<F>> {
        let (at, uses) = parts(number);
        let place = self.places.get_mut(at as usize)?;
        (place.account != 0 && place.uses == uses).then_some(place)
    }

    /// The loan with this number, which is none any more.
    fn take(&mut self, number: u64) -> Option<Loan<F>> {
        let next = self.free_place;
        let place = self.place(number)?;
        let loan = Loan {
            first: place.first,
            single: place.single.take(),
            pages: place.pages,
            chain: place.chain,
            account: place.account,
            writes: place.writes,
        };
        place.clear(next);
        self.free_place = parts(number).0 + 1;
        self.left += usize::from(loan.chain == 0);
        self.count -= 1;
        Some(loan)
    }

    /// Lends the device `runs` of pages of `object`, in their order, until one is refused: notes
    /// their numbers there, and tells their frames to `tell`. How many are lent. `payer` pays for
    /// them: for all, or else for the first alone. If, with the lock, the device `may` have none
    /// any more, the rest is refused.
    ///
    /// # Errors
    /// That of the first run: those of [`Vmo::lend`]. `Rpc(Busy)`: there are too many loans, or of
    /// too many pages. `Rpc(Refused)`: it may not have them. No memory that `payer` may have.
    pub fn lend(
        this: &Lock<Self>,
        object: &Arc<Vmo<F, P>>,
        runs: &mut [DmaRun],
        payer: &impl Pays<C>,
        mut tell: impl FnMut(u64),
        may: impl Fn() -> bool,
    ) -> Result<usize> {
        let wanted = pages_of(runs);
        let mut loans = this.lock();
        let (runs, account) = match loans.accounts.reserve(object, wanted, payer) {
            Some(account) => (runs, account),
            None => {
                drop(loans);
                let opened = Self::open(this, object, runs, payer)?;
                loans = this.lock();
                opened
            }
        };
        let terms = Terms { account, object };
        let done = match may() {
            true => loans.lend_there(&terms, runs, &mut tell),
            false => 0,
        };
        if done == runs.len() {
            return Ok(done);
        }
        drop(loans);
        Self::lend_rest(this, &terms, runs, done, tell, may)
    }

    /// An account for the pages of `runs`, or for those of the first if not for all: the runs that
    /// it is for, and the account.
    #[inline(never)]
    fn open<'a>(
        this: &Lock<Self>,
        object: &Arc<Vmo<F, P>>,
        mut runs: &'a mut [DmaRun],
        payer: &impl Pays<C>,
    ) -> Result<(&'a mut [DmaRun], Link)> {
        let charge = payer.charge(pages_of(runs)).or_else(|_| {
            // Perhaps there is room for the first.
            runs = mem::take(&mut runs).get_mut(..1).unwrap_or_default();
            payer.charge(pages_of(runs))
        })?;
        let opened = this.lock().accounts.open(object, charge, pages_of(runs));
        let (account, _closed) = opened.map_err(|_charge| TOO_MANY)?;
        Ok((runs, account))
    }

    /// Lends what is left of `runs` behind the first `done`, and gives back what was charged for
    /// those that are refused; how many are lent then.
    ///
    /// # Errors
    /// As [`lend`](Self::lend).
    #[inline(never)]
    fn lend_rest(
        this: &Lock<Self>,
        terms: &Terms<'_, F, P>,
        runs: &mut [DmaRun],
        mut done: usize,
        mut tell: impl FnMut(u64),
        may: impl Fn() -> bool,
    ) -> Result<usize> {
        let mut result = Ok(());
        while let Some(run) = runs.get_mut(done) {
            match Self::lend_run(this, terms, run, &mut tell, &may) {
                Ok(number) => run.hold = number,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            done += 1;
            let mut loans = this.lock();
            if may() {
                done += loans.lend_there(terms, &mut runs[done..], &mut tell);
            }
        }
        let refused = pages_of(&runs[done..]);
        // Else the account may be another's by now: what was lent may be over.
        if refused > 0 {
            let settled = this.lock().accounts.settle(terms.account, refused, 0);
            settled.tell(None);
        }
        match result {
            Err(error) if done == 0 => Err(error),
            _ => Ok(done),
        }
    }

    /// Lends the first of `runs` that are of one page each which is there, as nearly all are; how
    /// many. For none of them does anybody wait.
    #[inline]
    fn lend_there(
        &mut self,
        terms: &Terms<'_, F, P>,
        runs: &mut [DmaRun],
        tell: &mut impl FnMut(u64),
    ) -> usize {
        let (mut near, mut writing) = (Near::nowhere(), None);
        let (mut done, mut written) = (0, 0);
        for run in runs {
            let writes = run.direction == DmaDirection::FromDevice;
            if run.pages != 1 {
                break;
            }
            let Some(place) = self.free_place(false) else {
                break;
            };
            if writes && writing.is_none() {
                writing = terms.object.begin_lent();
                if writing.is_none() {
                    break;
                }
            }
            let (first, account) = (run.first, terms.account);
            let Some(lent) = terms.object.lend_there(&mut near, first) else {
                break;
            };
            tell(lent.frame());
            let put = |place: &mut Place<F>| place.put_single(first, lent, account, writes);
            run.hold = self.fill(place, false, put);
            written += usize::from(writes);
            done += 1;
        }
        if self.accounts.add_writes(terms.account, written)
            && let Some(writing) = writing
        {
            writing.keep();
        }
        done
    }

    /// Lends a run; the loan's number.
    fn lend_run(
        this: &Lock<Self>,
        terms: &Terms<'_, F, P>,
        run: &DmaRun,
        tell: impl FnMut(u64),
        may: impl FnOnce() -> bool,
    ) -> Result<u64> {
        let (single, chain, writes) = match run.pages {
            1 => Self::lend_page(terms.object, run, tell)?,
            _ => Self::lend_pieces(this, terms.object, run, tell)?,
        };
        let loan = Loan {
            first: run.first,
            single,
            pages: run.pages as u32,
            chain,
            account: terms.account,
            writes,
        };
        let mut loans = this.lock();
        let place = match may() {
            true => loans.free_place(chain != 0).ok_or(TOO_MANY),
            false => Err(RpcError::Refused.into()),
        };
        let place = match place {
            Ok(place) => place,
            Err(error) => {
                drop(loans);
                Self::empty_loan(this, loan, Some(terms.object).filter(|_| writes));
                if writes {
                    terms.object.end_lent();
                }
                return Err(error);
            }
        };
        let number = loans.fill(place, chain != 0, |place| place.put(loan));
        let is_first = loans.accounts.add_writes(terms.account, writes.into());
        drop(loans);
        if writes && !is_first {
            // The account has one for all.
            terms.object.end_lent();
        }
        Ok(number)
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
        let (mut all, mut left) = (true, numbers);
        while let Some((number, others)) = left.split_first() {
            let mut loans = this.lock();
            match loans.place(*number) {
                Some(place) if place.chain == 0 => {
                    let account = place.account;
                    left = &left[Self::end_singles(loans, account, left)..];
                    continue;
                }
                Some(_) => all &= Self::end_one(loans, this, *number),
                None => all = false,
            }
            left = others;
        }
        all
    }

    /// Ends the first loans of these numbers that are of one page each and in the account; how
    /// many.
    fn end_singles(mut loans: Guard<'_, Self>, account: Link, numbers: &[u64]) -> usize {
        let object = loans.accounts.written(account);
        let ended = loans.take_singles(account, object.as_deref(), numbers);
        let accounts = &mut loans.accounts;
        let settled = accounts.settle(account, ended.count, ended.writes);
        drop(loans);
        if let Some(object) = object.as_ref().filter(|_| ended.was_clean) {
            object.marked();
        }
        settled.tell(object.as_deref());
        ended.count
    }

    /// Takes the first loans of these numbers that are of one page each and in the account; those
    /// pages are marked that the device wrote to, and all given back.
    #[inline]
    fn take_singles(
        &mut self,
        account: Link,
        object: Option<&Vmo<F, P>>,
        numbers: &[u64],
    ) -> Singles {
        let (mut near, mut ended) = (Near::nowhere(), Singles::default());
        for number in numbers {
            let (at, _) = parts(*number);
            let place = self.places.get_mut(at as usize);
            let Some(place) = place.filter(|place| place.is_single(*number, account)) else {
                break;
            };
            let page = place.single.take();
            place.clear(mem::replace(&mut self.free_place, at + 1));
            ended.count += 1;
            ended.writes += usize::from(place.writes);
            let Some(page) = page else { continue };
            if let Some(object) = object.filter(|_| place.writes) {
                ended.was_clean |= object.mark_near(&mut near, place.first, &page);
            }
            page.end();
        }
        self.left += ended.count;
        self.count -= ended.count;
        ended
    }

    /// Ends one loan, whatever it has; whether there is one with this number.
    #[inline(never)]
    fn end_one(mut loans: Guard<'_, Self>, this: &Lock<Self>, number: u64) -> bool {
        let Some(loan) = loans.take(number) else {
            return false;
        };
        // Its pages are noted there until they are given back.
        let (account, pages, writes) = (loan.account, loan.pages, loan.writes);
        // Not asked for in vain: what may be its last share is not dropped with the lock.
        let object = match writes {
            true => loans.accounts.written(account),
            false => None,
        };
        drop(loans);
        Self::empty_loan(this, loan, object.as_deref());
        let mut loans = this.lock();
        let accounts = &mut loans.accounts;
        let settled = accounts.settle(account, pages as usize, writes.into());
        drop(loans);
        settled.tell(object.as_deref());
        true
    }

    /// The device uses nothing any more.
    pub fn end_all(this: &Lock<Self>) {
        let places = this.lock().places.len() as u32;
        for at in 0..places {
            let loans = this.lock();
            let uses = loans.places[at as usize].uses;
            Self::end_one(loans, this, u64::from(uses) << 32 | u64::from(at));
        }
        // No call may come any more that it is kept for.
        let kept = this.lock().accounts.keep_none();
        drop(kept);
    }

    /// Gives the pages of a loan back, which are marked in `object`, if they were written and it is
    /// still there.
    fn empty_loan(this: &Lock<Self>, mut loan: Loan<F>, object: Option<&Vmo<F, P>>) {
        if let Some((lent, object)) = loan.single.as_ref().zip(object) {
            object.mark_lent(loan.first, lent);
        }
        loan.single = None;
        if loan.chain != 0 {
            Self::empty(this, &mut loan.chain, loan.first, object);
        }
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
