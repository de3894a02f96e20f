//! The buffer cache: copies of blocks, clean ones in order of last use, dirty ones in sets by kind
//! and sorted by number, so that they can be written in a safe order and in runs.
//!
//! The budget bounds the cache: a new block evicts the least recently used clean ones.
//! Dirty blocks are never evicted; the store writes them out before they grow beyond their share.
//! The newest `reserve` clean blocks are never evicted either, so a block that was just loaded
//! is there when its loader looks.
//!
//! Blocks may be read from the device while others use the cache (see `absent`): it knows which,
//! and what is done meanwhile to one of them makes what was read old.
//!
//! While memory is short the cache is as if it had been made for [`SHORT_CAPACITY`] blocks.

mod undo;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use undo::{Change, Undo};

/// The budget in blocks while memory is short.
const SHORT_CAPACITY: usize = 32;

/// What a dirty block is, in the order in which blocks are written (see `writeback`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The content of a file.
    Data,
    /// A bitmap of blocks or inodes.
    Bitmap,
    /// An indirect block, attributes, or a fresh directory block that nothing on disk points at
    /// yet.
    Map,
    /// A part of an inode table.
    Inode,
    /// A directory block.
    Directory,
    /// The superblock and the group descriptors: counters only.
    Counters,
    /// Metadata whose newest content is in the journal.
    Logged,
    /// Metadata whose newest content is being written to the journal.
    Writing,
}

impl Kind {
    /// All kinds of metadata that is not in a journal, in the order of writing.
    pub(crate) const METADATA: [Kind; 5] = [
        Kind::Bitmap,
        Kind::Map,
        Kind::Inode,
        Kind::Directory,
        Kind::Counters,
    ];
    const COUNT: usize = 8;
}

/// Most blocks that are read together outside of the lock: a bit for each that is old.
const MOST_READ: u32 = 64;

/// Blocks that are being read.
#[derive(Debug)]
pub(crate) struct Reading {
    number: u64,
    first: u32,
    count: u32,
}

impl Reading {
    /// Their numbers.
    pub(crate) fn blocks(&self) -> Range<u32> {
        self.first..self.first + self.count
    }
}

/// What the cache knows of a [`Reading`].
struct UnderWay {
    number: u64,
    blocks: Range<u32>,
    /// A bit for each block that something was done to.
    old: u64,
}

const NONE: usize = usize::MAX;
/// The block of a slot that has none.
const NO_BLOCK: u32 = u32::MAX;
/// Slots that are found without the index.
const NEAR: usize = 64;

/// Where a block is, until the cache is changed.
#[derive(Clone, Copy)]
pub(crate) struct Place(usize);

/// One cached block. `newer` and `older` link the clean slots in order of last use; `older` alone
/// those that are not used.
struct Slot {
    block: u32,
    data: Box<[u8]>,
    dirty: Option<Kind>,
    /// It is part of a set of changes, see `undo`.
    change: Change,
    newer: usize,
    older: usize,
}

/// The cache. See the module's text.
pub(crate) struct Cache {
    slots: Vec<Slot>,
    /// A slot that is not used.
    unused: usize,
    index: BTreeMap<u32, usize>,
    /// By the block's number, the slot that was found last. An operation looks for the same few
    /// blocks again and again.
    near: [Cell<usize>; NEAR],
    newest: usize,
    oldest: usize,
    clean: usize,
    dirty: [BTreeSet<u32>; Kind::COUNT],
    capacity: usize,
    is_short: fn() -> bool,
    readings: Vec<UnderWay>,
    next_reading: u64,
    undo: Undo,
}

impl Cache {
    /// An empty cache for `capacity` blocks, or for few while memory `is_short`.
    pub(crate) fn new(capacity: usize, is_short: fn() -> bool) -> Self {
        Cache {
            slots: Vec::new(),
            unused: NONE,
            index: BTreeMap::new(),
            near: [const { Cell::new(NONE) }; NEAR],
            newest: NONE,
            oldest: NONE,
            clean: 0,
            dirty: core::array::from_fn(|_| BTreeSet::new()),
            capacity,
            is_short,
            readings: Vec::new(),
            next_reading: 0,
            undo: Undo::default(),
        }
    }

    /// The same cache without content.
    pub(crate) fn emptied(&self) -> Self {
        Cache::new(self.capacity, self.is_short)
    }

    /// The budget in blocks while there is memory.
    pub(crate) fn full_capacity(&self) -> usize {
        self.capacity
    }

    /// The budget in blocks.
    pub(crate) fn capacity(&self) -> usize {
        match (self.is_short)() {
            true => self.capacity.min(SHORT_CAPACITY),
            false => self.capacity,
        }
    }

    /// How many clean blocks survive any number of insertions of dirty ones.
    pub(crate) fn reserve(&self) -> usize {
        self.capacity() / 4
    }

    /// Blocks are going to be read. `None`: there is no memory to know of that.
    pub(crate) fn begin_reading(&mut self, first: u32, count: u32) -> Option<Reading> {
        self.readings.try_reserve(1).ok()?;
        let (number, count) = (self.next_reading, count.min(MOST_READ));
        self.next_reading += 1;
        let reading = Reading {
            number,
            first,
            count,
        };
        self.readings.push(UnderWay {
            number,
            blocks: reading.blocks(),
            old: 0,
        });
        Some(reading)
    }

    /// They have been read. For each of them a bit that says whether that is old.
    pub(crate) fn end_reading(&mut self, reading: &Reading) -> u64 {
        let is_it = |other: &UnderWay| other.number == reading.number;
        match self.readings.iter().position(is_it) {
            Some(at) => self.readings.swap_remove(at).old,
            None => u64::MAX,
        }
    }

    /// Something is done to `block`: who is reading it reads what is old.
    fn outdate(&mut self, block: u32) {
        for reading in &mut self.readings {
            if reading.blocks.contains(&block) {
                reading.old |= 1 << (block - reading.blocks.start);
            }
        }
    }

    /// How many blocks are cached.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Where `block` is.
    fn slot_of(&self, block: u32) -> Option<usize> {
        let near = &self.near[block as usize % NEAR];
        let is_it = |slot: &Slot| slot.block == block;
        if self.slots.get(near.get()).is_some_and(is_it) {
            return Some(near.get());
        }
        let slot = *self.index.get(&block)?;
        near.set(slot);
        Some(slot)
    }

    /// Whether `block` is cached.
    pub(crate) fn contains(&self, block: u32) -> bool {
        self.slot_of(block).is_some()
    }

    /// Where `block` is, which becomes the most recently used.
    pub(crate) fn find(&mut self, block: u32) -> Option<Place> {
        let slot = self.slot_of(block)?;
        if self.slots[slot].dirty.is_none() && self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
        Some(Place(slot))
    }

    /// The content of a block that was found just now.
    pub(crate) fn content(&self, place: Place) -> &[u8] {
        &self.slots[place.0].data
    }

    /// The content of `block`, which becomes the most recently used.
    #[cfg(test)]
    pub(crate) fn get(&mut self, block: u32) -> Option<&[u8]> {
        let place = self.find(block)?;
        Some(self.content(place))
    }

    /// The content of `block` without a change to the order of use.
    pub(crate) fn peek(&self, block: u32) -> Option<&[u8]> {
        self.slot_of(block).map(|slot| &*self.slots[slot].data)
    }

    /// The content of `block` for a change that the device has already.
    pub(crate) fn peek_mut(&mut self, block: u32) -> Option<&mut [u8]> {
        self.outdate(block);
        let slot = self.slot_of(block)?;
        Some(&mut self.slots[slot].data)
    }

    /// The content of `block` for change; it becomes dirty.
    pub(crate) fn get_dirty(&mut self, block: u32, kind: Kind) -> Option<&mut [u8]> {
        self.outdate(block);
        let slot = self.slot_of(block)?;
        self.set_dirty(slot, kind);
        Some(&mut self.slots[slot].data)
    }

    /// Caches what was read from the device. A block that is cached already keeps its content.
    pub(crate) fn insert_clean(&mut self, block: u32, data: &[u8]) {
        if self.contains(block) {
            return;
        }
        // First of all, what has to go for it goes.
        let slot = self.new_slot(block);
        self.slots[slot].data = data.into();
        self.link(slot);
    }

    /// Caches `data` as the new content of `block`.
    pub(crate) fn insert_dirty(&mut self, block: u32, data: Box<[u8]>, kind: Kind) {
        self.outdate(block);
        let slot = match self.slot_of(block) {
            Some(slot) => slot,
            None => {
                let slot = self.new_slot(block);
                self.link(slot);
                slot
            }
        };
        self.slots[slot].data = data;
        self.set_dirty(slot, kind);
    }

    /// Drops `block`, dirty or not: its content does not matter any more.
    pub(crate) fn forget(&mut self, block: u32) {
        self.outdate(block);
        if let Some(slot) = self.slot_of(block) {
            self.mark_clean(block);
            self.drop_slot(slot);
        }
    }

    /// Notes that the content of `block` is on the device.
    pub(crate) fn mark_clean(&mut self, block: u32) {
        let Some(slot) = self.slot_of(block) else {
            return;
        };
        if let Some(kind) = self.slots[slot].dirty.take() {
            self.dirty[kind as usize].remove(&block);
            self.link(slot);
        }
    }

    /// Notes that the content of the dirty block `block` is in the journal.
    pub(crate) fn mark_logged(&mut self, block: u32) {
        self.mark_clean(block);
        self.get_dirty(block, Kind::Logged);
    }

    /// Notes that the content of the dirty block `block` is being written to the journal.
    pub(crate) fn mark_writing(&mut self, block: u32) {
        self.mark_clean(block);
        self.get_dirty(block, Kind::Writing);
    }

    /// Whether the newest content of `block` is being written to the journal.
    pub(crate) fn is_writing(&self, block: u32) -> bool {
        self.dirty[Kind::Writing as usize].contains(&block)
    }

    /// The dirty blocks of `kind`, sorted.
    pub(crate) fn dirty_blocks(&self, kind: Kind) -> impl Iterator<Item = u32> {
        self.dirty[kind as usize].iter().copied()
    }

    /// How many blocks of `kind` are dirty.
    pub(crate) fn dirty_count(&self, kind: Kind) -> usize {
        self.dirty[kind as usize].len()
    }

    /// The next run of dirty blocks of `kind` with consecutive numbers, from number `from` on:
    /// its start and its length, at most `most`.
    pub(crate) fn dirty_run(&self, kind: Kind, from: u32, most: usize) -> Option<(u32, usize)> {
        let mut numbers = self.dirty[kind as usize].range(from..);
        let start = *numbers.next()?;
        let follow = numbers.take(most - 1).zip(start + 1..);
        Some((
            start,
            1 + follow
                .take_while(|(number, expected)| *number == expected)
                .count(),
        ))
    }

    /// Drops clean blocks until the budget is met (it may have been exceeded by dirty ones).
    pub(crate) fn shrink(&mut self) {
        let (capacity, reserve) = (self.capacity(), self.reserve());
        while self.index.len() > capacity && self.clean > reserve {
            self.drop_slot(self.oldest);
        }
    }

    /// Makes a slot dirty. One that is dirty keeps the kind that is written earlier.
    fn set_dirty(&mut self, slot: usize, kind: Kind) {
        let block = self.slots[slot].block;
        match self.slots[slot].dirty {
            None => self.unlink(slot),
            Some(old) if old <= kind => return,
            Some(old) => {
                self.dirty[old as usize].remove(&block);
            }
        }
        self.slots[slot].dirty = Some(kind);
        self.dirty[kind as usize].insert(block);
    }

    /// Takes a slot for `block`, evicting if need be. It has no content yet and is in no list.
    fn new_slot(&mut self, block: u32) -> usize {
        let (capacity, reserve) = (self.capacity(), self.reserve());
        while self.index.len() >= capacity && self.clean > reserve {
            self.drop_slot(self.oldest);
        }
        if self.unused == NONE && self.slots.try_reserve(1).is_err() && self.clean > 1 {
            self.drop_slot(self.oldest);
        }
        let new = Slot {
            block,
            data: Box::default(),
            dirty: None,
            change: Change::None,
            newer: NONE,
            older: NONE,
        };
        let slot = match self.unused {
            NONE => {
                self.slots.push(new);
                self.slots.len() - 1
            }
            slot => {
                self.unused = self.slots[slot].older;
                self.slots[slot] = new;
                slot
            }
        };
        self.index.insert(block, slot);
        slot
    }

    /// Gives a clean slot back.
    fn drop_slot(&mut self, slot: usize) {
        self.unlink(slot);
        self.index.remove(&self.slots[slot].block);
        self.slots[slot].block = NO_BLOCK;
        self.slots[slot].data = Box::default();
        self.slots[slot].older = self.unused;
        self.unused = slot;
    }

    /// Puts a clean slot at the newest end.
    fn link(&mut self, slot: usize) {
        let before = self.newest;
        self.slots[slot].older = before;
        self.slots[slot].newer = NONE;
        if before == NONE {
            self.oldest = slot;
        } else {
            self.slots[before].newer = slot;
        }
        self.newest = slot;
        self.clean += 1;
    }

    /// Takes a clean slot out of the list.
    fn unlink(&mut self, slot: usize) {
        let (newer, older) = (self.slots[slot].newer, self.slots[slot].older);
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older].newer = newer,
        }
        self.clean -= 1;
    }
}

#[cfg(test)]
mod tests;
