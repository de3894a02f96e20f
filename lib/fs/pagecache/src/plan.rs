//! What is on its way into the cache: loads that somebody has begun, and pages that are to be read
//! ahead.
//!
//! Who needs a page that is on its way waits for it instead of loading it a second time. A load
//! ends when it is inserted or given up, reading ahead when it is done, whatever came of it; then
//! who waited looks again.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::Ahead;

/// Windows that may wait to be read ahead.
const MOST_WAITING: usize = 16;

/// A load that has begun.
struct Load {
    number: u64,
    file: u64,
    offset: u64,
    end: u64,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Plan {
    loads: Vec<Load>,
    last_load: u64,
    /// Not read ahead yet.
    waiting: VecDeque<Ahead>,
    /// Being read ahead.
    current: Vec<Ahead>,
}

impl Plan {
    /// Notes a load; its number.
    pub(crate) fn begin(&mut self, file: u64, offset: u64, bytes: usize) -> u64 {
        self.last_load += 1;
        self.loads.push(Load {
            number: self.last_load,
            file,
            offset,
            end: offset.saturating_add(bytes as u64),
        });
        self.last_load
    }

    /// Forgets a load.
    pub(crate) fn end(&mut self, number: u64) {
        self.loads.retain(|load| load.number != number);
    }

    /// Whether there is room for another window.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < MOST_WAITING
    }

    pub(crate) fn add(&mut self, ahead: Ahead) {
        self.waiting.push_back(ahead);
    }

    pub(crate) fn take(&mut self) -> Option<Ahead> {
        let ahead = self.waiting.pop_front()?;
        self.current.push(ahead);
        Some(ahead)
    }

    pub(crate) fn done(&mut self, ahead: Ahead) {
        if let Some(place) = self.current.iter().position(|other| *other == ahead) {
            self.current.swap_remove(place);
        }
    }

    /// Whether somebody loads the page at `offset`.
    pub(crate) fn loads(&self, file: u64, offset: u64) -> bool {
        let covers = |load: &Load| load.file == file && (load.offset..load.end).contains(&offset);
        self.loads.iter().any(covers)
    }

    /// Whether the page at `offset` is on its way.
    pub(crate) fn covers(&self, file: u64, offset: u64) -> bool {
        let covers =
            |ahead: &Ahead| ahead.file == file && (ahead.offset..ahead.end).contains(&offset);
        self.loads(file, offset) || self.waiting.iter().chain(&self.current).any(covers)
    }

    /// How many of `bytes` bytes from `offset` on, which nobody loads, lie before the next load.
    pub(crate) fn free_from(&self, file: u64, offset: u64, bytes: usize) -> usize {
        let starts = self
            .loads
            .iter()
            .filter(|load| load.file == file && load.offset >= offset);
        let next = starts.map(|load| load.offset - offset).min();
        next.map_or(bytes, |free| bytes.min(free as usize))
    }
}
