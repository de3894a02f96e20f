//! What those loans of a device have in common that are of one object and that one domain pays for:
//! so none of them has a charge or a share of the object to itself.
//!
//! An account stays as long as pages are noted in it, those of a call that is under way among them.
//! The one that was used last stays behind that: the next call is nearly always for the same, and
//! only notes its pages.

use super::super::Result;
use super::super::object::Vmo;
use super::super::payer::Payer;
use super::{Link, MOST_LOANS, room_for};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::{mem, ptr};
use isolation::domain::account::Charge;
use isolation::platform::PAGE;
use pages::Bytes;

/// What somebody is charged with for pages. What it does takes no lock.
pub trait Share: Sized {
    /// Charges him with `pages` more, if his limit lets it as it stands; whether it did.
    fn grow(&mut self, pages: usize) -> bool;
    /// Gives back what he was charged with for `pages`.
    fn shrink(&mut self, pages: usize);
}

impl Share for Option<Charge> {
    #[inline]
    fn grow(&mut self, pages: usize) -> bool {
        self.as_mut().is_none_or(|charge| charge.grow(pages * PAGE))
    }

    #[inline]
    fn shrink(&mut self, pages: usize) {
        if let Some(charge) = self {
            charge.shrink(pages * PAGE);
        }
    }
}

/// Somebody who pays for loans.
pub trait Pays<C> {
    /// Whether it is he who is charged with this.
    fn pays(&self, charge: &C) -> bool;
    /// Charges him for `pages`.
    ///
    /// # Errors
    /// His limit does not let it.
    fn charge(&self, pages: usize) -> Result<C>;
}

/// Loans of one object that one domain pays for.
pub(super) struct Account<F: Bytes, P: Payer, C> {
    object: Weak<Vmo<F, P>>,
    charge: C,
    /// What is charged.
    pages: usize,
    /// Loans by which the device may write to pages that have content. As long as there are some,
    /// the object has one write under way for all of them.
    writes: usize,
}

struct Cell<F: Bytes, P: Payer, C> {
    account: Option<Account<F, P, C>>,
    /// While it has none: the next such cell.
    next: Link,
}

/// All accounts of a device.
pub(super) struct Accounts<F: Bytes, P: Payer, C> {
    cells: Vec<Cell<F, P, C>>,
    free: Link,
    /// The one that was used last.
    last: Link,
}

/// What was left when loans were taken off an account, to be seen to without the lock.
pub(super) struct Settled<F: Bytes, P: Payer, C> {
    /// These were the last ones by which the device wrote.
    pub(super) ends_writing: bool,
    /// The account, if there is none any more.
    closed: Option<Account<F, P, C>>,
}

impl<F: Bytes, P: Payer, C> Settled<F, P, C> {
    /// Tells the object what it is to know.
    pub(super) fn tell(self, object: Option<&Vmo<F, P>>) {
        if let Some(object) = object.filter(|_| self.ends_writing) {
            object.end_lent();
        }
        drop(self.closed);
    }
}

impl<F: Bytes, P: Payer, C: Share> Accounts<F, P, C> {
    /// What the room takes, in bytes.
    pub(super) const BYTES: usize = MOST_LOANS * size_of::<Cell<F, P, C>>();

    /// None, and no room for any.
    pub(super) const fn none() -> Self {
        Accounts {
            cells: Vec::new(),
            free: 0,
            last: 0,
        }
    }

    /// Room for as many as there can be loans.
    pub(super) fn with_room() -> Result<Self> {
        Ok(Accounts {
            cells: room_for(MOST_LOANS)?,
            ..Self::none()
        })
    }

    /// Each account's pages and charge, if it has some.
    pub(super) fn each(&mut self) -> impl Iterator<Item = (usize, &mut C)> {
        let all = self.cells.iter_mut().filter_map(|it| it.account.as_mut());
        all.filter(|account| account.pages > 0)
            .map(|account| (account.pages, &mut account.charge))
    }

    fn get(&mut self, link: Link) -> Option<&mut Account<F, P, C>> {
        let at = (link as usize).checked_sub(1)?;
        self.cells.get_mut(at)?.account.as_mut()
    }

    /// Notes so many pages in the account that was used last, if it is for this object and this
    /// payer, whose limit lets it.
    #[inline]
    pub(super) fn reserve(
        &mut self,
        object: &Arc<Vmo<F, P>>,
        pages: usize,
        payer: &impl Pays<C>,
    ) -> Option<Link> {
        let last = self.last;
        let account = self.get(last)?;
        // The account's share keeps the place of the object, so that no other one has it.
        let is_same = ptr::eq(account.object.as_ptr(), Arc::as_ptr(object));
        let grows = is_same && payer.pays(&account.charge) && account.charge.grow(pages);
        account.pages += if grows { pages } else { 0 };
        grows.then_some(last)
    }

    /// An account for `pages` pages, which `charge` is for. Another one may end by that, which is
    /// to be dropped without the lock.
    ///
    /// # Errors
    /// There are too many: the charge comes back.
    #[expect(clippy::type_complexity, reason = "an account that ends, too")]
    pub(super) fn open(
        &mut self,
        object: &Arc<Vmo<F, P>>,
        charge: C,
        pages: usize,
    ) -> core::result::Result<(Link, Option<Account<F, P, C>>), C> {
        let closed = self.keep_none();
        if self.free == 0 && self.cells.len() >= MOST_LOANS {
            return Err(charge);
        }
        let new = Account {
            object: Arc::downgrade(object),
            charge,
            pages,
            writes: 0,
        };
        let link = match self.free {
            0 => {
                let (account, next) = (Some(new), 0);
                self.cells.push(Cell { account, next });
                self.cells.len() as Link
            }
            free => {
                let cell = &mut self.cells[free as usize - 1];
                self.free = cell.next;
                cell.account = Some(new);
                free
            }
        };
        self.last = link;
        Ok((link, closed))
    }

    /// Keeps none for the next call. The one that was kept is to be dropped without the lock.
    pub(super) fn keep_none(&mut self) -> Option<Account<F, P, C>> {
        let last = mem::take(&mut self.last);
        self.close_if_idle(last)
    }

    /// Takes the account away if no page is noted in it, and it is not the one to be kept.
    #[inline(never)]
    fn close_if_idle(&mut self, link: Link) -> Option<Account<F, P, C>> {
        if link == self.last {
            return None;
        }
        let cell = self.cells.get_mut((link as usize).checked_sub(1)?)?;
        let closed = cell.account.take_if(|account| account.pages == 0)?;
        cell.next = mem::replace(&mut self.free, link);
        Some(closed)
    }

    /// Notes so many loans by which the device writes; whether there was none before. Then the
    /// object is to have a write under way until they are over.
    #[inline]
    pub(super) fn add_writes(&mut self, link: Link, writes: usize) -> bool {
        let Some(account) = self.get(link) else {
            return false;
        };
        let before = account.writes;
        account.writes += writes;
        before == 0 && writes > 0
    }

    /// The object of an account whose loans may have written to it, if it is still there.
    #[inline]
    pub(super) fn written(&mut self, link: Link) -> Option<Arc<Vmo<F, P>>> {
        let account = self.get(link)?;
        (account.writes > 0)
            .then(|| account.object.upgrade())
            .flatten()
    }

    /// Takes pages that are charged off an account, and loans by which the device wrote.
    #[inline]
    pub(super) fn settle(&mut self, link: Link, pages: usize, writes: usize) -> Settled<F, P, C> {
        let last = self.last;
        let Some(account) = self.get(link) else {
            return Settled {
                ends_writing: false,
                closed: None,
            };
        };
        account.charge.shrink(pages);
        account.pages -= pages;
        account.writes -= writes;
        let ends_writing = writes > 0 && account.writes == 0;
        let closed = match account.pages {
            0 if link != last => self.close_if_idle(link),
            _ => None,
        };
        Settled {
            ends_writing,
            closed,
        }
    }
}
