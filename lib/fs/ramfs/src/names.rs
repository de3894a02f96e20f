//! The names of a directory: found by hash, listed in the order of making.
//!
//! An entry keeps its place until it is removed, and a place is used again only for an entry that
//! is made later, so a listing that goes on from a place sees every entry that was there all the
//! time exactly once.

use alloc::vec::Vec;

use crate::{Error, Result};

/// The longest name, in bytes.
pub const NAME_MAX: usize = 255;

/// In the index: nothing was ever here.
const EMPTY: u32 = 0;
/// In the index: something was here.
const REMOVED: u32 = u32::MAX;

/// Most places of a directory.
const MOST: usize = 1 << 30;

/// A name that is not there yet, and where it will be.
pub(crate) struct Prepared {
    entry: Entry,
    pub(crate) place: usize,
}

/// One name.
pub(crate) struct Entry {
    /// The name.
    pub(crate) name: Vec<u8>,
    /// The inode that it leads to.
    pub(crate) inode: u64,
}

/// The names of a directory.
#[derive(Default)]
pub(crate) struct Names {
    places: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Open addressing; a place's number plus 1, or one of the two marks. Its length is a power of
    /// two.
    index: Vec<u32>,
    /// Slots of the index that are not `EMPTY`.
    used: usize,
    count: usize,
}

impl Names {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// What a name leads to.
    pub(crate) fn get(&self, name: &[u8]) -> Option<u64> {
        let slot = self.slot(name)?;
        Some(self.places[self.index[slot] as usize - 1].as_ref()?.inode)
    }

    /// The first entry at place `from` or behind it, and the place.
    pub(crate) fn next(&self, from: usize) -> Option<(usize, &Entry)> {
        let places = self.places.get(from..)?;
        let at = places.iter().position(Option::is_some)?;
        Some((from + at, places[at].as_ref()?))
    }

    /// Everything that a new name needs, which nothing has yet.
    ///
    /// # Errors
    /// `NoSpace`: no memory.
    pub(crate) fn prepare(&mut self, name: &[u8], inode: u64) -> Result<Prepared> {
        let place = match self.free.last() {
            Some(&place) => place as usize,
            None => self.places.len(),
        };
        self.prepare_at(name, inode, place)
    }

    /// As [`prepare`](Self::prepare), for a place where nothing is.
    ///
    /// # Errors
    /// `NoSpace`: no memory.
    pub(crate) fn prepare_at(&mut self, name: &[u8], inode: u64, place: usize) -> Result<Prepared> {
        let mut own = Vec::new();
        own.try_reserve_exact(name.len())
            .map_err(|_| Error::NoSpace)?;
        own.extend_from_slice(name);
        self.make_room(place)?;
        let entry = Entry { name: own, inode };
        Ok(Prepared { entry, place })
    }

    /// Adds a name that is not there. What it needs was the last that was prepared.
    pub(crate) fn put(&mut self, Prepared { entry, place }: Prepared) {
        if self.free.last() == Some(&(place as u32)) {
            self.free.pop();
        }
        while self.places.len() <= place {
            self.places.push(None);
        }
        self.enter(&entry.name, place as u32);
        self.places[place] = Some(entry);
        self.count += 1;
    }

    /// Finds all free places, after names were put where others had them before.
    pub(crate) fn find_free(&mut self) {
        self.free.clear();
        for place in (0..self.places.len()).rev() {
            // There is room, see `make_room`.
            if self.places[place].is_none() && self.free.len() < self.free.capacity() {
                self.free.push(place as u32);
            }
        }
    }

    /// All names and their places.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let places = (0..).zip(&self.places);
        places.filter_map(|(at, entry)| Some((at, entry.as_ref()?)))
    }

    /// Lets a name that is there lead to another inode.
    pub(crate) fn redirect(&mut self, name: &[u8], inode: u64) {
        let place = self.slot(name).map(|slot| self.index[slot] as usize - 1);
        if let Some(Some(entry)) = place.map(|place| &mut self.places[place]) {
            entry.inode = inode;
        }
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        let Some(slot) = self.slot(name) else {
            return;
        };
        let place = self.index[slot] - 1;
        self.index[slot] = REMOVED;
        self.places[place as usize] = None;
        self.count -= 1;
        if self.count == 0 {
            *self = Names::default();
        } else if self.free.len() < self.free.capacity() {
            // There always is room but while a journal is read, when nobody takes from this list:
            // `make_room` has reserved as much for places that are free as for those that are not.
            self.free.push(place);
        }
    }

    /// Makes sure that one more entry fits everywhere, at this place.
    fn make_room(&mut self, place: usize) -> Result<()> {
        if place >= MOST {
            return Err(Error::NoSpace);
        }
        let places = self.places.len().max(place + 1);
        let more = places - self.places.len();
        self.places.try_reserve(more).map_err(|_| Error::NoSpace)?;
        let more = places.saturating_sub(self.free.len());
        self.free.try_reserve(more).map_err(|_| Error::NoSpace)?;
        if (self.used + 1) * 4 > self.index.len() * 3 {
            self.rebuild()?;
        }
        Ok(())
    }

    /// Makes the index anew, at most half full.
    fn rebuild(&mut self) -> Result<()> {
        let length = ((self.count + 1) * 2).next_power_of_two().max(8);
        let mut index = Vec::new();
        index
            .try_reserve_exact(length)
            .map_err(|_| Error::NoSpace)?;
        index.resize(length, EMPTY);
        self.index = index;
        self.used = 0;
        for place in 0..self.places.len() {
            if let Some(entry) = self.places[place].take() {
                self.enter(&entry.name, place as u32);
                self.places[place] = Some(entry);
            }
        }
        Ok(())
    }

    /// Notes the place of a name in the index, which has a free slot.
    fn enter(&mut self, name: &[u8], place: u32) {
        let mask = self.index.len() - 1;
        let mut slot = hash(name) & mask;
        while !matches!(self.index[slot], EMPTY | REMOVED) {
            slot = (slot + 1) & mask;
        }
        self.used += usize::from(self.index[slot] == EMPTY);
        self.index[slot] = place + 1;
    }

    /// The slot of a name in the index.
    fn slot(&self, name: &[u8]) -> Option<usize> {
        let mask = self.index.len().checked_sub(1)?;
        let mut slot = hash(name) & mask;
        loop {
            match self.index[slot] {
                EMPTY => return None,
                REMOVED => {}
                place => {
                    let entry = self.places[place as usize - 1].as_ref();
                    if entry.is_some_and(|entry| entry.name == name) {
                        return Some(slot);
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// FNV-1a, 64 bits, folded.
fn hash(name: &[u8]) -> usize {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash ^ (hash >> 29)) as usize
}
