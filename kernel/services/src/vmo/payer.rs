//! Who pays for a memory object.

use crate::lacks_memory;
use alloc::sync::Arc;
use isolation::ControlBlock;
use isolation::domain::account::{Charge, Kind};
use isolation::memory::relief;
use isolation::platform::{PAGE, platform};

/// Somebody who pays.
pub trait Payer: Clone + Send + Sync {
    /// What he is charged with, as long as it exists.
    type Charge: Charged<Self>;

    /// Charges him with `bytes`; `None`: his limit does not let it.
    fn charge(&self, bytes: usize) -> Option<Self::Charge>;

    /// Charges him with `bytes` of what is there, whatever his limit says.
    fn charge_anyway(&self, bytes: usize) -> Self::Charge;

    /// What `claim` finds of `pages` pages for him, maybe after others gave some memory back.
    fn claim<T>(&self, pages: usize, claim: &mut dyn FnMut() -> Option<T>) -> Option<T>;

    /// Whether he lives.
    fn is_alive(&self) -> bool;
}

/// What somebody is charged with.
pub trait Charged<P>: Send + Sized {
    /// How much.
    fn bytes(&self) -> usize;
    /// Takes at most so much out of it.
    fn split(&mut self, bytes: usize) -> Self;
    /// Takes another one in, unless that is somebody else's.
    ///
    /// # Errors
    /// It is: it comes back.
    fn absorb(&mut self, other: Self) -> Result<(), Self>;
    /// Has `to` pay, if that changes no limit's sum; whether it does not.
    fn pass_to(&mut self, to: &P) -> bool;
}

/// A domain, or the kernel.
#[derive(Clone)]
pub struct Domain(pub Option<Arc<ControlBlock>>);

/// What a domain is charged with. The kernel is charged with nothing, but it is counted.
pub enum Bill {
    /// A domain's.
    Domain(Charge),
    /// The kernel's.
    Kernel(usize),
}

impl Payer for Domain {
    type Charge = Bill;

    fn charge(&self, bytes: usize) -> Option<Bill> {
        if lacks_memory() {
            return None;
        }
        match &self.0 {
            Some(block) => Charge::new(block.clone(), Kind::Objects, bytes).map(Bill::Domain),
            None => Some(Bill::Kernel(bytes)),
        }
    }

    fn charge_anyway(&self, bytes: usize) -> Bill {
        match &self.0 {
            Some(block) => Bill::Domain(Charge::anyway(block.clone(), Kind::Objects, bytes)),
            None => Bill::Kernel(bytes),
        }
    }

    fn claim<T>(&self, pages: usize, claim: &mut dyn FnMut() -> Option<T>) -> Option<T> {
        let may_take = || match &self.0 {
            Some(block) => block.may_take(pages),
            None => platform().can_spare(pages),
        };
        relief::or_wait(pages * PAGE, || {
            let may_take = may_take() && !lacks_memory();
            may_take.then(&mut *claim).flatten()
        })
    }

    fn is_alive(&self) -> bool {
        self.0.as_ref().is_none_or(|block| block.is_alive())
    }
}

impl Charged<Domain> for Bill {
    fn bytes(&self) -> usize {
        match self {
            Bill::Domain(charge) => charge.bytes(),
            Bill::Kernel(bytes) => *bytes,
        }
    }

    fn split(&mut self, bytes: usize) -> Self {
        match self {
            Bill::Domain(charge) => Bill::Domain(charge.split(bytes)),
            Bill::Kernel(has) => {
                let bytes = bytes.min(*has);
                *has -= bytes;
                Bill::Kernel(bytes)
            }
        }
    }

    fn absorb(&mut self, other: Self) -> Result<(), Self> {
        match (self, other) {
            (Bill::Domain(charge), Bill::Domain(other)) => {
                charge.absorb(other).map_err(Bill::Domain)
            }
            (Bill::Kernel(bytes), Bill::Kernel(other)) => {
                *bytes += other;
                Ok(())
            }
            (_, other) => Err(other),
        }
    }

    fn pass_to(&mut self, to: &Domain) -> bool {
        match (self, &to.0) {
            (Bill::Domain(charge), Some(block)) => charge.pass_to(block),
            (Bill::Kernel(_), None) => true,
            _ => false,
        }
    }
}
