//! The descriptors of one process.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use interfaces::Errno;

use crate::description::Description;
use crate::system::System;

/// Most descriptors of a process.
const LIMIT: usize = 256;

type Slot = Option<Arc<Description>>;

/// Numbers and what they lead to.
pub struct Descriptors {
    slots: Mutex<Vec<Slot>>,
}

impl Descriptors {
    /// The first three.
    pub fn new(first: [Slot; 3]) -> Self {
        Descriptors {
            slots: Mutex::new(Vec::from(first)),
        }
    }

    /// What a descriptor leads to.
    ///
    /// # Errors
    /// `BadDescriptor`.
    pub fn get(&self, number: u32) -> Result<Arc<Description>, Errno> {
        let slots = self.slots.lock();
        let slot = slots.get(number as usize).and_then(|slot| slot.clone());
        slot.ok_or(Errno::BadDescriptor)
    }

    /// The lowest free number for a description.
    ///
    /// # Errors
    /// `TooManyDescriptors`; the description is let go.
    pub fn add(&self, description: Arc<Description>) -> Result<u32, Errno> {
        let mut slots = self.slots.lock();
        let free = slots
            .iter()
            .position(|slot| slot.is_none())
            .unwrap_or(slots.len());
        if free >= LIMIT {
            // The lock is let go before the description is: that may be a call to a file system.
            drop(slots);
            return Err(Errno::TooManyDescriptors);
        }
        if free == slots.len() {
            slots.push(None);
        }
        slots[free] = Some(description);
        // At most LIMIT, so it fits.
        Ok(free as u32)
    }

    /// Closes a descriptor.
    ///
    /// # Errors
    /// `BadDescriptor`; if it was the last, what bringing the file to the disk gave. It is closed anyway.
    pub fn close(&self, system: &System, number: u32) -> Result<(), Errno> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(number as usize).and_then(Option::take);
        drop(slots);
        finish(system, slot.ok_or(Errno::BadDescriptor)?)
    }

    /// Closes all. Errors have nobody left to go to.
    pub fn close_all(&self, system: &System) {
        let slots = core::mem::take(&mut *self.slots.lock());
        for description in slots.into_iter().flatten() {
            let _ = finish(system, description);
        }
    }
}

/// Lets go of a description, and finishes it if this was the last.
fn finish(system: &System, description: Arc<Description>) -> Result<(), Errno> {
    match Arc::into_inner(description) {
        Some(last) => last.finish(system),
        None => Ok(()),
    }
}
