//! What is remembered of some blocks of directories, so that neither a name that is not there, nor
//! one beside the last, nor room for a new one is looked for in all entries.
//!
//! - *Names*: two bits for each hash of a name that may be there. It only ever says "perhaps"; what
//!   it must never do is leave out a name. So a name enters it at once, also if its transaction is
//!   dropped later, a removed name stays, and it is made only by a transaction that has changed
//!   nothing yet.
//! - *Places*: where an entry begins that was looked at last, one before it, and one before which
//!   there is no room. They hold for the block as the transaction sees it that works with it.
//!   Whoever drops one that has changed something calls [`forget_places`](Notes::forget_places).
//!
//! Blocks whose numbers fall together share one place. Whoever makes a block anew, or has its
//! entries lie elsewhere in it, calls [`forget`](Notes::forget).

use alloc::vec::Vec;

use crate::dirindex::hash;

/// Blocks of which something is remembered.
const BLOCKS: usize = 32;
/// Words of the bits for names.
const WORDS: usize = 64;
/// Names that were looked for in vain before it is worth to note all that are there.
const MISSES: u32 = 3;
/// Removed names that the bits may have.
const STALE: u32 = 64;
/// Spreads a hash over all bits of a word.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// What is remembered of a block. 0 is no directory's.
struct Note {
    block: u32,
    /// `None`: not noted, see `misses`.
    names: Option<Names>,
    misses: u32,
    stale: u32,
    /// The entry that was looked at last, and one before it, or the first.
    near: usize,
    before: usize,
    /// In front of this entry there is no gap of so many bytes.
    full: Option<(usize, usize)>,
}

impl Note {
    fn new(block: u32) -> Self {
        Note {
            block,
            names: None,
            misses: 0,
            stale: 0,
            near: 0,
            before: 0,
            full: None,
        }
    }
}

/// What is remembered of all blocks.
#[derive(Default)]
pub(crate) struct Notes(Vec<Note>);

/// Names that may be in a block: two bits for each hash.
pub(crate) struct Names([u64; WORDS]);

impl Default for Names {
    fn default() -> Self {
        Names([0; WORDS])
    }
}

/// The words and bits of a name. One bit alone, in a block of 200 names, says "perhaps" of each
/// twentieth name that is not there, for which then all entries are looked at. Names that differ in
/// a digit have hashes that do so in few places, so the bits are taken from where these have been
/// spread to.
fn bits(name: &[u8]) -> [(usize, u64); 2] {
    let spread = u64::from(hash(name)).wrapping_mul(SPREAD);
    [spread >> 52, spread >> 40].map(|hash| ((hash >> 6) as usize % WORDS, 1 << (hash % 64)))
}

impl Names {
    /// A name is there.
    pub(crate) fn add(&mut self, name: &[u8]) {
        for (word, bit) in bits(name) {
            self.0[word] |= bit;
        }
    }

    fn lacks(&self, name: &[u8]) -> bool {
        bits(name)
            .iter()
            .any(|(word, bit)| self.0[*word] & bit == 0)
    }
}

impl Notes {
    fn of(&self, block: u32) -> Option<&Note> {
        let note = self.0.get(block as usize % BLOCKS)?;
        (note.block == block).then_some(note)
    }

    fn of_mut(&mut self, block: u32) -> Option<&mut Note> {
        let note = self.0.get_mut(block as usize % BLOCKS)?;
        (note.block == block).then_some(note)
    }

    /// The note of a block, in place of that of another one; `None` if there is no memory.
    fn take(&mut self, block: u32) -> Option<&mut Note> {
        if self.0.is_empty() {
            self.0.try_reserve_exact(BLOCKS).ok()?;
            self.0.resize_with(BLOCKS, || Note::new(0));
        }
        let note = &mut self.0[block as usize % BLOCKS];
        if note.block != block {
            *note = Note::new(block);
        }
        Some(note)
    }

    /// Whether a name is certainly not in a block.
    pub(crate) fn lacks(&self, block: u32, name: &[u8]) -> bool {
        let names = self.of(block).and_then(|note| note.names.as_ref());
        names.is_some_and(|names| names.lacks(name))
    }

    /// An entry of a block, near which a search may begin.
    pub(crate) fn near(&self, block: u32) -> usize {
        self.of(block).map_or(0, |note| note.near)
    }

    /// An entry of a block before that at `at`, unless that is the first.
    pub(crate) fn before(&self, block: u32, at: usize) -> usize {
        let Some(note) = self.of(block) else {
            return 0;
        };
        let places = [note.near, note.before];
        places.into_iter().find(|place| *place < at).unwrap_or(0)
    }

    /// An entry of a block before which there is no gap of `need` bytes.
    pub(crate) fn full(&self, block: u32, need: usize) -> usize {
        let full = self.of(block).and_then(|note| note.full);
        full.filter(|(bytes, _)| *bytes <= need)
            .map_or(0, |(_, at)| at)
    }

    /// A name was found at `at`.
    pub(crate) fn found(&mut self, block: u32, at: usize) {
        if let Some(note) = self.take(block) {
            if note.near < at {
                note.before = note.near;
            } else if note.near > at {
                note.before = 0;
            }
            note.near = at;
        }
    }

    /// A name was looked for in vain. Whether [`set_names`](Self::set_names) is worth it.
    pub(crate) fn missed(&mut self, block: u32) -> bool {
        let Some(note) = self.take(block) else {
            return false;
        };
        note.misses = note.misses.saturating_add(1);
        note.names.is_none() && note.misses > MISSES
    }

    /// Notes all names of a block.
    pub(crate) fn set_names(&mut self, block: u32, names: Names) {
        if let Some(note) = self.take(block) {
            (note.names, note.stale) = (Some(names), 0);
        }
    }

    /// The first gap of `need` bytes is that of the entry at `at`.
    pub(crate) fn found_gap(&mut self, block: u32, need: usize, at: usize) {
        if let Some(note) = self.take(block)
            && note.full.is_none_or(|(bytes, _)| need <= bytes)
        {
            note.full = Some((need, at));
        }
    }

    /// A name was put into the gap of the entry at `at`.
    pub(crate) fn added(&mut self, block: u32, name: &[u8], at: usize) {
        if let Some(note) = self.of_mut(block) {
            (note.near, note.before) = (at, 0);
            if let Some(names) = &mut note.names {
                names.add(name);
            }
        }
    }

    /// The entry at `at` was removed; the gap is now that of the entry at `front`.
    pub(crate) fn removed(&mut self, block: u32, at: usize, front: usize) {
        let Some(note) = self.of_mut(block) else {
            return;
        };
        (note.near, note.before) = (front, 0);
        if let Some((_, full)) = &mut note.full
            && *full >= at
        {
            *full = front;
        }
        note.stale += 1;
        if note.stale > STALE {
            // The next name that is looked for in vain has them noted anew.
            (note.names, note.stale) = (None, 0);
        }
    }

    /// Forgets a block.
    pub(crate) fn forget(&mut self, block: u32) {
        if let Some(note) = self.of_mut(block) {
            *note = Note::new(0);
        }
    }

    /// Forgets where entries begin.
    pub(crate) fn forget_places(&mut self) {
        for note in &mut self.0 {
            (note.near, note.before, note.full) = (0, 0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_perhaps_there_or_certainly_not() {
        let mut notes = Notes::default();
        assert!(!notes.lacks(7, b"a"));
        assert!((0..MISSES).all(|_| !notes.missed(7)));
        assert!(notes.missed(7));
        let mut names = Names::default();
        names.add(b"a");
        names.add(b"b");
        notes.set_names(7, names);
        assert!(!notes.lacks(7, b"a") && notes.lacks(7, b"c"));
        notes.added(7, b"c", 0);
        notes.removed(7, 0, 0);
        assert!(!notes.lacks(7, b"c") && !notes.missed(7));
        // After many removals they are to be noted anew.
        (0..=STALE).for_each(|_| notes.removed(7, 0, 0));
        assert!(!notes.lacks(7, b"x"));
        assert!(notes.missed(7));
        // Another block in the same place.
        notes.set_names(7, Names::default());
        notes.found(7 + BLOCKS as u32, 24);
        assert!(!notes.lacks(7, b"x"));
        assert_eq!(notes.near(7), 0);
    }

    #[test]
    fn few_names_that_are_like_those_there_are_perhaps_there() {
        let mut names = Names::default();
        let called = |what: &str, n: usize| alloc::format!("{what}{n:03}").into_bytes();
        (0..200).for_each(|n| names.add(&called("new", n)));
        assert!((0..200).all(|n| !names.lacks(&called("new", n))));
        for what in ["old", "new1", "new_"] {
            let perhaps = (0..200).filter(|n| !names.lacks(&called(what, *n)));
            let perhaps = perhaps.count();
            assert!(perhaps < 10, "{what}: {perhaps}");
        }
    }

    #[test]
    fn places_hold_over_what_is_removed_and_added() {
        let mut notes = Notes::default();
        notes.found_gap(7, 16, 100);
        assert_eq!([12, 16, 20].map(|need| notes.full(7, need)), [0, 100, 100]);
        // What is behind it leaves it as it is, what is there or before does not.
        notes.removed(7, 200, 180);
        assert_eq!((notes.full(7, 16), notes.near(7)), (100, 180));
        notes.removed(7, 100, 80);
        assert_eq!((notes.full(7, 16), notes.near(7)), (80, 80));
        notes.removed(7, 40, 20);
        assert_eq!(notes.full(7, 16), 20);
        // A smaller one tells more, a larger one less.
        notes.found_gap(7, 20, 200);
        assert_eq!(notes.full(7, 20), 20);
        notes.found_gap(7, 12, 60);
        assert_eq!(notes.full(7, 12), 60);
        // What is before the last that was found is known, if that lies behind the one before.
        (40..60).step_by(4).for_each(|at| notes.found(7, at));
        assert_eq!([60, 56, 55].map(|at| notes.before(7, at)), [56, 52, 52]);
        notes.found(7, 56);
        assert_eq!(notes.before(7, 56), 52);
        notes.found(7, 20);
        assert_eq!(notes.before(7, 20), 0);
        notes.forget_places();
        assert_eq!((notes.full(7, 12), notes.near(7)), (0, 0));
    }
}
