//! What an address space is charged with: page tables, pages of its own, and its list of areas.

use super::PAGE;
use core::sync::atomic::{AtomicUsize, Ordering};
use interfaces::{RpcError, SpaceError};
use isolation::call::thread::caller;
use isolation::lock::Lock;
use services::vmo::payer::{Bill, Charged, Domain, Payer};

/// Page tables that one page may need besides those that are there.
pub(super) const TABLES_AT_ONCE: usize = 3;
/// What is charged ahead, so that not every page asks: 16 pages.
const AHEAD: usize = 16 * PAGE as usize;

/// Who pays for a space, and what he was charged with.
pub(super) struct Purse {
    payer: Domain,
    bill: Lock<Option<Bill>>,
    /// What the bill says.
    paid: AtomicUsize,
}

impl Purse {
    /// The caller's, who was charged with nothing yet.
    pub(super) fn of_caller() -> Self {
        Purse {
            payer: Domain(caller()),
            bill: Lock::new(None),
            paid: AtomicUsize::new(0),
        }
    }

    /// Sees to it that `bytes` bytes are paid for.
    pub(super) fn cover(&self, bytes: usize) -> Result<(), SpaceError> {
        let paid = self.paid.load(Ordering::Relaxed);
        let Some(more) = bytes.checked_sub(paid).filter(|more| *more > 0) else {
            return Ok(());
        };
        let charge = self.payer.charge(more + AHEAD);
        let charge = charge.or_else(|| self.payer.charge(more));
        let charge = charge.ok_or(RpcError::NoMemory)?;
        let pages = more.div_ceil(PAGE as usize);
        let is_there = self.payer.claim(pages, &mut || Some(()));
        is_there.ok_or(RpcError::NoMemory)?;
        self.take(charge);
        Ok(())
    }

    /// Makes the bill say what is there: `bytes`, and a little ahead.
    pub(super) fn settle(&self, bytes: usize) {
        let paid = self.paid.load(Ordering::Relaxed);
        if bytes > paid {
            // Several threads have used what each of them had seen to be there.
            self.take(self.payer.charge_anyway(bytes - paid));
        } else if paid - bytes > 2 * AHEAD {
            let mut bill = self.bill.lock();
            let back = bill.as_mut().map(|own| {
                let most = own.bytes().saturating_sub(bytes + AHEAD);
                let back = own.split(most);
                self.paid.store(own.bytes(), Ordering::Relaxed);
                back
            });
            drop(bill);
            drop(back);
        }
    }

    fn take(&self, charge: Bill) {
        let mut bill = self.bill.lock();
        let left = match &mut *bill {
            Some(own) => own.absorb(charge).err(),
            none => {
                *none = Some(charge);
                None
            }
        };
        let paid = bill.as_ref().map_or(0, Bill::bytes);
        self.paid.store(paid, Ordering::Relaxed);
        drop(bill);
        debug_assert!(left.is_none(), "one payer has one bill");
    }

    /// What `make` makes of a page of memory, maybe after others gave some back.
    pub(super) fn claim<T>(&self, make: &mut dyn FnMut() -> Option<T>) -> Option<T> {
        self.payer.claim(1, make)
    }
}
