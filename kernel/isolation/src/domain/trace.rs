//! The ring of events from which a time line is made, outside of the system: who called whom, what
//! threads and interrupts did, who died and who came. [`abi::events`] has its form.
//!
//! Whoever runs the machine reads its memory, and sees by [`WRITTEN`] for how many events they came
//! too late. Inside the system, [`calls`] copies what is noted of calls, and nothing else. Off, a
//! switch of threads and an interrupt test one word, and calls pay nothing
//! ([`count`](crate::call::count)).
//!
//! Writers take no lock, since interrupts write, too: a reader looks afterwards whether what it has
//! copied may have been written over meanwhile. Of a thread that is moved to another processor
//! while it writes, an event may name the wrong one of the two; those of the scheduler and of
//! interrupts are right, since interrupts are off then, and say where the thread was.

use super::times::{place, word};
use super::{ControlBlock, next};
use crate::memory::late::Late;
use crate::platform::{PAGE, platform};
use abi::events::{CALL, EVENT_BYTES, EVENTS, RETURN, STATE};
use abi::words::STACK_LOW;
use core::iter::repeat;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64, fence};
use interfaces::{CallEvent, DomainState as State};

/// What stands in the ring.
pub(crate) struct Event([AtomicU64; EVENT_BYTES / 8]);

/// From the first time that tracing is switched on. The reader outside knows this and the next by
/// their names.
// SAFETY: zeros are an event.
pub(crate) static RING: Late<Event, EVENTS> = unsafe { Late::new() };

/// How many events were ever begun.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Events behind one that is being written, after which that is not waited for any more: whoever
/// wrote it has died of it.
const PATIENCE: u64 = EVENTS as u64 / 4;

/// Has events be noted from now on, and what the platform tells `watcher`; or nothing more. There
/// is a ring.
pub(crate) fn switch(on: bool, watcher: Option<fn(u32, u64)>) {
    IS_ON.store(on, Release);
    platform().watch(watcher);
}

/// Notes all domains as they are.
pub(crate) fn note_states() {
    let mut from = 0;
    while let Some(block) = next(from) {
        from = block.id + 1;
        note_state(&block, block.state());
    }
}

/// Notes an event of the running thread, if that is wanted: its kind with something small in the
/// upper half, one domain and another, which the kind names. The time; not 0.
pub(crate) fn note(what: u32, who: [u32; 2], value: u64, text: impl Iterator<Item = u64>) -> u64 {
    let time = platform().now() | 1;
    if IS_ON.load(Acquire) {
        let domains = u64::from(who[0]) | u64::from(who[1]) << 32;
        let number = WRITTEN.fetch_add(1, Relaxed) as usize;
        // Who reads something of what follows finds that number taken.
        fence(Release);
        let here =
            place() << 4 | ((number / EVENTS) & 0xff) << 8 | (word::<STACK_LOW>() / PAGE) << 32;
        let Event([head, rest @ ..]) = &RING.get()[number % EVENTS];
        let words = [time, domains, value].into_iter().chain(text);
        for (to, word) in rest.iter().zip(words.chain(repeat(0))) {
            to.store(word, Relaxed);
        }
        head.store(u64::from(what) | here as u64, Release);
    }
    time
}

/// Notes that a domain enters `state`, or is in it.
pub(crate) fn note_state(block: &ControlBlock, state: State) {
    // A caller waits for its error meanwhile, and to read the clock takes a while.
    if !IS_ON.load(Acquire) {
        return;
    }
    let what = STATE | u32::from(state.number()) << 16 | u32::from(block.reason().number()) << 24;
    let name = block.name();
    let letters = name.as_str().as_bytes().chunks(8);
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rfold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    note(what, [0, block.id], block.parent.into(), letters.map(word));
}

/// How many events were ever begun.
pub(crate) fn written() -> u64 {
    WRITTEN.load(Acquire)
}

/// Copies what events from number `from` on say of calls of domain `id`, or to it, into `room`, as
/// much as there is room for. How much that is; the number of the event behind it; and how many
/// events, of whatever kind, came and went before they could be looked at.
pub(crate) fn calls(from: u64, id: u32, room: &mut [CallEvent]) -> (usize, u64, u64) {
    let ring = RING.get();
    let end = if ring.is_empty() { 0 } else { written() };
    let mut next = from.max(end.saturating_sub(EVENTS as u64)).min(end);
    let (mut count, mut lost) = (0, next.saturating_sub(from));
    while next < end && count < room.len() {
        match ring[next as usize % EVENTS].copy(next) {
            Some((kind, call)) => {
                if matches!(kind, CALL | RETURN) && [call.caller, call.callee].contains(&id) {
                    room[count] = call;
                    count += 1;
                }
            }
            // Somebody is about to write it.
            None if written() - next < PATIENCE => break,
            None => lost += 1,
        }
        next += 1;
    }
    (count, next, lost)
}

impl Event {
    /// Its kind and what it says if it is of a call; `None` where not all of event `number` is
    /// there: not yet, or not any more.
    fn copy(&self, number: u64) -> Option<(u32, CallEvent)> {
        let words = self.0.each_ref().map(|word| word.load(Acquire));
        // Before this, so that the number of whoever has written over it is seen.
        fence(Acquire);
        let [head, time, domains, value, arguments @ ..] = words;
        let lap = (number / EVENTS as u64) & 0xff;
        let is_whole = head >> 8 & 0xff == lap && written() <= number + EVENTS as u64;
        let (kind, small) = (head as u32 & 0xf, (head >> 16) as u32 & 0xffff);
        let is_return = kind == RETURN;
        let call = CallEvent {
            time,
            begun: if is_return { value } else { 0 },
            caller: domains as u32,
            callee: (domains >> 32) as u32,
            interface: if is_return { 0 } else { value },
            method: if is_return { 0 } else { small },
            failed: is_return && small != 0,
            arguments,
        };
        (head != 0 && is_whole).then_some((kind, call))
    }
}
