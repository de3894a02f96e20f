//! The events of the lives of domains: the last ones are kept, and can be waited for.

use super::ControlBlock;
use super::trace::note_state;
use crate::lock::Lock;
use crate::platform::{WaitResult, platform, wait};
use crate::sync::{AtomicU32, AtomicU64};
use abi::{RpcError, Text};
use alloc::collections::VecDeque;
use core::sync::atomic::Ordering;
use interfaces::{CrashReason as Reason, DomainState as State};

/// Something that happened to a domain.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Consecutive number, from 1.
    pub number: u64,
    /// The instance.
    pub id: u32,
    /// Its name.
    pub name: Text<32>,
    /// The state it entered.
    pub state: State,
    /// Why it ended, if it did.
    pub reason: Reason,
}

/// Events that are kept.
const KEPT_EVENTS: usize = 256;

static EVENTS: Lock<VecDeque<Event>> = Lock::new(VecDeque::new());

static EVENT_COUNT: AtomicU32 = AtomicU32::new(0);

static EVENT_NUMBER: AtomicU64 = AtomicU64::new(0);

pub(super) fn announce(block: &ControlBlock, state: State) {
    note_state(block, state);
    let mut events = EVENTS.lock();
    if events.len() == KEPT_EVENTS {
        events.pop_front();
    }
    let number = EVENT_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    events.push_back(Event {
        number,
        id: block.id,
        name: block.name,
        state,
        reason: block.reason(),
    });
    EVENT_COUNT.store(number as u32, Ordering::Release);
    drop(events);
    platform().wake(&EVENT_COUNT, u32::MAX);
}

/// Blocks until an event with a number above `after` has happened; the oldest such that is kept.
///
/// # Errors
/// [`RpcError::Interrupted`] if a domain that waits here dies meanwhile.
pub fn wait_event(after: u64) -> Result<Event, RpcError> {
    loop {
        let seen = EVENT_COUNT.load(Ordering::Acquire);
        if let Some(event) = next_of(&EVENTS.lock(), after) {
            return Ok(event);
        }
        if wait(&EVENT_COUNT, seen, None) == WaitResult::Interrupted {
            return Err(RpcError::Interrupted);
        }
    }
}

/// The oldest of these with a number above `after`. Their numbers are consecutive.
fn next_of(events: &VecDeque<Event>, after: u64) -> Option<Event> {
    let first = events.front()?.number;
    let index = after.saturating_add(1).saturating_sub(first);
    events.get(usize::try_from(index).ok()?).copied()
}

/// Reserves the memory for events, so that a death needs none.
pub(crate) fn prepare_events() {
    EVENTS.lock().reserve(KEPT_EVENTS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_event_is_found_by_its_number() {
        let event = |number| Event {
            number,
            id: 7,
            name: Text::new("some"),
            state: State::Running,
            reason: Reason::None,
        };
        let events: VecDeque<_> = (11..=20).map(event).collect();
        let next = |after| next_of(&events, after).map(|event| event.number);
        assert_eq!([next(0), next(9), next(10)], [Some(11); 3]);
        assert_eq!((next(11), next(19)), (Some(12), Some(20)));
        assert_eq!([next(20), next(21), next(u64::MAX)], [None; 3]);
        assert!(next_of(&VecDeque::new(), 0).is_none());
    }
}
