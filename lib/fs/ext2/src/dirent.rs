//! Entries inside one directory block (ext2 spec, "Linked List Directory"): each has its length, so
//! they form a list that fills the block. Everything here works on bytes alone.

use core::ops::Range;

use crate::bytes::{put_u16, put_u32};
use crate::error::{Error, Result};

/// The longest name, in bytes.
pub(crate) const NAME_MAX: usize = 255;
/// Bytes of an entry without its name.
pub(crate) const HEADER: usize = 8;
/// Bytes at the end of a name that are compared first.
const TAIL: usize = 4;

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

/// What stands in front of an entry's name, checked. Names are looked for in blocks full of
/// entries, so one that is passed over costs no more than this.
#[derive(Clone, Copy)]
struct Head {
    ino: u32,
    length: usize,
    name_length: usize,
    kind: u8,
}

impl Head {
    /// Of the entry at `at`.
    #[inline]
    fn read(block: &[u8], at: usize) -> Result<Self> {
        let Some(bytes) = block
            .get(at..)
            .and_then(|rest| rest.first_chunk::<HEADER>())
        else {
            return Err(Error::Corrupt(
                "directory entry crosses the end of its block",
            ));
        };
        let word = u64::from_le_bytes(*bytes);
        let head = Head {
            ino: word as u32,
            length: usize::from((word >> 32) as u16),
            name_length: usize::from((word >> 48) as u8),
            kind: (word >> 56) as u8,
        };
        // All at once: a branch for each would be most of what is done here.
        let is_bad = (head.length > block.len() - at)
            | (head.length < HEADER + head.name_length)
            | !head.length.is_multiple_of(4)
            | ((head.ino != 0) & (head.name_length == 0));
        match is_bad {
            true => Err(head.fault(block.len() - at)),
            false => Ok(head),
        }
    }

    /// What is wrong with it, of which `rest` bytes are in the block.
    #[cold]
    fn fault(self, rest: usize) -> Error {
        let is_length =
            self.length > rest || self.length < HEADER || !self.length.is_multiple_of(4);
        Error::Corrupt(match is_length {
            true => "length of a directory entry",
            false => "name length in a directory entry",
        })
    }

    /// Bytes of it that are in use.
    fn used(self) -> usize {
        match self.ino {
            0 => 0,
            // No more than it has, which is a multiple of 4.
            _ => needed(self.name_length),
        }
    }
}

/// The entry at `at`, which must be inside the block.
fn parse(block: &[u8], at: usize) -> Result<Entry<'_>> {
    let head = Head::read(block, at)?;
    let name = at + HEADER;
    Ok(Entry {
        at,
        length: head.length,
        ino: head.ino,
        kind: head.kind,
        name: &block[name..name + head.name_length],
    })
}

/// Bytes that an entry with a name of `name_length` bytes needs.
pub(crate) fn needed(name_length: usize) -> usize {
    (HEADER + name_length).next_multiple_of(4)
}

/// Passes over the entries of `block` from `at` on as long as they are whole and cannot have a name
/// of `length` bytes of which `tail` are the last: the place of the first that has to be looked at.
/// Names in one directory mostly begin alike, so one look at the end of each is enough for most. It
/// may be a look at what is behind a shorter name, and does no harm.
fn pass(block: &[u8], mut at: usize, length: usize, tail: [u8; TAIL]) -> usize {
    while let Some(entry) = block.get(at..at + HEADER + length)
        && let Some(head) = entry.first_chunk::<HEADER>()
        && entry.last_chunk() != Some(&tail)
    {
        let word = u64::from_le_bytes(*head);
        let step = usize::from((word >> 32) as u16);
        let name_length = usize::from((word >> 48) as u8);
        let is_whole = name_length.wrapping_sub(1) < step.saturating_sub(HEADER);
        if !is_whole || !step.is_multiple_of(4) || step > block.len() - at {
            break;
        }
        at += step;
    }
    at
}

/// The entry called `name`, looked for from the entry at `near` on, then before it.
pub(crate) fn find_near<'a>(
    block: &'a [u8],
    near: usize,
    name: &[u8],
) -> Result<Option<Entry<'a>>> {
    match find_between(block, near, block.len(), name)? {
        None if near > 0 => find_between(block, 0, near, name),
        found => Ok(found),
    }
}

/// The entry called `name`.
pub(crate) fn find<'a>(block: &'a [u8], name: &[u8]) -> Result<Option<Entry<'a>>> {
    find_near(block, 0, name)
}

/// The entry called `name` among those that begin from `at` on and before `end`.
fn find_between<'a>(
    block: &'a [u8],
    mut at: usize,
    end: usize,
    name: &[u8],
) -> Result<Option<Entry<'a>>> {
    let tail = name.last_chunk::<TAIL>();
    loop {
        if let Some(tail) = tail {
            at = pass(block, at, name.len(), *tail);
        }
        if at >= end {
            return Ok(None);
        }
        let entry = parse(block, at)?;
        if entry.ino != 0 && entry.name == name {
            return Ok(Some(entry));
        }
        at += entry.length;
    }
}

/// Where an entry of `need` bytes fits, looked for from the entry at `at` on: the position of the
/// entry in front of the gap.
pub(crate) fn find_gap(block: &[u8], mut at: usize, need: usize) -> Result<Option<usize>> {
    while at < block.len() {
        let head = Head::read(block, at)?;
        if head.length - head.used() >= need {
            return Ok(Some(at));
        }
        at += head.length;
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
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    /// The entry that then has the gap in which it was.
    pub(crate) front: usize,
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

/// What removes the entry at `at`, before which the one that gets its space is looked for from the
/// entry at `near` on.
///
/// # Errors
/// `Corrupt`, also if no entry begins there.
pub(crate) fn removal(block: &[u8], near: usize, at: usize) -> Result<Removal> {
    let (mut before, mut next) = (None, if near < at { near } else { 0 });
    while next < at.min(block.len()) {
        let head = Head::read(block, next)?;
        before = Some((next, head));
        next += head.length;
    }
    if next != at || at >= block.len() {
        return Err(Error::Corrupt("no directory entry where there was one"));
    }
    let length = Head::read(block, at)?.length;
    Ok(match before {
        Some((front, head)) => Removal {
            front,
            at: front + 4,
            length: Some((head.length + length) as u16),
            gap: head.length + length - head.used(),
        },
        None => Removal {
            front: at,
            at,
            length: None,
            gap: length,
        },
    })
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
        match find_gap(block, 0, needed(name.len())).expect("good") {
            Some(at) => {
                let gap = gap(block, at).expect("good");
                gap.fill(&mut block[gap.part(needed(name.len()))], ino, 1, name);
                true
            }
            None => false,
        }
    }

    fn remove(block: &mut [u8], at: usize) -> Result<usize> {
        let removal = removal(block, 0, at)?;
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
    fn it_is_all_the_same_where_a_search_begins() {
        let mut good = [0u8; 1024];
        clear(&mut good);
        for n in 0..60u32 {
            assert!(add(&mut good, 20 + n, &(n + 100_000).to_le_bytes()[..3]));
        }
        let all: Vec<usize> = entries(&good)
            .map(|entry| entry.expect("good").at)
            .collect();
        for near in all.clone() {
            for n in [0, 17, 59, 60] {
                let name = &(n + 100_000u32).to_le_bytes()[..3];
                assert_eq!(find_near(&good, near, name), find(&good, name));
            }
            for at in all.clone() {
                let all = [near, 0].map(|near| removal(&good, near, at));
                assert_eq!(all[0], all[1]);
            }
        }
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
        assert_eq!(find_gap(&block, 0, 1024), Ok(Some(0)));
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
        assert!(matches!(find_gap(&block, 0, 8), Err(Error::Corrupt(_))));
    }

    #[test]
    fn names_of_all_lengths_are_found_also_beside_others_that_end_alike() {
        let mut block = [0u8; 1024];
        clear(&mut block);
        let names: [&[u8]; 10] = [
            b"a",
            b"ba",
            b"aba",
            b"xaba",
            b"yaba",
            b"xxaba",
            b"aaaaaaaa",
            b"aaaaaaa",
            b"baaaaaaa",
            b"last",
        ];
        for (n, name) in names.iter().enumerate() {
            assert!(add(&mut block, 20 + n as u32, name));
        }
        for gone in [None, Some(0), Some(5), Some(9)] {
            if let Some(gone) = gone {
                assert!(take(&mut block, names[gone]));
            }
            let is_gone = |n| gone.is_some_and(|gone| [0, 5, 9].contains(&n) && n <= gone);
            for (n, name) in names.iter().enumerate() {
                let found = find(&block, name).expect("good").map(|entry| entry.ino);
                assert_eq!(found, (!is_gone(n)).then_some(20 + n as u32), "{n}");
            }
        }
        for name in [&b"none"[..], b"b", b"aaaa", b"caaaaaaa"] {
            assert_eq!(find(&block, name), Ok(None));
        }
    }

    #[test]
    fn what_is_wrong_is_found_wherever_it_stands() {
        let mut good = [0u8; 1024];
        clear(&mut good);
        let mut n = 0u32;
        while add(&mut good, 20, &(n + 100_000).to_le_bytes()) {
            n += 1;
        }
        let all: Vec<usize> = entries(&good)
            .map(|entry| entry.expect("good").at)
            .collect();
        for at in all {
            for (place, bytes) in [
                (4, [0, 0]),
                (4, [10, 0]),
                (4, [4, 0]),
                (4, [0xfc, 0xff]),
                (6, [200, 0]),
                (6, [0, 0]),
            ] {
                let mut block = good;
                block[at + place..at + place + 2].copy_from_slice(&bytes);
                for name in [&b"some name"[..], b"name", b"x"] {
                    assert!(matches!(find(&block, name), Err(Error::Corrupt(_))), "{at}");
                }
                assert!(matches!(find_gap(&block, 0, 900), Err(Error::Corrupt(_))));
            }
        }
    }

    #[test]
    fn a_block_that_ends_inside_an_entry_is_refused() {
        let mut block = [0u8; 1024];
        start(&mut block, 12, 2, 2);
        put_u16(&mut block, 16, 1008);
        assert!(matches!(find(&block, b"x"), Err(Error::Corrupt(_))));
    }
}
