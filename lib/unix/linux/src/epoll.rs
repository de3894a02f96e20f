//! Sets of what a program waits for (`epoll(7)`), without whoever waits.
//!
//! A file that changes *touches* its item, which then stands in the list of those that are to
//! be looked at. Whoever asks what there is takes them out one by one, looks at the file, and
//! *settles* what was found: an item by level goes to the end of the list again as long as
//! there is something, one by edge only when it is touched.

use crate::errno::{EEXIST, EINVAL, ELOOP, ENOENT, ENOMEM, Error};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Events (`sys/epoll.h`): to read, urgent, to write, an error, the end of both directions.
pub const IN: u32 = 1;
/// See [`IN`].
pub const OUT: u32 = 4;
/// See [`IN`].
pub const ERR: u32 = 8;
/// See [`IN`].
pub const HUP: u32 = 0x10;
/// To read and to write, by another name.
pub const IN_TOO: u32 = 0x40;
/// See [`IN_TOO`].
pub const OUT_TOO: u32 = 0x100;
/// The other side sends nothing more.
pub const RDHUP: u32 = 0x2000;
/// One of several sets is told.
pub const EXCLUSIVE: u32 = 1 << 28;
/// The machine does not sleep meanwhile: this one never does.
const WAKEUP: u32 = 1 << 29;
/// It is told of once.
const ONESHOT: u32 = 1 << 30;
/// It is told of when it changes.
const EDGE: u32 = 1 << 31;
/// What is no event.
const HOW: u32 = EXCLUSIVE | WAKEUP | ONESHOT | EDGE;
/// What may go with [`EXCLUSIVE`].
const WITH_EXCLUSIVE: u32 = IN | OUT | ERR | HUP | WAKEUP | EDGE | EXCLUSIVE;
/// Told unasked.
const ALWAYS: u32 = ERR | HUP;

/// What is wanted of a file, and a number that comes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Events, and how they are told.
    pub events: u32,
    /// The program's own number.
    pub data: u64,
}

impl Wish {
    /// From a `struct epoll_event`, of twelve bytes.
    pub fn from_bytes(bytes: &[u8; 12]) -> Self {
        let [a, b, c, d, data @ ..] = *bytes;
        Wish {
            events: u32::from_le_bytes([a, b, c, d]),
            data: u64::from_le_bytes(data),
        }
    }

    /// As the structure.
    pub fn bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let numbers = self.events.to_le_bytes().into_iter();
        let numbers = numbers.chain(self.data.to_le_bytes());
        for (place, byte) in bytes.iter_mut().zip(numbers) {
            *place = byte;
        }
        bytes
    }

    /// Whether it may be added, of a file that is itself a set or not.
    ///
    /// # Errors
    /// `EINVAL`: flags that do not go together.
    pub fn check_new(self, is_set: bool) -> Result<(), Error> {
        match self.events & EXCLUSIVE != 0 && (is_set || self.events & !WITH_EXCLUSIVE != 0) {
            true => Err(EINVAL),
            false => Ok(()),
        }
    }

    /// What is wanted of it now; nothing once it was told of once.
    fn wanted(self) -> u32 {
        match self.events & !HOW {
            0 => 0,
            events => events | ALWAYS,
        }
    }
}

/// An item by the program: a descriptor, and the file that it led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The descriptor.
    pub descriptor: u32,
    /// The file, by a number that no other one has meanwhile.
    pub file: usize,
}

struct Item<F> {
    place: Place,
    file: F,
    wish: Wish,
    /// It stands in the list of those that are to be looked at.
    is_listed: bool,
}

/// A set.
pub struct Set<F> {
    items: BTreeMap<u64, Item<F>>,
    numbers: BTreeMap<Place, u64>,
    /// Those that are to be looked at, the first first. Some may be gone.
    listed: VecDeque<u64>,
    next: u64,
}

impl<F> Default for Set<F> {
    fn default() -> Self {
        Set {
            items: BTreeMap::new(),
            numbers: BTreeMap::new(),
            listed: VecDeque::new(),
            next: 0,
        }
    }
}

impl<F: Clone> Set<F> {
    /// How many items it has.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds an item, which is to be looked at.
    ///
    /// # Errors
    /// `EEXIST`: there is one. `ENOMEM`.
    pub fn add(&mut self, place: Place, file: F, wish: Wish) -> Result<(), Error> {
        if self.numbers.contains_key(&place) {
            return Err(EEXIST);
        }
        // Each item has its room in the list.
        let room = self.items.len() + 1;
        let more = room.saturating_sub(self.listed.len());
        self.listed.try_reserve(more).map_err(|_| ENOMEM)?;
        let number = self.next;
        self.next += 1;
        self.numbers.insert(place, number);
        let item = Item {
            place,
            file,
            wish,
            is_listed: true,
        };
        self.items.insert(number, item);
        self.listed.push_back(number);
        Ok(())
    }

    /// Changes what is wanted of an item, which is to be looked at.
    ///
    /// # Errors
    /// `ENOENT`: it is not in the set. `EINVAL`: flags that do not go together.
    pub fn change(&mut self, place: Place, wish: Wish) -> Result<(), Error> {
        let number = *self.numbers.get(&place).ok_or(ENOENT)?;
        let item = self.items.get_mut(&number).ok_or(ENOENT)?;
        if (item.wish.events | wish.events) & EXCLUSIVE != 0 {
            return Err(EINVAL);
        }
        item.wish = wish;
        self.list(number);
        Ok(())
    }

    /// Takes an item out; what is to be dropped of it.
    ///
    /// # Errors
    /// `ENOENT`: it is not in the set.
    pub fn remove(&mut self, place: Place) -> Result<F, Error> {
        let number = *self.numbers.get(&place).ok_or(ENOENT)?;
        self.forget(number).ok_or(ENOENT)
    }

    /// Takes an item out by its number, if it is there.
    pub fn forget(&mut self, number: u64) -> Option<F> {
        let item = self.items.remove(&number)?;
        self.numbers.remove(&item.place);
        if item.is_listed {
            self.listed.retain(|it| *it != number);
        }
        Some(item.file)
    }

    /// The numbers of all items, and their files.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &F)> {
        self.items
            .iter()
            .map(|(number, item)| (*number, &item.file))
    }

    /// The first of those that are to be looked at: it is not one of them any more.
    pub fn take_next(&mut self) -> Option<(u64, F)> {
        let number = self.listed.pop_front()?;
        let item = self.items.get_mut(&number)?;
        item.is_listed = false;
        Some((number, item.file.clone()))
    }

    /// How many are to be looked at.
    pub fn listed(&self) -> usize {
        self.listed.len()
    }

    fn list(&mut self, number: u64) {
        if let Some(item) = self.items.get_mut(&number)
            && !core::mem::replace(&mut item.is_listed, true)
        {
            self.listed.push_back(number);
        }
    }

    /// Something of these events has happened to an item's file; whether anybody wants to know.
    pub fn touch(&mut self, number: u64, events: u32) -> bool {
        let wanted = self.items.get(&number).map_or(0, |it| it.wish.wanted());
        let is_wanted = wanted & events != 0;
        if is_wanted {
            self.list(number);
        }
        is_wanted
    }

    /// Whether there is anything to tell of an item whose file has these events; nothing changes.
    pub fn would_tell(&self, number: u64, found: u32) -> bool {
        let item = self.items.get(&number);
        item.is_some_and(|item| item.wish.wanted() & found != 0)
    }

    /// Puts an item back at the front of those that are to be looked at.
    pub fn put_back(&mut self, number: u64) {
        if let Some(item) = self.items.get_mut(&number)
            && !core::mem::replace(&mut item.is_listed, true)
        {
            self.listed.push_front(number);
        }
    }

    /// What is told of an item whose file has these events, if anything is.
    pub fn settle(&mut self, number: u64, found: u32) -> Option<Wish> {
        let item = self.items.get_mut(&number)?;
        let events = item.wish.wanted() & found;
        if events == 0 {
            return None;
        }
        let told = Wish {
            events,
            data: item.wish.data,
        };
        match item.wish.events {
            how if how & ONESHOT != 0 => item.wish.events &= HOW,
            how if how & EDGE != 0 => {}
            _ => self.list(number),
        }
        Some(told)
    }
}

/// The most sets that are in each other, counted from the outermost to the innermost.
const DEEPEST: u32 = 5;
/// The most sets that one is in, directly or not.
const MOST_AROUND: usize = 64;

/// A set among sets.
#[derive(Default)]
struct Node {
    /// How deep others are in it.
    height: u32,
    /// The sets that it is in; twice in one, twice here.
    around: Vec<u64>,
}

/// Which sets are in which: none in itself, not too deep, and not in too many, so that a change
/// inside is told outside in bounded time.
#[derive(Default)]
pub struct Nests(BTreeMap<u64, Node>);

impl Nests {
    /// The sets around one, each with the most steps that lead out to it.
    fn around(&self, set: u64) -> Result<Vec<(u64, u32)>, Error> {
        let mut all = Vec::new();
        all.try_reserve(MOST_AROUND).map_err(|_| ENOMEM)?;
        all.push((set, 0));
        // No way is longer than so many steps.
        for _ in 0..DEEPEST {
            let mut at = 0;
            while let Some((next, depth)) = all.get(at).copied() {
                at += 1;
                let node = self.0.get(&next);
                for outer in node.map(|node| &node.around[..]).unwrap_or_default() {
                    let place = all.iter().position(|(it, _)| it == outer);
                    if let Some((_, known)) = place.and_then(|place| all.get_mut(place)) {
                        *known = (*known).max(depth + 1);
                    } else if all.len() == MOST_AROUND {
                        return Err(EINVAL);
                    } else {
                        all.push((*outer, depth + 1));
                    }
                }
            }
        }
        Ok(all)
    }

    /// Puts the set `inner` into `outer`.
    ///
    /// # Errors
    /// `EINVAL`: into itself, or it would be in too many. `ELOOP`: a circle, or too deep.
    /// `ENOMEM`.
    pub fn enter(&mut self, outer: u64, inner: u64) -> Result<(), Error> {
        if outer == inner {
            return Err(EINVAL);
        }
        let around = self.around(outer)?;
        if around.iter().any(|(it, _)| *it == inner) {
            return Err(ELOOP);
        }
        let inside = self.0.get(&inner).map_or(0, |node| node.height);
        let outside = around.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
        if inside + 2 + outside > DEEPEST {
            return Err(ELOOP);
        }
        let node = self.0.entry(inner).or_default();
        if node.around.len() == MOST_AROUND {
            return Err(EINVAL);
        }
        node.around.try_reserve(1).map_err(|_| ENOMEM)?;
        node.around.push(outer);
        for (set, depth) in around {
            let node = self.0.entry(set).or_default();
            node.height = node.height.max(inside + 1 + depth);
        }
        Ok(())
    }

    /// Takes the set `inner` out of `outer`, once.
    pub fn leave(&mut self, outer: u64, inner: u64) {
        if let Some(node) = self.0.get_mut(&inner)
            && let Some(at) = node.around.iter().position(|it| *it == outer)
        {
            node.around.swap_remove(at);
        }
    }

    /// A set is gone.
    pub fn forget(&mut self, set: u64) {
        self.0.remove(&set);
        for node in self.0.values_mut() {
            node.around.retain(|it| *it != set);
        }
    }
}

#[cfg(test)]
mod tests;
