//! Entries inside one directory block (ext2 spec, "Linked List Directory"): each has its length, so
//! they form a list that fills the block. Everything here works on bytes alone.

use core::ops::Range;

use crate::bytes::{put_u16, put_u32, u16_at, u32_at};
use crate::error::{Error, Result};

/// The longest name, in bytes.
pub(crate) const NAME_MAX: usize = 255;
/// Bytes of an entry without its name.
pub(crate) const HEADER: usize = 8;

/// One entry; `ino` is 0 if it is unused space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// Where it starts in its block.
    pub(crate) at: usize,
    /// Its length with the unused space behind it.
    pub(crate) length: usize,
    /// The inode it names, unchecked.
    pub(crate) ino: u32,
    /// The type byte; 0 if the file system has none.
    pub(crate) kind: u8,
    /// The name.
    pub(crate) name: &'a [u8],
}

/// The entries of a block, in order. Ends after the first error.
pub(crate) struct Entries<'a> {
    block: &'a [u8],
    at: usize,
}

/// Lists the entries of `block`.
pub(crate) fn entries(block: &[u8]) -> Entries<'_> {
    Entries { block, at: 0 }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.block.len() {
            return None;
        }
        let entry = parse(self.block, self.at);
        self.at = match &entry {
            Ok(entry) => entry.at + entry.length,
            Err(_) => self.block.len(),
        };
        Some(entry)
    }
}

/// The entry at `at`, which must be inside the block.
fn parse(block: &[u8], at: usize) -> Result<Entry<'_>> {
    let rest = &block[at..];
    if rest.len() < HEADER {
        return Err(Error::Corrupt(
            "directory entry crosses the end of its block",
        ));
    }
    let length = usize::from(u16_at(rest, 4));
    let (ino, name_length) = (u32_at(rest, 0), usize::from(rest[6]));
    if length > rest.len() || length < HEADER || !length.is_multiple_of(4) {
        return Err(Error::Corrupt("length of a directory entry"));
    }
    if HEADER + name_length > length || (ino != 0 && name_length == 0) {
        return Err(Error::Corrupt("name length in a directory entry"));
    }
    let name = &rest[HEADER..HEADER + name_length];
    Ok(Entry {
        at,
        length,
        ino,
        kind: rest[7],
        name,
    })
}

/// Bytes that an entry with a name of `name_length` bytes needs.
pub(crate) fn needed(name_length: usize) -> usize {
    (HEADER + name_length).next_multiple_of(4)
}

/// Whether two names are the same. Those of one length in one directory mostly begin alike, so they
/// are compared from their ends: most differ in the first byte that is looked at.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().rev().eq(other.iter().rev())
}

/// The entry called `name`.
pub(crate) fn find<'a>(block: &'a [u8], name: &[u8]) -> Result<Option<Entry<'a>>> {
    for entry in entries(block) {
        let entry = entry?;
        if entry.ino != 0 && is_same(entry.name, name) {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// Where an entry of `need` bytes fits: the position of the entry in front of the gap.
pub(crate) fn find_gap(block: &[u8], need: usize) -> Result<Option<usize>> {
    for entry in entries(block) {
        let entry = entry?;
        if entry.length - used(&entry) >= need {
            return Ok(Some(entry.at));
        }
    }
    Ok(None)
}

/// The largest need for which [`find_gap`] finds a gap.
pub(crate) fn largest_gap(block: &[u8]) -> Result<usize> {
    let mut largest = 0;
    for entry in entries(block) {
        let entry = entry?;
        largest = largest.max(entry.length - used(&entry));
    }
    Ok(largest)
}

/// Bytes of an entry that are in use.
fn used(entry: &Entry<'_>) -> usize {
    if entry.ino == 0 {
        0
    } else {
        needed(entry.name.len()).min(entry.length)
    }
}

/// Room for an entry, behind one that is in use or in the place of one that is not.
#[derive(Clone, Copy)]
pub(crate) struct Gap {
    at: usize,
    /// Bytes of the entry in front that are in use.
    front: usize,
    /// Its length with the room behind it.
    total: usize,
}

/// The gap that [`find_gap`] found at `at`.
pub(crate) fn gap(block: &[u8], at: usize) -> Result<Gap> {
    let entry = parse(block, at)?;
    Ok(Gap {
        at,
        front: used(&entry),
        total: entry.length,
    })
}

impl Gap {
    /// The bytes of the block that [`fill`](Self::fill) with an entry of `need` bytes changes.
    pub(crate) fn part(&self, need: usize) -> Range<usize> {
        self.at..self.at + self.front + need
    }

    /// Puts an entry there.
    pub(crate) fn fill(self, part: &mut [u8], ino: u32, kind: u8, name: &[u8]) {
        if self.front > 0 {
            put_u16(part, 4, self.front as u16);
        }
        let space = &mut part[self.front..];
        write(space, self.total - self.front, ino, kind, name);
    }
}

/// Writes an entry of so many bytes, of which those that are in use are in `space`.
fn write(space: &mut [u8], length: usize, ino: u32, kind: u8, name: &[u8]) {
    put_u32(space, 0, ino);
    put_u16(space, 4, length as u16);
    space[6] = name.len() as u8;
    space[7] = kind;
    space[HEADER..HEADER + name.len()].copy_from_slice(name);
}

/// What removes an entry.
pub(crate) struct Removal {
    /// Where in the block its space is given to the entry before it, and how long that is then; it
    /// is marked as unused itself if there is none.
    at: usize,
    length: Option<u16>,
    /// How large the gap is then in which it was.
    pub(crate) gap: usize,
}

impl Removal {
    /// The bytes of the block that [`make`](Self::make) changes.
    pub(crate) fn part(&self) -> Range<usize> {
        self.at..self.at + if self.length.is_some() { 2 } else { 4 }
    }

    /// Does it.
    pub(crate) fn make(self, part: &mut [u8]) {
        match self.length {
            Some(length) => put_u16(part, 0, length),
            None => put_u32(part, 0, 0),
        }
    }
}

/// What removes the entry at `at`.
///
/// # Errors
/// `Corrupt`, also if no entry begins there.
pub(crate) fn removal(block: &[u8], at: usize) -> Result<Removal> {
    let mut before = None;
    for entry in entries(block) {
        let entry = entry?;
        if entry.at < at {
            before = Some((entry.at, entry.length, used(&entry)));
            continue;
        }
        if entry.at > at {
            break;
        }
        let length = entry.length;
        return Ok(match before {
            Some((front, front_length, front_used)) => Removal {
                at: front + 4,
                length: Some((front_length + length) as u16),
                gap: front_length + length - front_used,
            },
            None => Removal {
                at,
                length: None,
                gap: length,
            },
        });
    }
    Err(Error::Corrupt("no directory entry where there was one"))
}

/// Makes `block` hold `all` and no others, without gaps but behind the last. They must fit.
pub(crate) fn pack<'a>(block: &mut [u8], all: impl Iterator<Item = Entry<'a>>) {
    clear(block);
    let (mut at, mut last) = (0, 0);
    for entry in all {
        let end = at + needed(entry.name.len());
        write(
            &mut block[at..end],
            end - at,
            entry.ino,
            entry.kind,
            entry.name,
        );
        (last, at) = (at, end);
    }
    let length = (block.len() - last) as u16;
    put_u16(block, last + 4, length);
}

/// Makes an entry, of which `header` are the first [`HEADER`] bytes, name another inode.
pub(crate) fn redirect(header: &mut [u8], ino: u32, kind: u8) {
    put_u32(header, 0, ino);
    header[7] = kind;
}

/// Makes `block` a directory block without entries.
pub(crate) fn clear(block: &mut [u8]) {
    block.fill(0);
    put_u16(block, 4, block.len() as u16);
}

/// Makes `block` the first block of the directory `ino` in the directory `parent`.
pub(crate) fn start(block: &mut [u8], ino: u32, parent: u32, kind: u8) {
    let (dot, rest) = block.split_at_mut(needed(1));
    write(dot, dot.len(), ino, kind, b".");
    write(rest, rest.len(), parent, kind, b"..");
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn names(block: &[u8]) -> Vec<Vec<u8>> {
        let all = entries(block).map(|entry| entry.expect("good"));
        all.filter(|entry| entry.ino != 0)
            .map(|entry| entry.name.to_vec())
            .collect()
    }

    fn add(block: &mut [u8], ino: u32, name: &[u8]) -> bool {
        match find_gap(block, needed(name.len())).expect("good") {
            Some(at) => {
                let gap = gap(block, at).expect("good");
                gap.fill(&mut block[gap.part(needed(name.len()))], ino, 1, name);
                true
            }
            None => false,
        }
    }

    fn remove(block: &mut [u8], at: usize) -> Result<usize> {
        let removal = removal(block, at)?;
        let gap = removal.gap;
        let part = removal.part();
        removal.make(&mut block[part]);
        Ok(gap)
    }

    /// Removes a name; whether it was there. The gap that it leaves is one.
    fn take(block: &mut [u8], name: &[u8]) -> bool {
        let Some(at) = find(block, name).expect("good").map(|entry| entry.at) else {
            return false;
        };
        let gap = remove(block, at).expect("good");
        assert!(gap >= needed(name.len()) && gap <= largest_gap(block).expect("good"));
        true
    }

    #[test]
    fn entries_come_and_go() {
        let mut block = [0u8; 1024];
        start(&mut block, 12, 2, 2);
        assert!(add(&mut block, 13, b"one") && add(&mut block, 14, b"three"));
        assert!(take(&mut block, b"one"));
        assert!(!take(&mut block, b"one"));
        assert!(add(&mut block, 15, b"two"));
        assert_eq!(names(&block), [&b"."[..], b"..", b"two", b"three"]);
        assert_eq!(
            find(&block, b"three").expect("good").map(|entry| entry.ino),
            Some(14)
        );
        // Where no entry begins there is none to be removed.
        assert!(matches!(remove(&mut block, 16), Err(Error::Corrupt(_))));
    }

    #[test]
    fn a_block_fills_up_and_empties() {
        let mut block = [0u8; 1024];
        clear(&mut block);
        let all: Vec<[u8; 4]> = (0..100u32).map(u32::to_le_bytes).collect();
        let fitting = all.iter().filter(|name| add(&mut block, 20, *name)).count();
        assert_eq!(fitting, 1024 / 12);
        for name in &all[..fitting] {
            assert!(take(&mut block, name));
        }
        assert_eq!(find_gap(&block, 1024), Ok(Some(0)));
        assert_eq!(largest_gap(&block), Ok(1024));
    }

    #[test]
    fn packing_joins_all_gaps() {
        let mut block = [0u8; 1024];
        clear(&mut block);
        let all: Vec<[u8; 4]> = (0..80u32).map(u32::to_le_bytes).collect();
        all.iter()
            .for_each(|name| assert!(add(&mut block, 20, name)));
        for name in all.iter().step_by(2) {
            assert!(take(&mut block, name));
        }
        let before = block;
        let used = entries(&before).map(|entry| entry.expect("good"));
        pack(&mut block, used.filter(|entry| entry.ino != 0));
        assert_eq!(names(&block), names(&before));
        assert_eq!(largest_gap(&block), Ok(1024 - 40 * 12));
        pack(&mut block, core::iter::empty());
        assert_eq!(largest_gap(&block), Ok(1024));
    }

    #[test]
    fn bad_lengths_are_refused() {
        for (at, value) in [
            (4, 0u16),
            (4, 4),
            (4, 1025),
            (4, 1028),
            (4, 10),
            (4, u16::MAX),
        ] {
            let mut block = [0u8; 1024];
            start(&mut block, 12, 2, 2);
            put_u16(&mut block, at, value);
            assert!(
                matches!(find(&block, b"x"), Err(Error::Corrupt(_))),
                "{value}"
            );
        }
        let mut block = [0u8; 1024];
        start(&mut block, 12, 2, 2);
        block[6] = 5;
        assert!(matches!(remove(&mut block, 12), Err(Error::Corrupt(_))));
        block[6] = 0;
        assert!(matches!(find_gap(&block, 8), Err(Error::Corrupt(_))));
    }

    #[test]
    fn a_block_that_ends_inside_an_entry_is_refused() {
        let mut block = [0u8; 1024];
        start(&mut block, 12, 2, 2);
        put_u16(&mut block, 16, 1008);
        assert!(matches!(find(&block, b"x"), Err(Error::Corrupt(_))));
    }
}
