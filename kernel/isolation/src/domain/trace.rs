//! The ring of events from which a time line is made, outside of the system: who called whom, what
//! threads and interrupts did, who died and who came. [`abi::events`] has its form.
//!
//! Nothing in the system reads it: whoever runs the machine reads its memory, and sees by
//! [`WRITTEN`] for how many events they came too late. Off, a switch of threads and an interrupt
//! test one word, and calls pay nothing ([`count`](crate::call::count)).
//!
//! Writers take no lock, since interrupts write, too. Of a thread that is moved to another
//! processor while it writes, an event may name the wrong one of the two; those of the scheduler
//! and of interrupts are right, since interrupts are off then, and say where the thread was.

use super::times::{place, word};
use super::{ControlBlock, next};
use crate::platform::{PAGE, platform};
use abi::events::{EVENT_BYTES, EVENTS, STATE};
use abi::words::STACK_LOW;
use core::iter::repeat;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64};
use interfaces::DomainState as State;

/// What stands in the ring.
#[repr(C)]
pub(crate) struct Event {
    head: AtomicU64,
    words: [AtomicU64; 3],
    text: [AtomicU8; 32],
}

/// [`EVENTS`] of them, from the first time that tracing is switched on, for good. The reader knows
/// this and the next by their names.
pub(crate) static RING: AtomicPtr<Event> = AtomicPtr::new(null_mut());
pub(crate) const PAGES: usize = (EVENTS * size_of::<Event>()).div_ceil(PAGE);
const _: () = assert!(size_of::<Event>() == EVENT_BYTES);

/// How many events were ever begun.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Has events be noted from now on, all domains at once, and what the platform tells `watcher`; or
/// nothing more. There is a ring.
pub(crate) fn switch(on: bool, watcher: fn(u32, u64)) {
    IS_ON.store(on, Relaxed);
    platform().watch(on.then_some(watcher));
    let mut from = 0;
    while let Some(block) = next(from) {
        from = block.id + 1;
        note_state(&block, block.state());
    }
}

/// Notes an event of the running thread, if that is wanted: its kind with something small in the
/// upper half, one domain and another, which the kind names. The time; not 0.
pub(crate) fn note(what: u32, who: [u32; 2], value: u64, text: impl Iterator<Item = u8>) -> u64 {
    let time = platform().now() | 1;
    if IS_ON.load(Relaxed) {
        let domains = u64::from(who[0]) | u64::from(who[1]) << 32;
        let number = WRITTEN.fetch_add(1, Relaxed) as usize;
        let here =
            place() << 4 | ((number / EVENTS) & 0xff) << 8 | (word::<STACK_LOW>() / PAGE) << 32;
        // SAFETY: there are so many of them, and they are never given back.
        let event = unsafe { &*RING.load(Acquire).add(number % EVENTS) };
        for (to, word) in event.words.iter().zip([time, domains, value]) {
            to.store(word, Relaxed);
        }
        for (to, byte) in event.text.iter().zip(text.chain(repeat(0))) {
            to.store(byte, Relaxed);
        }
        event.head.store(u64::from(what) | here as u64, Release);
    }
    time
}

/// Notes that a domain enters `state`, or is in it.
pub(crate) fn note_state(block: &ControlBlock, state: State) {
    let what = STATE | u32::from(state.number()) << 16 | u32::from(block.reason().number()) << 24;
    let name = block.name();
    note(
        what,
        [0, block.id],
        block.parent.into(),
        name.as_str().bytes(),
    );
}
