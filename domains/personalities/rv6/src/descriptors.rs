//! The descriptors of one process.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use interfaces::{Errno, RpcError};

use crate::description::Description;
use crate::ledger::{DESCRIPTOR, Ledger};

/// Most descriptors of a process.
const LIMIT: usize = 16 * 1024;

type Slot = Option<Arc<Description>>;

/// Numbers and what they lead to.
pub struct Descriptors {
    slots: Mutex<Slots>,
    /// Who is charged for them.
    ledger: Arc<Ledger>,
}

struct Slots {
    all: Vec<Slot>,
    /// No slot below this is free.
    first_free: usize,
}

impl Descriptors {
    /// The first three.
    ///
    /// # Errors
    /// `NoMemory` if the job has so much already.
    pub fn new(ledger: Arc<Ledger>, first: [Slot; 3]) -> Result<Self, Errno> {
        ledger.take(first.iter().flatten().count() * DESCRIPTOR)?;
        Ok(Descriptors {
            slots: Mutex::new(Slots {
                all: Vec::from(first),
                first_free: 0,
            }),
            ledger,
        })
    }

    /// What a descriptor leads to.
    ///
    /// # Errors
    /// `BadDescriptor`.
    pub fn get(&self, number: u32) -> Result<Arc<Description>, Errno> {
        let slots = self.slots.lock();
        let slot = slots.all.get(number as usize).and_then(|slot| slot.clone());
        slot.ok_or(Errno::BadDescriptor)
    }

    /// The lowest free number for a description.
    ///
    /// # Errors
    /// `TooManyDescriptors`, `NoMemory`; the description is let go.
    pub fn add(&self, description: Arc<Description>) -> Result<u32, Errno> {
        self.ledger.take(DESCRIPTOR)?;
        let mut slots = self.slots.lock();
        let place = slots.lowest_free();
        match place {
            Ok(free) => {
                slots.all[free] = Some(description);
                slots.first_free = free + 1;
                // At most LIMIT, so it fits.
                Ok(free as u32)
            }
            Err(error) => {
                // The lock is let go before the description is: that may be a call to a file
                // system.
                drop(slots);
                self.ledger.give(DESCRIPTOR);
                Err(error)
            }
        }
    }

    /// Closes a descriptor. What was written through it is brought to the disk later, as by a Unix
    /// system.
    ///
    /// # Errors
    /// `BadDescriptor`.
    pub fn close(&self, number: u32) -> Result<(), Errno> {
        let mut slots = self.slots.lock();
        let number = number as usize;
        let slot = slots.all.get_mut(number).and_then(Option::take);
        if slot.is_some() {
            slots.first_free = slots.first_free.min(number);
        }
        // The lock is let go before the description is: that may be a call to a file system.
        drop(slots);
        drop(slot.ok_or(Errno::BadDescriptor)?);
        self.ledger.give(DESCRIPTOR);
        Ok(())
    }

    /// Closes all.
    pub fn close_all(&self) {
        let all = core::mem::take(&mut self.slots.lock().all);
        let count = all.iter().flatten().count();
        drop(all);
        self.ledger.give(count * DESCRIPTOR);
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        self.close_all();
    }
}

impl Slots {
    /// The lowest place that is free, made if need be.
    fn lowest_free(&mut self) -> Result<usize, Errno> {
        let from = self.first_free.min(self.all.len());
        let behind = self.all[from..].iter().position(Option::is_none);
        let free = behind.map_or(self.all.len(), |behind| from + behind);
        if free >= LIMIT {
            return Err(Errno::TooManyDescriptors);
        }
        if free == self.all.len() {
            self.all.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
            self.all.push(None);
        }
        Ok(free)
    }
}
