//! What names led to and what was known of inodes, remembered in tables of a fixed size, so that
//! nobody has to ask the file system again. All numbers are clients'.
//!
//! # When something may be remembered
//! Whoever asks the file system does so without a lock, and a change may overtake the answer. So he
//! takes a [`Ticket`] first, and what he found is remembered only if the ticket still counts: each
//! change of what the answer is about ends it, and another instance of the file system ends all.
//!
//! # What a table costs
//! It is made when the first thing is to be remembered. Without memory for it there is none, and
//! everything is asked. What does not fit takes the place of something else: a place is looked for
//! among four, so whoever makes names that fall together loses them, and nothing else happens.

mod key;

use alloc::vec::Vec;

use key::{Key, LONGEST, mix};

/// Places for one hash.
const WAYS: usize = 4;
/// Sets of names and of inodes; powers of two.
const NAME_SETS: usize = 512;
const INODE_SETS: usize = 256;

/// What has to be as it was when somebody began to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// The places for some hashes.
struct Set<E> {
    /// Counts changes of what may stand here.
    changes: u64,
    /// The place that is given away next.
    next: usize,
    ways: [Option<E>; WAYS],
}

struct Table<E> {
    /// Empty until something is remembered.
    sets: Vec<Set<E>>,
    most: usize,
    /// Counts what concerns all sets.
    epoch: u64,
}

impl<E> Table<E> {
    const fn new(most: usize) -> Self {
        Table {
            sets: Vec::new(),
            most,
            epoch: 0,
        }
    }

    fn set_of(&self, hash: u64) -> Option<&Set<E>> {
        self.sets.get(hash as usize & (self.most - 1))
    }

    fn set_mut(&mut self, hash: u64) -> Option<&mut Set<E>> {
        self.sets.get_mut(hash as usize & (self.most - 1))
    }

    fn find(&self, hash: u64, is_it: impl Fn(&E) -> bool) -> Option<&E> {
        let ways = &self.set_of(hash)?.ways;
        ways.iter().flatten().find(|entry| is_it(entry))
    }

    fn ticket(&self, hash: u64) -> Ticket {
        Ticket(self.epoch + self.set_of(hash).map_or(0, |set| set.changes))
    }

    /// Tickets for this hash end, and what `is_it` goes.
    fn forget(&mut self, hash: u64, is_it: impl Fn(&E) -> bool) {
        let Some(set) = self.set_mut(hash) else {
            self.epoch += 1;
            return;
        };
        set.changes += 1;
        set.ways
            .iter_mut()
            .for_each(|way| drop(way.take_if(|entry| is_it(entry))));
    }

    /// As [`put`](Self::put), and tickets for this hash end.
    fn set(&mut self, hash: u64, entry: E, is_it: impl Fn(&E) -> bool) {
        if self.sets.is_empty() {
            self.epoch += 1;
        }
        if let Some(set) = self.put(hash, entry, is_it) {
            set.changes += 1;
        }
    }

    /// Puts `entry` in the place of what `is_it`, of nothing, or of something else. `None`: there
    /// is no memory for it.
    fn put(&mut self, hash: u64, entry: E, is_it: impl Fn(&E) -> bool) -> Option<&mut Set<E>> {
        if self.sets.is_empty() && !self.make() {
            return None;
        }
        let set = self.set_mut(hash)?;
        let same = set
            .ways
            .iter()
            .position(|way| way.as_ref().is_some_and(&is_it));
        let at = same.or_else(|| set.ways.iter().position(Option::is_none));
        let at = at.unwrap_or_else(|| {
            set.next = (set.next + 1) % WAYS;
            set.next
        });
        set.ways[at] = Some(entry);
        Some(set)
    }

    /// Makes the table, if there is memory for it.
    #[cold]
    fn make(&mut self) -> bool {
        if self.sets.try_reserve_exact(self.most).is_err() {
            return false;
        }
        self.sets.resize_with(self.most, || Set {
            changes: 0,
            next: 0,
            ways: [const { None }; WAYS],
        });
        true
    }

    fn clear(&mut self) {
        self.epoch += 1;
        for set in &mut self.sets {
            set.ways = [const { None }; WAYS];
        }
    }
}

/// One name.
struct Name {
    key: Key,
    /// `None`: nothing.
    leads_to: Option<u64>,
}

impl Name {
    fn is(&self, key: &Key) -> bool {
        self.key.is(key)
    }
}

/// What names led to, also those that led to nothing.
pub struct Names(Table<Name>);

/// Whether a name is ever remembered: not if it is long, and not if it is what leads to a directory
/// itself or above it, which changes without a change of that name.
fn fits(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name != b"." && name != b".."
}

impl Default for Names {
    fn default() -> Self {
        Names(Table::new(NAME_SETS))
    }
}

impl Names {
    /// To be taken before a name is looked up.
    pub fn ticket(&self, directory: u64, name: &[u8]) -> Ticket {
        self.0.ticket(Key::new(directory, name).hash())
    }

    /// What a name leads to, if that is remembered.
    pub fn recall(&self, directory: u64, name: &[u8]) -> Option<Option<u64>> {
        let key = Key::new(directory, name);
        let found = self.0.find(key.hash(), |it| it.is(&key));
        found.map(|name| name.leads_to)
    }

    /// Remembers what a name led to, unless that may have changed since.
    pub fn remember(&mut self, ticket: Ticket, directory: u64, name: &[u8], leads_to: Option<u64>) {
        let key = Key::new(directory, name);
        let hash = key.hash();
        if self.0.ticket(hash) == ticket && fits(name) {
            self.0.put(hash, Name { key, leads_to }, |it| it.is(&key));
        }
    }

    /// A name leads to this from now on.
    pub(crate) fn set(&mut self, directory: u64, name: &[u8], leads_to: Option<u64>) {
        let key = Key::new(directory, name);
        let hash = key.hash();
        match fits(name) {
            true => self.0.set(hash, Name { key, leads_to }, |it| it.is(&key)),
            false => self.0.forget(hash, |it| it.is(&key)),
        }
    }

    /// Nobody knows for now what a name leads to.
    pub(crate) fn forget(&mut self, directory: u64, name: &[u8]) {
        let key = Key::new(directory, name);
        self.0.forget(key.hash(), |it| it.is(&key));
    }

    /// A directory is removed: its number may become that of something else.
    pub(crate) fn forget_directory(&mut self, directory: u64) {
        self.0.epoch += 1;
        for way in self.0.sets.iter_mut().flat_map(|set| &mut set.ways) {
            way.take_if(|name| name.key.directory() == directory);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// What was known of inodes, as the file system said it.
pub struct Inodes<K>(Table<(u64, K)>);

impl<K> Default for Inodes<K> {
    fn default() -> Self {
        Inodes(Table::new(INODE_SETS))
    }
}

impl<K> Inodes<K> {
    /// To be taken before an inode is asked about.
    pub fn ticket(&self, inode: u64) -> Ticket {
        self.0.ticket(mix(0, inode))
    }

    /// What is remembered of an inode.
    pub fn recall(&self, inode: u64) -> Option<&K> {
        let found = self.0.find(mix(0, inode), |it| it.0 == inode);
        found.map(|it| &it.1)
    }

    /// Remembers what was found, unless it may have changed since.
    pub fn remember(&mut self, ticket: Ticket, inode: u64, known: K) {
        if self.ticket(inode) == ticket {
            self.0
                .put(mix(0, inode), (inode, known), |it| it.0 == inode);
        }
    }

    /// Something about an inode changes, or has changed.
    pub fn forget(&mut self, inode: u64) {
        self.0.forget(mix(0, inode), |it| it.0 == inode);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_remembered_and_so_is_that_it_leads_to_nothing() {
        let mut names = Names::default();
        let ticket = names.ticket(2, b"a");
        names.remember(ticket, 2, b"a", Some(7));
        names.remember(names.ticket(2, b"b"), 2, b"b", None);
        assert_eq!(names.recall(2, b"a"), Some(Some(7)));
        assert_eq!(names.recall(2, b"b"), Some(None));
        assert_eq!((names.recall(3, b"a"), names.recall(2, b"c")), (None, None));
    }

    #[test]
    fn an_answer_that_a_change_overtook_is_not_remembered() {
        let mut names = Names::default();
        // Also before there is a table.
        let early = names.ticket(2, b"a");
        names.set(2, b"a", Some(9));
        names.remember(early, 2, b"a", Some(7));
        assert_eq!(names.recall(2, b"a"), Some(Some(9)));
        let late = names.ticket(2, b"a");
        names.forget(2, b"a");
        names.remember(late, 2, b"a", Some(9));
        assert_eq!(names.recall(2, b"a"), None);
        let mut inodes = Inodes::default();
        let early = inodes.ticket(5);
        inodes.forget(5);
        inodes.remember(early, 5, "old");
        assert_eq!(inodes.recall(5), None);
        inodes.remember(inodes.ticket(5), 5, "new");
        let late = inodes.ticket(5);
        inodes.forget(5);
        inodes.remember(late, 5, "old");
        assert_eq!(inodes.recall(5), None);
    }

    #[test]
    fn another_instance_ends_everything() {
        let mut names = Names::default();
        names.set(2, b"a", Some(9));
        let ticket = names.ticket(2, b"b");
        names.clear();
        names.remember(ticket, 2, b"b", Some(8));
        assert_eq!((names.recall(2, b"a"), names.recall(2, b"b")), (None, None));
        let mut inodes = Inodes::default();
        inodes.remember(inodes.ticket(5), 5, 1);
        let ticket = inodes.ticket(6);
        inodes.clear();
        inodes.remember(ticket, 6, 1);
        assert_eq!((inodes.recall(5), inodes.recall(6)), (None, None));
    }

    #[test]
    fn a_removed_directory_has_no_names() {
        let mut names = Names::default();
        names.set(7, b"gone", None);
        names.set(8, b"other", None);
        let ticket = names.ticket(7, b"late");
        names.forget_directory(7);
        names.remember(ticket, 7, b"late", None);
        assert_eq!(
            (names.recall(7, b"gone"), names.recall(7, b"late")),
            (None, None)
        );
        assert_eq!(names.recall(8, b"other"), Some(None));
    }

    #[test]
    fn names_are_told_apart_by_each_byte_and_their_length() {
        let mut names = Names::default();
        let all: Vec<u8> = (1..=LONGEST as u8).collect();
        for length in 1..=LONGEST {
            let name = &all[..length];
            names.set(2, name, Some(length as u64));
            for at in 0..length {
                let mut other = name.to_vec();
                other[at] ^= 0x80;
                assert_eq!(names.recall(2, &other), None, "{length}, {at}");
            }
            let zero = [name, b"\0"].concat();
            assert_eq!(names.recall(2, &zero), None, "{length}");
            assert_eq!(names.recall(2, name), Some(Some(length as u64)));
        }
    }

    #[test]
    fn dots_and_long_names_are_always_asked() {
        let mut names = Names::default();
        let long = [b'n'; LONGEST + 1];
        for name in [b"".as_slice(), b".", b"..", &long] {
            names.set(2, name, Some(3));
            assert_eq!(names.recall(2, name), None);
        }
        names.set(2, &long[1..], Some(3));
        assert_eq!(names.recall(2, &long[1..]), Some(Some(3)));
    }

    #[test]
    fn the_table_keeps_its_size_and_never_mixes_names_up() {
        let mut names = Names::default();
        for n in 0..10_000u64 {
            names.set(n % 3, &n.to_le_bytes(), Some(n));
        }
        let there = (0..10_000).filter(|n| {
            let found = names.recall(n % 3, &n.to_le_bytes());
            assert!(found.is_none() || found == Some(Some(*n)), "{n}");
            found.is_some()
        });
        let there = there.count();
        assert!(there > NAME_SETS && there <= NAME_SETS * WAYS, "{there}");
        assert_eq!(names.0.sets.len(), NAME_SETS);
    }
}
