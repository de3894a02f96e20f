//! Memory objects of others, in slots of the queue while requests name them.
//!
//! A slot belongs to whoever took it until the queue has given it back. If a thread is interrupted
//! while its requests are under way the queue does not; then the slot is *left*, and whoever wants
//! one tries to have it given back. A new queue has nothing in its slots.

use alloc::sync::Arc;

use ext2::DeviceError;
use interfaces::{BlockQueue, Handle, QueueError, VmoView};

use super::{Line, SLOT};
use crate::errors::failure;

/// The most slots for others, behind that of the staging memory.
const MOST: u32 = 31;

/// Slots by number, as bits.
#[derive(Default)]
pub struct Guests {
    taken: u32,
    /// Of those that are taken, the ones that nobody has any more.
    left: u32,
}

impl Guests {
    /// A slot of a queue with so many.
    fn take(&mut self, slots: u32) -> Option<u32> {
        let end = slots.min(SLOT + 1 + MOST);
        let slot = (SLOT + 1..end).find(|slot| self.taken & 1 << slot == 0)?;
        self.taken |= 1 << slot;
        Some(slot)
    }

    fn give_back(&mut self, slot: u32) {
        self.taken &= !(1 << slot);
    }

    /// There is a new queue.
    pub fn begin_life(&mut self) {
        self.taken &= !self.left;
        self.left = 0;
    }
}

/// A memory object in a slot, until it is dropped.
pub struct Guest<'a> {
    line: &'a Line,
    queue: Arc<Handle<dyn BlockQueue>>,
    pub slot: u32,
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let is_in_use = matches!(
            self.queue.unregister(self.slot),
            Err(QueueError::InUse | QueueError::Rpc(_))
        );
        let mut state = self.line.state.lock();
        let is_this = state.queue.as_ref();
        let is_this = is_this.is_some_and(|queue| Arc::ptr_eq(queue, &self.queue));
        match is_in_use && is_this {
            true => state.guests.left |= 1 << self.slot,
            false => state.guests.give_back(self.slot),
        }
        drop(state);
        self.line.changed.notify_all();
    }
}

impl Line {
    /// Puts a memory object into a slot. Waits for one if all are taken.
    ///
    /// # Errors
    /// There is no queue to be had; this thread is ended; no memory.
    pub fn guest(&self, view: Handle<dyn VmoView>) -> Result<Guest<'_>, DeviceError> {
        let mut has_tried = false;
        let guest = loop {
            let mut state = self.ready()?;
            let queue = state.queue.clone().ok_or(DeviceError::Unavailable)?;
            if !has_tried && state.guests.left != 0 {
                has_tried = true;
                let left = core::mem::take(&mut state.guests.left);
                drop(state);
                self.have_back(&queue, left);
                continue;
            }
            let slots = state.limits.slots;
            if let Some(slot) = state.guests.take(slots) {
                let line = self;
                break Guest { line, queue, slot };
            }
            has_tried = false;
            drop(self.progress(state)?);
        };
        let registered = guest.queue.register(guest.slot, view);
        registered.map_err(|error| failure(&error))?;
        Ok(guest)
    }

    /// Tries to have slots given back that were left.
    fn have_back(&self, queue: &Handle<dyn BlockQueue>, left: u32) {
        for slot in (SLOT + 1..=SLOT + MOST).filter(|slot| left & 1 << slot != 0) {
            let back = queue.unregister(slot);
            let mut state = self.state.lock();
            match back {
                Err(QueueError::InUse | QueueError::Rpc(_)) => state.guests.left |= 1 << slot,
                _ => state.guests.give_back(slot),
            }
        }
    }
}
