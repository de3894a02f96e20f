//! Inodes of which more than the times has changed since the last commit: their length, the places
//! of their blocks, their links. Content of others that is on the medium is found there after a
//! power cut, so it needs no commit.

use alloc::vec::Vec;

/// The most that are told apart.
const MOST: usize = 256;

/// The inodes. In doubt one is among them.
#[derive(Default)]
pub(crate) struct Unsettled {
    /// In rising order.
    inodes: Vec<u32>,
    /// All are: there are too many, or there was no memory for them.
    all: bool,
}

impl Unsettled {
    /// Whether an inode is among them.
    pub(crate) fn has(&self, ino: u32) -> bool {
        self.all || self.inodes.binary_search(&ino).is_ok()
    }

    /// One more is.
    pub(crate) fn note(&mut self, ino: u32) {
        if self.all {
            return;
        }
        let Err(place) = self.inodes.binary_search(&ino) else {
            return;
        };
        let has_room = self.inodes.len() < MOST
            && (self.inodes.capacity() >= MOST || self.inodes.try_reserve_exact(MOST).is_ok());
        match has_room {
            true => self.inodes.insert(place, ino),
            false => self.all = true,
        }
    }

    /// Those of `other` are, too.
    pub(crate) fn absorb(&mut self, other: Unsettled) {
        self.all |= other.all;
        other.inodes.into_iter().for_each(|ino| self.note(ino));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_are_among_them_once_noted_and_all_are_where_there_are_many() {
        let mut some = Unsettled::default();
        for ino in (0..MOST as u32).rev().chain(0..MOST as u32) {
            some.note(ino * 2);
        }
        assert!((0..MOST as u32).all(|ino| some.has(ino * 2) && !some.has(ino * 2 + 1)));
        let mut other = Unsettled::default();
        other.note(7);
        other.note(8);
        let mut one = Unsettled::default();
        one.absorb(other);
        assert!(one.has(7) && one.has(8) && !one.has(9));
        some.absorb(one);
        assert!(some.has(9));
    }
}
