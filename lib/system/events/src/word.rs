//! Words: what many events count in, and one wait is for.

use crate::ready::{Plan, Raised, Ready, Rings, room};
use crate::{Bell, CHUNK_BYTES, Kit, Locked, NotBound, Slept, Step};
use alloc::sync::Arc;

/// The most events that are told with the lock held once.
const AT_ONCE: usize = 32;

/// An event that was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fired {
    /// What it was bound as.
    pub tag: u64,
    /// What there is to tell.
    pub raised: Raised,
}

/// What events count in.
pub struct Word<K: Kit> {
    /// `None`: nobody will wait any more.
    ready: K::Lock<Option<Ready<K::Payment>>>,
    bell: K::Bell,
    _payment: K::Payment,
}

/// The right to wait. Its end is the word's: slots are freed, and events that are still bound count
/// in vain until they are bound again.
pub struct WordOwner<K: Kit>(Arc<Word<K>>);

impl<K: Kit> WordOwner<K> {
    /// A word that nothing is bound to.
    pub fn new(payment: K::Payment) -> Self {
        WordOwner(Arc::new(Word {
            ready: K::Lock::new(Some(Ready::new())),
            bell: K::Bell::new(),
            _payment: payment,
        }))
    }

    /// What events are bound to.
    pub fn word(&self) -> &Arc<Word<K>> {
        &self.0
    }
}

impl<K: Kit> Drop for WordOwner<K> {
    fn drop(&mut self) {
        let ready = self.0.ready.with(Option::take);
        drop(ready);
    }
}

impl<K: Kit> Word<K> {
    /// Has at least one slot free, for a moment.
    pub(crate) fn make_room(
        &self,
        pay: &dyn Fn(usize) -> Option<K::Payment>,
    ) -> Result<(), NotBound> {
        loop {
            let plan = self.ready.with(|ready| ready.as_ref().map(Ready::plan));
            let chunks = match plan {
                None => return Err(NotBound::Closed),
                Some(Plan::Full) => return Err(NotBound::Full),
                Some(Plan::Fits) => return Ok(()),
                Some(Plan::Grow(chunks)) => chunks,
            };
            let payment = pay(CHUNK_BYTES).ok_or(NotBound::NoMemory)?;
            let mut more = room(chunks, payment).ok_or(NotBound::NoMemory)?;
            self.ready.with(|ready| {
                if let Some(ready) = ready {
                    ready.extend(&mut more);
                }
            });
        }
    }

    /// A slot; `None` if none is free.
    pub(crate) fn bind(&self, tag: u64, raised: Raised) -> Option<u32> {
        let bound = self.ready.with(|ready| ready.as_mut()?.bind(tag, raised));
        let (slot, rings) = bound?;
        self.told(rings);
        Some(slot)
    }

    fn told(&self, rings: Rings) {
        if rings == Rings::Yes && !K::breaks(Step::FirstRings) {
            self.bell.ring();
        }
    }

    /// Changes the slots, if there still are any; rings if need be.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Ready<K::Payment>) -> Rings) {
        let rings = self.ready.with(|ready| ready.as_mut().map(change));
        self.told(rings.unwrap_or(Rings::No));
    }

    /// Asks the slots, if there still are any.
    pub(crate) fn ask<R>(&self, ask: impl FnOnce(&mut Ready<K::Payment>) -> R) -> Option<R> {
        self.ready.with(|ready| ready.as_mut().map(ask))
    }

    /// Gives `put` the events that were raised, `room` at most and in their order; how many.
    pub fn take(&self, room: usize, put: &mut dyn FnMut(Fired)) -> usize {
        let mut count = 0;
        while count < room {
            let most = (room - count).min(AT_ONCE);
            let told = self.ask(|ready| {
                let fired = core::iter::from_fn(|| ready.next()).take(most);
                fired
                    .map(|(tag, raised)| put(Fired { tag, raised }))
                    .count()
            });
            count += told.unwrap_or(0);
            if told != Some(most) {
                break;
            }
        }
        self.leave();
        count
    }

    /// What is left behind is the next one's.
    fn leave(&self) {
        let left = self.ask(|ready| !ready.is_empty()).unwrap_or(false);
        if left && !K::breaks(Step::LeaverWakes) {
            self.bell.wake_another();
        }
    }

    /// As [`take`](Self::take), but waits for an event, until `deadline` at most. `None`: who waits
    /// is to go, and nothing was taken.
    pub fn wait(
        &self,
        deadline: Option<u64>,
        room: usize,
        put: &mut dyn FnMut(Fired),
    ) -> Option<usize> {
        loop {
            let mut seen = self.bell.rings();
            let count = self.take(room, put);
            if count > 0 || room == 0 {
                return Some(count);
            }
            if K::breaks(Step::RingsBeforeLook) {
                seen = self.bell.rings();
            }
            match self.bell.wait(seen, deadline) {
                Slept::Woken => {}
                Slept::TimedOut => return Some(self.take(room, put)),
                Slept::Interrupted => {
                    self.leave();
                    return None;
                }
            }
        }
    }
}
