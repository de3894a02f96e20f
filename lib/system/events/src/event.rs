//! Events: who raises them, and who learns of it.

use crate::ready::{Raised, Ready};
use crate::word::Word;
use crate::{Kit, Locked, Step};
use alloc::sync::Arc;
use core::mem::take;
use core::num::NonZeroU64;

/// Why an event was not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBound {
    /// It is bound already.
    Bound,
    /// As many events are bound to the word as may be.
    Full,
    /// Nobody can wait for the word any more.
    Closed,
    /// There is no memory, or nobody pays for it.
    NoMemory,
}

struct State<K: Kit> {
    /// What there is to tell while it is not bound.
    raised: Raised,
    bound: Option<(Arc<Word<K>>, u32)>,
}

struct Event<K: Kit> {
    state: K::Lock<State<K>>,
    _payment: K::Payment,
}

/// The right to raise an event. With the last one of it the event ends, and who waits learns that.
pub struct Raiser<K: Kit>(Arc<Event<K>>);

/// The right to learn of it. Its end is that of the event's binding.
pub struct Waiter<K: Kit>(Arc<Event<K>>);

/// A new event, which is not bound.
pub fn event<K: Kit>(payment: K::Payment) -> (Raiser<K>, Waiter<K>) {
    let event = Arc::new(Event {
        state: K::Lock::new(State {
            raised: Raised::default(),
            bound: None,
        }),
        _payment: payment,
    });
    (Raiser(event.clone()), Waiter(event))
}

impl<K: Kit> Raiser<K> {
    /// Counts one more, and wakes who waits. Allocates and frees nothing, waits for nobody, and
    /// takes as long for one event as for one of many. May be called with interrupts off.
    pub fn raise(&self) {
        self.raise_times(NonZeroU64::MIN);
    }

    /// As [`raise`](Self::raise), but counts so many at once.
    pub fn raise_times(&self, times: NonZeroU64) {
        self.0.state.with(|state| match &state.bound {
            Some((word, slot)) => word.change(|ready| ready.raise(*slot, times)),
            None => state.raised.count = state.raised.count.saturating_add(times.get()),
        });
    }
}

impl<K: Kit> Drop for Raiser<K> {
    fn drop(&mut self) {
        self.0.state.with(|state| match &state.bound {
            Some((word, slot)) => word.change(|ready| ready.end(*slot)),
            None => state.raised.ended = true,
        });
    }
}

impl<K: Kit> Waiter<K> {
    /// Has the event count in `word` from now on, under `tag`. What it has counted so far counts
    /// there. `pay` pays for so many bytes.
    ///
    /// # Errors
    /// See [`NotBound`]; nothing is changed then.
    pub fn bind(
        &self,
        word: &Arc<Word<K>>,
        tag: u64,
        pay: &dyn Fn(usize) -> Option<K::Payment>,
    ) -> Result<(), NotBound> {
        if self.is_bound() {
            return Err(NotBound::Bound);
        }
        // The room may be another's when it is to be used.
        loop {
            word.make_room(pay)?;
            let bound = self.0.state.with(|state| {
                if state.bound.is_some() {
                    return Err(NotBound::Bound);
                }
                let Some(slot) = word.bind(tag, state.raised) else {
                    return Ok(false);
                };
                state.raised = Raised::default();
                state.bound = Some((word.clone(), slot));
                Ok(true)
            });
            if bound? {
                return Ok(());
            }
        }
    }

    /// Whether it is bound to a word that can be waited for. What is left of a binding to another
    /// is taken away.
    fn is_bound(&self) -> bool {
        let old = self.0.state.with(|state| {
            let (word, _) = state.bound.as_ref()?;
            match word.ask(|_| ()) {
                Some(()) => Some(None),
                None => Some(state.bound.take()),
            }
        });
        matches!(old, Some(None))
    }

    /// Has it count in itself again. What it has counted and nobody was told goes with it. Whether
    /// it was bound.
    pub fn unbind(&self) -> bool {
        let old = self.0.state.with(|state| {
            let (word, slot) = state.bound.take()?;
            let raised = word.ask(|ready| ready.unbind(slot)).unwrap_or_default();
            if !K::breaks(Step::CountReturns) {
                state.raised = raised;
            }
            Some(word)
        });
        old.is_some()
    }

    /// Takes what there is to tell. A wait does not tell it any more.
    pub fn take(&self) -> Raised {
        self.0.state.with(|state| match &state.bound {
            Some((word, slot)) => word
                .ask(|ready: &mut Ready<K::Payment>| ready.take(*slot))
                .unwrap_or_default(),
            None => take(&mut state.raised),
        })
    }
}

impl<K: Kit> Drop for Waiter<K> {
    fn drop(&mut self) {
        self.unbind();
    }
}
