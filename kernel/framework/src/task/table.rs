//! The table of living threads: look-up by id, and a visit of all.
//!
//! An id is a slot number (low 16 bits) and the slot's generation, which grows with each use, so
//! ids are never used again. Slots are made up to the greatest number of threads that ever lived.

use alloc::vec::Vec;

use super::thread::{ThreadId, ThreadRef};
use crate::mem::NoMemory;
use crate::sync::SpinLock;

const SLOT_BITS: u32 = 16;
const MAX_SLOTS: usize = 1 << SLOT_BITS;
/// Slots that are searched with the table locked once.
const SLOTS_AT_ONCE: usize = 512;
/// Slots made by the first thread, so that ordinary use never grows the table.
const FIRST_SLOTS: usize = 1024;

struct Slot {
    generation: u64,
    thread: Option<ThreadRef>,
    /// The next free slot, while this one is free.
    next_free: usize,
}

struct Table {
    slots: Vec<Slot>,
    first_free: usize,
    /// No slot from here on was ever in use.
    end: usize,
    count: usize,
}

static TABLE: SpinLock<Table> = SpinLock::new(Table {
    slots: Vec::new(),
    first_free: usize::MAX,
    end: 0,
    count: 0,
});

/// Reserves a slot and returns the id that goes with it; [`insert`] or [`release`] must follow.
pub(super) fn reserve() -> Result<ThreadId, NoMemory> {
    let mut table = TABLE.lock();
    if table.first_free == usize::MAX {
        table.grow()?;
    }
    let index = table.first_free;
    let slot = &mut table.slots[index];
    slot.generation += 1;
    let id = ThreadId(slot.generation << SLOT_BITS | index as u64);
    table.first_free = table.slots[index].next_free;
    table.end = table.end.max(index + 1);
    table.count += 1;
    Ok(id)
}

/// Fills the slot reserved for the thread's id.
pub(super) fn insert(thread: ThreadRef) {
    let mut table = TABLE.lock();
    let index = index_of(thread.id());
    table.slots[index].thread = Some(thread);
}

/// Empties the slot of `id`.
pub(super) fn release(id: ThreadId) -> Option<ThreadRef> {
    let mut table = TABLE.lock();
    let index = index_of(id);
    let thread = table.slots[index].thread.take();
    table.slots[index].next_free = table.first_free;
    table.first_free = index;
    table.count -= 1;
    thread
}

/// The living thread with this id.
pub(super) fn find(id: ThreadId) -> Option<ThreadRef> {
    let table = TABLE.lock();
    let slot = table.slots.get(index_of(id))?;
    slot.thread
        .as_ref()
        .filter(|thread| thread.id() == id)
        .cloned()
}

/// Puts living threads that are `wanted` into `found`, as many as find room, from slot `from` on;
/// the slot to go on from, if there are more. Looks at so many slots at the most that interrupts
/// are not off for long.
pub(super) fn find_some(
    from: usize,
    wanted: impl Fn(&ThreadRef) -> bool,
    found: &mut [Option<ThreadRef>],
) -> Option<usize> {
    let table = TABLE.lock();
    let end = table.end.min(from + SLOTS_AT_ONCE);
    let mut room = found.iter_mut();
    let mut place = room.next();
    for index in from..end {
        let thread = table.slots[index].thread.as_ref();
        let Some(thread) = thread.filter(|thread| wanted(thread)) else {
            continue;
        };
        let Some(to) = place else {
            return Some(index);
        };
        *to = Some(thread.clone());
        place = room.next();
    }
    (end < table.end).then_some(end)
}

/// Number of slots in use.
pub(super) fn count() -> usize {
    TABLE.lock().count
}

/// Calls `visit` for every living thread, with the table locked and interrupts off: `visit` must
/// neither make, end nor look up threads.
pub fn for_each(mut visit: impl FnMut(&ThreadRef)) {
    let table = TABLE.lock();
    table.slots[..table.end]
        .iter()
        .filter_map(|slot| slot.thread.as_ref())
        .for_each(&mut visit);
}

fn index_of(id: ThreadId) -> usize {
    id.0 as usize & (MAX_SLOTS - 1)
}

impl Table {
    /// Doubles the number of slots.
    fn grow(&mut self) -> Result<(), NoMemory> {
        let old = self.slots.len();
        let new = (old * 2).clamp(FIRST_SLOTS, MAX_SLOTS);
        if new == old {
            return Err(NoMemory);
        }
        self.slots
            .try_reserve_exact(new - old)
            .map_err(|_| NoMemory)?;
        for index in old..new {
            let next_free = if index + 1 == new {
                usize::MAX
            } else {
                index + 1
            };
            self.slots.push(Slot {
                generation: 0,
                thread: None,
                next_free,
            });
        }
        self.first_free = old;
        Ok(())
    }
}
