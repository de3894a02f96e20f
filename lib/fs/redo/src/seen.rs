//! What names led to and what was known of inodes, remembered in tables of a fixed size, so that
//! nobody has to ask the file system again. All numbers are clients'.
//!
//! # When something may be remembered
//! Whoever asks the file system does so without a lock, and a change may overtake the answer. So he
//! takes a [`Ticket`] first, and what he found is remembered only if the ticket still counts: each
//! change of what the answer is about ends it, and another instance of the file system ends all.
//!
//! A change is noted in two steps, since who made it notes what came of it when others may make the
//! next. From its *begin* on, before the file system is asked for it, what it is about is neither
//! remembered nor does anybody remember it: an answer may be from before the change. Its *end* is
//! when it is done: tickets of meanwhile end, and what the name leads to now is remembered, unless
//! another change of what has its place here has begun since. That one was made later, whatever
//! ends first.
//!
//! # What a table costs
//! It is made when the first thing is to be remembered. Without memory for it there is none, and
//! everything is asked. What does not fit takes the place of something else: a place is looked for
//! among four, so whoever makes names that fall together loses them, and nothing else happens.

mod key;

use alloc::vec::Vec;

use key::{Key, mix};

use crate::engine::Host;

/// How often it is asked what a name leads to before those who change names have to wait.
const LOOKS: u32 = 4;
/// Places for one hash.
const WAYS: usize = 4;
/// Sets of names and of inodes; powers of two.
const NAME_SETS: usize = 512;
const INODE_SETS: usize = 256;

/// What has to be as it was when somebody began to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// A change that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// What a ticket was that was taken then.
    ticket: Ticket,
    /// There were sets, and the one of its hash counts it.
    in_set: bool,
}

/// The places for some hashes.
struct Set<E> {
    /// Counts changes of what may stand here.
    changes: u64,
    /// How many of them have not ended.
    under_way: u32,
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
    /// Changes that began when there was none, and have not ended.
    under_way: u32,
}

impl<E> Table<E> {
    const fn new(most: usize) -> Self {
        Table {
            sets: Vec::new(),
            most,
            epoch: 0,
            under_way: 0,
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

    /// Tickets for this hash end.
    fn end_tickets(&mut self, hash: u64) {
        match self.set_mut(hash) {
            Some(set) => set.changes += 1,
            None => self.epoch += 1,
        }
    }

    /// Tickets for this hash end, and what `is_it` goes.
    fn forget(&mut self, hash: u64, is_it: impl Fn(&E) -> bool) {
        self.end_tickets(hash);
        let ways = self.set_mut(hash).map(|set| &mut set.ways);
        for way in ways.into_iter().flatten() {
            way.take_if(|entry| is_it(entry));
        }
    }

    /// Puts `entry` in its place, unless something that it tells may have changed since.
    fn remember(&mut self, ticket: Ticket, hash: u64, entry: E, is_it: impl Fn(&E) -> bool) {
        if self.is_current(ticket, hash) {
            self.put(hash, entry, is_it);
        }
    }

    /// Whether nothing of this hash has changed since a ticket was taken.
    fn is_current(&self, ticket: Ticket, hash: u64) -> bool {
        let under_way = self.set_of(hash).map_or(0, |set| set.under_way);
        self.ticket(hash) == ticket && self.under_way == 0 && under_way == 0
    }

    /// A change of what `is_it` begins, which [`end`](Self::end) ends.
    fn begin(&mut self, hash: u64, is_it: impl Fn(&E) -> bool) -> Begun {
        self.forget(hash, is_it);
        let in_set = !self.sets.is_empty();
        if let Some(count) = self.under_way(hash, in_set) {
            *count += 1;
        }
        Begun {
            ticket: self.ticket(hash),
            in_set,
        }
    }

    /// A change is done, or given up; `entry` is what it has led to, if that is known.
    fn end(&mut self, hash: u64, begun: Begun, entry: Option<E>, is_it: impl Fn(&E) -> bool) {
        let is_newest = self.ticket(hash) == begun.ticket;
        if let Some(count) = self.under_way(hash, begun.in_set) {
            *count -= 1;
            // While another one is under way nobody remembers anything, and its end does this.
            if *count == 0 {
                self.end_tickets(hash);
            }
        }
        if let Some(entry) = entry.filter(|_| is_newest) {
            self.put(hash, entry, is_it);
        }
    }

    /// The count of changes that have not ended, where one is counted.
    fn under_way(&mut self, hash: u64, in_set: bool) -> Option<&mut u32> {
        match in_set {
            true => self.set_mut(hash).map(|set| &mut set.under_way),
            false => Some(&mut self.under_way),
        }
    }

    /// Puts `entry` in the place of what `is_it`, of nothing, or of something else, if there is
    /// memory for it.
    fn put(&mut self, hash: u64, entry: E, is_it: impl Fn(&E) -> bool) {
        if self.sets.is_empty() && !self.make() {
            return;
        }
        let Some(set) = self.set_mut(hash) else {
            return;
        };
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
    }

    /// Makes the table, if there is memory for it.
    #[cold]
    fn make(&mut self) -> bool {
        if self.sets.try_reserve_exact(self.most).is_err() {
            return false;
        }
        self.sets.resize_with(self.most, || Set {
            changes: 0,
            under_way: 0,
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

/// Where a name is remembered.
#[derive(Clone, Copy)]
pub struct Place {
    key: Key,
    hash: u64,
}

impl Place {
    /// That of a name in a directory.
    #[inline]
    pub fn new(directory: u64, name: &[u8]) -> Self {
        let key = Key::new(directory, name);
        let hash = key.hash();
        Place { key, hash }
    }
}

/// What names led to, also those that led to nothing.
pub struct Names(Table<Name>);

impl Default for Names {
    fn default() -> Self {
        Names(Table::new(NAME_SETS))
    }
}

impl Names {
    /// To be taken before a name is looked up.
    pub fn ticket(&self, place: &Place) -> Ticket {
        self.0.ticket(place.hash)
    }

    /// Whether a name has led to the same all the time since a ticket was taken, and does still.
    /// The directory lives then. It may be so and not be known.
    pub fn is_current(&self, ticket: Ticket, place: &Place) -> bool {
        self.0.is_current(ticket, place.hash)
    }

    /// What a name leads to, if that is remembered.
    #[inline]
    pub fn recall(&self, place: &Place) -> Option<Option<u64>> {
        let found = self.0.find(place.hash, |it| it.is(&place.key));
        found.map(|name| name.leads_to)
    }

    /// Remembers what a name led to, unless that may have changed since.
    pub fn remember(&mut self, ticket: Ticket, place: &Place, leads_to: Option<u64>) {
        if place.key.fits() {
            let key = place.key;
            let name = Name { key, leads_to };
            self.0.remember(ticket, place.hash, name, |it| it.is(&key));
        }
    }

    /// A change of a name begins.
    pub(crate) fn begin(&mut self, place: &Place) -> Begun {
        self.0.begin(place.hash, |it| it.is(&place.key))
    }

    /// A change of a name is done, and it leads to this; `None`: nobody knows.
    pub(crate) fn end(&mut self, place: &Place, begun: Begun, leads_to: Option<Option<u64>>) {
        let key = place.key;
        let entry = leads_to.filter(|_| place.key.fits());
        let entry = entry.map(|leads_to| Name { key, leads_to });
        self.0.end(place.hash, begun, entry, |it| it.is(&key));
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

/// Has `ask` say what a name leads to and what that is, until nobody has changed the name
/// meanwhile: both were so at one moment. After some tries `alone` says it, while nobody changes
/// anything.
pub fn steadily<H: Host, R>(
    host: &H,
    place: &Place,
    mut ask: impl FnMut() -> R,
    alone: impl FnOnce() -> R,
) -> R {
    for _ in 0..LOOKS {
        let ticket = host.front(|front| front.names.ticket(place));
        let answer = ask();
        if host.front(|front| front.names.is_current(ticket, place)) {
            return answer;
        }
    }
    alone()
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
        let entry = (inode, known);
        self.0
            .remember(ticket, mix(0, inode), entry, |it| it.0 == inode);
    }

    /// Something about an inode changes, or has changed.
    pub fn forget(&mut self, inode: u64) {
        self.0.forget(mix(0, inode), |it| it.0 == inode);
    }

    /// A change of an inode begins.
    pub(crate) fn begin(&mut self, inode: u64) -> Begun {
        self.0.begin(mix(0, inode), |it| it.0 == inode)
    }

    /// A change of an inode is done.
    pub(crate) fn end(&mut self, inode: u64, begun: Begun) {
        self.0.end(mix(0, inode), begun, None, |_| false);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::key::LONGEST;
    use super::*;

    /// A change of a name that is made at once.
    fn set(names: &mut Names, directory: u64, name: &[u8], leads_to: Option<u64>) {
        let place = Place::new(directory, name);
        let begun = names.begin(&place);
        names.end(&place, begun, Some(leads_to));
    }

    /// One of which nobody knows what came of it.
    fn forget(names: &mut Names, directory: u64, name: &[u8]) {
        let place = Place::new(directory, name);
        let begun = names.begin(&place);
        names.end(&place, begun, None);
    }

    #[test]
    fn a_name_is_remembered_and_so_is_that_it_leads_to_nothing() {
        let mut names = Names::default();
        let ticket = names.ticket(&Place::new(2, b"a"));
        names.remember(ticket, &Place::new(2, b"a"), Some(7));
        names.remember(
            names.ticket(&Place::new(2, b"b")),
            &Place::new(2, b"b"),
            None,
        );
        assert_eq!(names.recall(&Place::new(2, b"a")), Some(Some(7)));
        assert_eq!(names.recall(&Place::new(2, b"b")), Some(None));
        assert_eq!(
            (
                names.recall(&Place::new(3, b"a")),
                names.recall(&Place::new(2, b"c"))
            ),
            (None, None)
        );
    }

    #[test]
    fn an_answer_that_a_change_overtook_is_not_remembered() {
        let mut names = Names::default();
        // Also before there is a table.
        let early = names.ticket(&Place::new(2, b"a"));
        set(&mut names, 2, b"a", Some(9));
        names.remember(early, &Place::new(2, b"a"), Some(7));
        assert_eq!(names.recall(&Place::new(2, b"a")), Some(Some(9)));
        let late = names.ticket(&Place::new(2, b"a"));
        forget(&mut names, 2, b"a");
        names.remember(late, &Place::new(2, b"a"), Some(9));
        assert_eq!(names.recall(&Place::new(2, b"a")), None);
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
    fn nothing_is_remembered_while_a_change_is_under_way() {
        let place = Place::new(2, b"a");
        // Before there is a table, and when there is one.
        for is_first in [true, false] {
            let mut names = Names::default();
            if !is_first {
                set(&mut names, 3, b"b", None);
            }
            let before = names.ticket(&place);
            let one = names.begin(&place);
            let meanwhile = names.ticket(&place);
            for ticket in [before, meanwhile] {
                names.remember(ticket, &place, Some(7));
                assert_eq!(names.recall(&place), None);
            }
            let other = names.begin(&place);
            names.end(&place, one, Some(Some(8)));
            // The other one has begun since: it was made later.
            assert_eq!(names.recall(&place), None);
            let late = names.ticket(&place);
            names.remember(late, &place, Some(8));
            assert_eq!(names.recall(&place), None);
            names.end(&place, other, Some(Some(9)));
            for ticket in [before, meanwhile, late] {
                names.remember(ticket, &place, Some(7));
                assert_eq!(names.recall(&place), Some(Some(9)));
            }
            names.remember(names.ticket(&place), &place, Some(6));
            assert_eq!(names.recall(&place), Some(Some(6)));
        }
    }

    #[test]
    fn the_change_that_was_made_last_counts_whatever_ends_last() {
        let place = Place::new(2, b"a");
        let mut names = Names::default();
        let [one, other] = [0, 1].map(|_| names.begin(&place));
        names.end(&place, other, Some(Some(9)));
        names.end(&place, one, Some(Some(8)));
        assert_eq!(names.recall(&place), Some(Some(9)));
        // What another instance says is not what was before it.
        let begun = names.begin(&place);
        names.clear();
        names.end(&place, begun, Some(Some(7)));
        assert_eq!(names.recall(&place), None);
        let mut inodes = Inodes::default();
        inodes.remember(inodes.ticket(5), 5, "old");
        let begun = inodes.begin(5);
        inodes.remember(inodes.ticket(5), 5, "old");
        assert_eq!(inodes.recall(5), None);
        let meanwhile = inodes.ticket(5);
        inodes.end(5, begun);
        inodes.remember(meanwhile, 5, "old");
        assert_eq!(inodes.recall(5), None);
        inodes.remember(inodes.ticket(5), 5, "new");
        assert_eq!(inodes.recall(5), Some(&"new"));
    }

    #[test]
    fn another_instance_ends_everything() {
        let mut names = Names::default();
        set(&mut names, 2, b"a", Some(9));
        let ticket = names.ticket(&Place::new(2, b"b"));
        names.clear();
        names.remember(ticket, &Place::new(2, b"b"), Some(8));
        assert_eq!(
            (
                names.recall(&Place::new(2, b"a")),
                names.recall(&Place::new(2, b"b"))
            ),
            (None, None)
        );
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
        set(&mut names, 7, b"gone", None);
        set(&mut names, 8, b"other", None);
        let ticket = names.ticket(&Place::new(7, b"late"));
        names.forget_directory(7);
        names.remember(ticket, &Place::new(7, b"late"), None);
        assert_eq!(
            (
                names.recall(&Place::new(7, b"gone")),
                names.recall(&Place::new(7, b"late"))
            ),
            (None, None)
        );
        assert_eq!(names.recall(&Place::new(8, b"other")), Some(None));
    }

    #[test]
    fn names_are_told_apart_by_each_byte_and_their_length() {
        let mut names = Names::default();
        let all: Vec<u8> = (1..=LONGEST as u8).collect();
        for length in 1..=LONGEST {
            let name = &all[..length];
            set(&mut names, 2, name, Some(length as u64));
            for at in 0..length {
                let mut other = name.to_vec();
                other[at] ^= 0x80;
                assert_eq!(names.recall(&Place::new(2, &other)), None, "{length}, {at}");
            }
            let zero = [name, b"\0"].concat();
            assert_eq!(names.recall(&Place::new(2, &zero)), None, "{length}");
            assert_eq!(
                names.recall(&Place::new(2, name)),
                Some(Some(length as u64))
            );
        }
    }

    #[test]
    fn dots_and_long_names_are_always_asked() {
        let mut names = Names::default();
        let long = [b'n'; LONGEST + 1];
        for name in [b"".as_slice(), b".", b"..", &long] {
            set(&mut names, 2, name, Some(3));
            assert_eq!(names.recall(&Place::new(2, name)), None);
        }
        set(&mut names, 2, &long[1..], Some(3));
        assert_eq!(names.recall(&Place::new(2, &long[1..])), Some(Some(3)));
    }

    #[test]
    fn the_table_keeps_its_size_and_never_mixes_names_up() {
        let mut names = Names::default();
        for n in 0..10_000u64 {
            set(&mut names, n % 3, &n.to_le_bytes(), Some(n));
        }
        let there = (0..10_000).filter(|n| {
            let found = names.recall(&Place::new(n % 3, &n.to_le_bytes()));
            assert!(found.is_none() || found == Some(Some(*n)), "{n}");
            found.is_some()
        });
        let there = there.count();
        assert!(there > NAME_SETS && there <= NAME_SETS * WAYS, "{there}");
        assert_eq!(names.0.sets.len(), NAME_SETS);
    }
}
