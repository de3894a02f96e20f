//! Changes that can be taken back: a block is changed where it lies, and what it was is noted
//! before.
//!
//! A set of changes begins with the first [`change`](Cache::change), and ends with
//! [`keep`](Cache::keep) or [`take_back`](Cache::take_back); there is one at a time. A block of it
//! is dirty from its first change on, so it stays in the cache; nothing is written meanwhile. What
//! is noted are the bytes of the parts that change, no more, since an operation changes some
//! hundred bytes of half a dozen blocks.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Cache, Kind, Slot};
use crate::device::DeviceError;

/// Bytes of notes for which the memory is kept from one set to the next.
const KEPT: usize = 16 << 10;

/// What a cached block is to the set of changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// No part of it.
    None,
    /// What it was is noted.
    Noted,
    /// It was of no use before, and nothing has to be noted.
    New,
}

/// What a block of the set was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// It was not cached.
    Absent,
    Clean,
    Dirty(Kind),
}

/// The bytes of a part of a block, which are the next ones of [`Undo::bytes`].
#[derive(Clone, Copy)]
struct Part {
    block: u32,
    at: u32,
    length: u32,
}

/// What was before a set of changes.
#[derive(Default)]
pub(super) struct Undo {
    blocks: Vec<(u32, Before)>,
    parts: Vec<Part>,
    bytes: Vec<u8>,
}

impl Undo {
    /// Has room for one block more, and for one part of so many bytes: then noting cannot fail.
    fn reserve(&mut self, length: usize) -> Result<(), DeviceError> {
        let blocks = self.blocks.try_reserve(1);
        let parts = blocks.and_then(|()| self.parts.try_reserve(1));
        let bytes = parts.and_then(|()| self.bytes.try_reserve(length));
        bytes.map_err(|_| DeviceError::NoMemory)
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.parts.clear();
        self.bytes.clear();
        if self.bytes.capacity() > KEPT {
            *self = Undo::default();
        }
    }
}

impl Cache {
    /// The bytes `part` of the cached block `block` for a change that may be taken back; the block
    /// becomes dirty. Panics if it is not cached.
    ///
    /// # Errors
    /// `NoMemory`: nothing is changed.
    pub(crate) fn change(
        &mut self,
        block: u32,
        kind: Kind,
        part: Range<usize>,
    ) -> Result<&mut [u8], DeviceError> {
        let slot = self
            .slot_of(block)
            .expect("who changes a block has loaded it");
        self.undo.reserve(part.len())?;
        if self.slots[slot].change == Change::None {
            let before = self.slots[slot].dirty.map_or(Before::Clean, Before::Dirty);
            self.undo.blocks.push((block, before));
            self.outdate(block);
            self.slots[slot].change = Change::Noted;
            self.set_dirty(slot, kind);
        }
        let Slot { data, change, .. } = &mut self.slots[slot];
        let bytes = &mut data[part.clone()];
        if *change == Change::New {
            return Ok(bytes);
        }
        self.undo.bytes.extend_from_slice(bytes);
        self.undo.parts.push(Part {
            block,
            at: part.start as u32,
            length: part.len() as u32,
        });
        Ok(bytes)
    }

    /// The content of a block of `size` bytes that is of no use so far, for such a change: zeros.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) fn change_all(
        &mut self,
        block: u32,
        kind: Kind,
        size: usize,
    ) -> Result<&mut [u8], DeviceError> {
        if self.contains(block) {
            let data = self.change(block, kind, 0..size)?;
            data.fill(0);
            return Ok(data);
        }
        self.undo.reserve(0)?;
        self.undo.blocks.push((block, Before::Absent));
        self.insert_dirty(block, zeros(size)?, kind);
        let slot = self.slot_of(block).expect("just inserted");
        self.slots[slot].change = Change::New;
        Ok(&mut self.slots[slot].data)
    }

    /// Whether there is a set of changes that has not ended.
    pub(crate) fn is_changing(&self) -> bool {
        !self.undo.blocks.is_empty()
    }

    /// The blocks of the set.
    pub(crate) fn changing(&self) -> impl Iterator<Item = u32> {
        self.undo.blocks.iter().map(|(block, _)| *block)
    }

    /// Ends the set; what was changed stays so.
    pub(crate) fn keep(&mut self) {
        for at in 0..self.undo.blocks.len() {
            let (block, _) = self.undo.blocks[at];
            if let Some(slot) = self.slot_of(block) {
                self.slots[slot].change = Change::None;
            }
        }
        self.undo.clear();
    }

    /// Ends the set; all is as it was before.
    pub(crate) fn take_back(&mut self) {
        while let Some(part) = self.undo.parts.pop() {
            let from = self.undo.bytes.len() - part.length as usize;
            if let Some(slot) = self.slot_of(part.block) {
                let at = part.at as usize..(part.at + part.length) as usize;
                self.slots[slot].data[at].copy_from_slice(&self.undo.bytes[from..]);
            }
            self.undo.bytes.truncate(from);
        }
        while let Some((block, before)) = self.undo.blocks.pop() {
            let Some(slot) = self.slot_of(block) else {
                continue;
            };
            self.slots[slot].change = Change::None;
            match before {
                Before::Absent => self.forget(block),
                Before::Clean => self.mark_clean(block),
                Before::Dirty(kind) if self.slots[slot].dirty != Some(kind) => {
                    self.mark_clean(block);
                    self.get_dirty(block, kind);
                }
                Before::Dirty(_) => {}
            }
        }
        self.undo.clear();
    }
}

/// A block of zeros.
fn zeros(size: usize) -> Result<Box<[u8]>, DeviceError> {
    Ok(crate::device::zeroes(size, 0)?.into())
}

#[cfg(test)]
mod tests;
