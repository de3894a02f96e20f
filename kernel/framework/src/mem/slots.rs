//! The metadata [`Slot`] of every frame.
//!
//! The slots of one 2 MiB section fill one page, which is written when the first frame of the
//! section is claimed, so that boot does not depend on the size of memory.

use core::sync::atomic::{AtomicU8, Ordering};

use buddy::SECTION_PAGES;

use super::PAGE_SIZE;
use super::map::{MemoryMap, Range};
use super::meta::Slot;
use crate::sync::{IrqOff, Once};

/// Section states.
const UNTOUCHED: u8 = 0;
const PREPARING: u8 = 1;
const READY: u8 = 2;

/// All metadata; set up once at boot, before other processors run.
struct Tables {
    /// One page of slots for each section.
    slots: usize,
    states: &'static [AtomicU8],
    /// Frames that the allocator owns; all others are reserved.
    owned: MemoryMap,
}

static TABLES: Once<Tables> = Once::new();

/// A section of which nobody has asked yet.
pub(super) const fn untouched() -> AtomicU8 {
    AtomicU8::new(UNTOUCHED)
}

/// Sets up the slots. Runs once, at boot.
///
/// # Safety
/// At address `slots` lie as many pages as there are `states`, in a row, mapped for ever and nobody
/// else's. All states are [`untouched`].
pub(super) unsafe fn init(slots: usize, states: &'static [AtomicU8], owned: MemoryMap) {
    let tables = Tables {
        slots,
        states,
        owned,
    };
    TABLES.call_once(|| tables);
}

/// How many sections there are.
pub(super) fn sections() -> usize {
    tables().states.len()
}

#[inline]
fn tables() -> &'static Tables {
    TABLES
        .get()
        .expect("memory is set up before frames are used")
}

/// The slot of a frame; `None` if the number is beyond memory.
#[inline]
pub(super) fn slot(frame: usize) -> Option<&'static Slot> {
    let tables = tables();
    let section = frame / SECTION_PAGES;
    let state = tables.states.get(section)?;
    if state.load(Ordering::Acquire) != READY {
        prepare(tables, section, state);
    }
    Some(slot_in_ready_section(tables, frame))
}

/// The slots of so many frames in a row; `None` if one of them is beyond memory.
pub(super) fn row(first: usize, count: usize) -> Option<&'static [Slot]> {
    let tables = tables();
    let end = first.checked_add(count)?;
    let sections = first / SECTION_PAGES..end.div_ceil(SECTION_PAGES);
    for (section, state) in sections.clone().zip(tables.states.get(sections)?) {
        if state.load(Ordering::Acquire) != READY {
            prepare(tables, section, state);
        }
    }
    let start = (tables.slots + first * core::mem::size_of::<Slot>()) as *const Slot;
    // SAFETY: as in `slot_in_ready_section`; the slots of one section fill a page, the pages lie in
    // a row, and all of these sections were prepared.
    Some(unsafe { core::slice::from_raw_parts(start, count) })
}

/// The slot of a frame whose section's slots have been written.
#[inline]
fn slot_in_ready_section(tables: &'static Tables, frame: usize) -> &'static Slot {
    // SAFETY: the caller of `init` took a page for each section's slots; the section was prepared,
    // so the slot is initialised, and it is only ever accessed as an atomic.
    unsafe { &*((tables.slots + frame * core::mem::size_of::<Slot>()) as *const Slot) }
}

/// Writes the slots of a section, or waits for the processor that does. Interrupts are off
/// meanwhile: a thread that lost its processor here would be waited for by others that hold the
/// locks of the heap, with interrupts off on all processors, so it would never get one again.
#[cold]
fn prepare(tables: &'static Tables, section: usize, state: &AtomicU8) {
    let _irq = IrqOff::new();
    if state
        .compare_exchange(UNTOUCHED, PREPARING, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        while state.load(Ordering::Acquire) != READY {
            core::hint::spin_loop();
        }
        return;
    }
    let first = section * SECTION_PAGES;
    let at = |frame: usize| (frame * PAGE_SIZE) as u64;
    let whole = Range {
        start: at(first),
        end: at(first + SECTION_PAGES),
    };
    let all_owned = tables.owned.contains(&whole);
    for frame in first..first + SECTION_PAGES {
        let range = Range {
            start: at(frame),
            end: at(frame + 1),
        };
        let value = if all_owned || tables.owned.contains(&range) {
            Slot::unused()
        } else {
            Slot::reserved()
        };
        let address = tables.slots + frame * core::mem::size_of::<Slot>();
        // SAFETY: the page of this section's slots is ours alone in state PREPARING.
        unsafe { (address as *mut Slot).write(value) };
    }
    state.store(READY, Ordering::Release);
}
