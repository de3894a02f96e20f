//! An instance dies at every byte that it writes and before every operation of its store; the next
//! one has what was there before the change, or after it.

use std::collections::BTreeMap;

use ramfs::{Error, Kind, Limits, Opened, RamFs};

use crate::Random;
use crate::memory::Memory;
use crate::ram::{Ram, Seen};

const LIMITS: Limits = Limits {
    bytes: 8 << 20,
    inodes: 1000,
};

/// A change, at a time.
type Change = fn(&mut Ram, u64) -> Result<(), Error>;

fn at(ram: &Ram, path: &str) -> Result<u64, Error> {
    let names = path.split('/').filter(|name| !name.is_empty());
    let mut at = ram.root();
    for name in names {
        at = ram.lookup(at, name.as_bytes())?;
    }
    Ok(at)
}

fn write(ram: &mut Ram, path: &str, offset: u64, data: &[u8], now: u64) -> Result<(), Error> {
    let file = at(ram, path)?;
    match ram.write(file, offset, data, now)? == data.len() {
        true => Ok(()),
        false => Err(SHORT),
    }
}

/// What [`write`] says when a part was written.
const SHORT: Error = Error::TooLarge;

/// The directory that a name is in, and the name.
fn split<'a>(ram: &Ram, path: &'a str) -> Result<(u64, &'a [u8]), Error> {
    let (directory, name) = path.rsplit_once('/').expect("a path");
    Ok((at(ram, directory)?, name.as_bytes()))
}

fn make(ram: &mut Ram, path: &str, kind: Kind, now: u64) -> Result<(), Error> {
    let (directory, name) = split(ram, path)?;
    ram.create(directory, name, kind, 0o644, now).map(drop)
}

fn cut(ram: &mut Ram, path: &str, size: u64, now: u64) -> Result<(), Error> {
    let file = at(ram, path)?;
    ram.truncate(file, size, now)
}

fn link(ram: &mut Ram, path: &str, to: &str, now: u64) -> Result<(), Error> {
    let (file, (directory, name)) = (at(ram, path)?, split(ram, to)?);
    ram.link(directory, name, file, now)
}

fn unlink(ram: &mut Ram, path: &str, now: u64) -> Result<(), Error> {
    let (directory, name) = split(ram, path)?;
    ram.unlink(directory, name, now)
}

fn rename(ram: &mut Ram, path: &str, to: &str, now: u64) -> Result<(), Error> {
    let ((from, name), (to, new_name)) = (split(ram, path)?, split(ram, to)?);
    ram.rename(from, name, to, new_name, now)
}

/// Every kind of change, in every state that matters to it.
const CHANGES: &[Change] = &[
    |ram, now| make(ram, "/f", Kind::Regular, now),
    |ram, now| write(ram, "/f", 0, b"the first bytes", now),
    // Nothing to be noted: the same size in the same second.
    |ram, _| write(ram, "/f", 4, b"FIRST", 1001),
    |ram, now| write(ram, "/f", 10, b"bytes over the end", now),
    // A hole in the page, and one of pages.
    |ram, now| write(ram, "/f", 100, b"behind a hole", now),
    |ram, now| write(ram, "/f", 9000, b"behind a hole of pages", now),
    |ram, now| write(ram, "/f", 4000, &[b'x'; 300], now),
    |ram, now| cut(ram, "/f", 4100, now),
    |ram, now| cut(ram, "/f", 50, now),
    // What was cut off must not come back.
    |ram, now| cut(ram, "/f", 5000, now),
    |ram, now| make(ram, "/d", Kind::Directory, now),
    |ram, now| make(ram, "/d/e", Kind::Directory, now),
    |ram, now| make(ram, "/d/g", Kind::Regular, now),
    |ram, now| cut(ram, "/d/g", 3, now),
    |ram, now| write(ram, "/d/g", 0, b"g", now),
    |ram, now| {
        let directory = at(ram, "/d")?;
        ram.symlink(directory, b"s", b"where it leads", now)
            .map(drop)
    },
    |ram, now| link(ram, "/f", "/d/e/f2", now),
    |ram, now| {
        let file = at(ram, "/d/e/f2")?;
        ram.set_mode(file, 0o4711, now)
    },
    |ram, now| {
        let directory = at(ram, "/d")?;
        ram.set_times(directory, Some(5), None, now)
    },
    |ram, now| unlink(ram, "/f", now),
    |ram, now| rename(ram, "/d", "/D", now),
    // Over another file, over nothing, over an empty directory, and a directory elsewhere.
    |ram, now| rename(ram, "/D/e/f2", "/D/g", now),
    |ram, now| make(ram, "/empty", Kind::Directory, now),
    |ram, now| rename(ram, "/D/e", "/empty", now),
    |ram, now| rename(ram, "/D/s", "/empty/t", now),
    |ram, now| make(ram, "/in-a-free-place", Kind::Regular, now),
    |ram, now| write(ram, "/in-a-free-place", 1, b"x", now),
    |ram, now| unlink(ram, "/D/g", now),
    |ram, now| make(ram, "/other", Kind::Regular, now),
    |ram, now| write(ram, "/other", 4090, b"over the end of a page", now),
    |ram, now| unlink(ram, "/other", now),
    |ram, now| unlink(ram, "/empty/t", now),
    |ram, now| ram.remove_directory(1, b"empty", now),
];

/// Whether `seen` is `before` or `after`, or between them as far as the bytes of a write go.
fn is_one_of(seen: &Seen, before: &Seen, after: &Seen) -> bool {
    let is_between = |as_in: &Seen| {
        seen.lines == as_in.lines
            && seen.contents.iter().all(|(path, content)| {
                let [before, after] = [before, after].map(|other| other.contents.get(path));
                let of = |content: Option<&Vec<u8>>, at| content.and_then(|it| it.get(at)).copied();
                content
                    .iter()
                    .enumerate()
                    .all(|(at, &byte)| [of(before, at), of(after, at)].contains(&Some(byte)))
            })
    };
    is_between(before) || is_between(after)
}

/// Says what is seen to be wrong.
fn expect_one_of(what: &str, seen: &Seen, before: &Seen, after: &Seen) {
    assert!(
        is_one_of(seen, before, after),
        "{what}:\n{:#?}\nwas before\n{:#?}\nwould be\n{:#?}",
        seen.lines,
        before.lines,
        after.lines
    );
}

/// The store after the first changes, and what is seen in it.
fn after(changes: &[Change]) -> (Memory, Seen) {
    let store = Memory::default();
    let mut ram = Ram::over(store.clone(), LIMITS, 5000, 1000);
    for (now, change) in (1001..).zip(changes) {
        change(&mut ram, now).expect("it can be done");
    }
    drop(ram);
    let seen = Ram::again(&store, LIMITS).seen(true);
    (store, seen)
}

/// Files that are not there take no memory: the store has what a new instance knows, no more.
fn expect_no_rest(store: &Memory, ram: &Ram) {
    let mut taken = BTreeMap::new();
    for (path, _) in ram.seen(true).contents {
        let inode = at(ram, &path).expect("seen");
        let of = ram.attributes(inode).expect("seen");
        taken.insert(inode, of.memory as usize / 4096);
    }
    let pages: usize = taken.into_values().sum();
    let journal = store.bytes(0).len() / 4096;
    assert_eq!(store.pages() - journal, pages, "keys {:?}", store.keys());
}

#[test]
fn a_death_at_any_byte_leaves_before_or_after() {
    let mut deaths = 0;
    for (number, change) in CHANGES.iter().enumerate() {
        let (store, before) = after(&CHANGES[..number]);
        let (_, after) = after(&CHANGES[..=number]);
        let now = 1001 + number as u64;
        for fuel in 0.. {
            let store = store.copy();
            let mut ram = Ram::again(&store, LIMITS);
            store.set_fuel(Some(fuel));
            let done = change(&mut ram, now);
            drop(ram);
            store.set_fuel(None);
            let mut next = Ram::again(&store, LIMITS);
            let seen = next.seen(true);
            let what = format!("change {number}, dead after {fuel}");
            expect_one_of(&what, &seen, &before, &after);
            expect_no_rest(&store, &next);
            if done.is_ok() {
                assert!(seen == after, "{what}: it was acknowledged");
                break;
            }
            deaths += 1;
            // It goes on as if nothing had been.
            if seen.lines != after.lines || seen.contents != after.contents {
                let again = change(&mut next, now);
                again.unwrap_or_else(|error| panic!("{what}: {error:?} when it is done again"));
            }
            let seen = next.seen(false);
            let mut unnumbered = Ram::again(&store, LIMITS).seen(false);
            assert!(seen == unnumbered, "{what}: what is seen is what is kept");
            unnumbered.lines.clear();
            assert!(
                seen.contents == after.contents,
                "{what}: done again it is as if done once"
            );
        }
    }
    assert!(deaths > 3000, "only {deaths}");
}

#[test]
fn a_death_while_it_opens_changes_nothing() {
    // A record that was cut off, and content that is behind the end, are put in order there.
    let (store, before) = after(CHANGES);
    let mut ram = Ram::again(&store, LIMITS);
    store.set_fuel(Some(5000));
    let file = at(&ram, "/in-a-free-place").expect("there");
    assert_eq!(ram.write(file, 1, &[9; 20_000], 2), Err(Error::Broken));
    store.set_fuel(Some(30));
    let mut ram = Ram::again(&store, LIMITS);
    assert_eq!(ram.unlink(1, b"in-a-free-place", 3), Err(Error::Broken));
    store.set_fuel(None);
    let mut fuel = 0;
    loop {
        let copy = store.copy();
        copy.set_fuel(Some(fuel));
        let is_open = matches!(RamFs::open(copy.clone(), LIMITS), Ok(Opened::Files(_)));
        copy.set_fuel(None);
        let seen = Ram::again(&copy, LIMITS).seen(true);
        assert_eq!(seen.lines, before.lines, "dead after {fuel}");
        if is_open {
            break;
        }
        fuel += 1;
    }
    assert!(fuel > 20, "only {fuel}");
}

#[test]
fn a_journal_that_grows_is_replaced_at_once() {
    let (store, _) = after(&CHANGES[..20]);
    let mut ram = Ram::again(&store, LIMITS);
    let file = at(&ram, "/d/g").expect("there");
    let is_due = |store: &Memory| store.bytes(0).len() >= (256 + 20) << 10;
    let mut now = 2000;
    while !is_due(&store) {
        ram.set_times(file, None, None, now).expect("there is room");
        now += 1;
    }
    let before = ram.seen(true);
    let long = store.bytes(0).len();
    drop(ram);
    let mut fuel = 0;
    loop {
        let copy = store.copy();
        let mut ram = Ram::again(&copy, LIMITS);
        copy.set_fuel(Some(fuel));
        let mut done = Ok(());
        // The next change or one of the next hundred is the one that finds it long enough.
        for _ in 0..400 {
            done = done.and_then(|()| ram.set_times(file, None, None, now - 1));
        }
        drop(ram);
        copy.set_fuel(None);
        let seen = Ram::again(&copy, LIMITS).seen(true);
        assert!(seen == before, "dead after {fuel}: {:#?}", seen.lines);
        if done.is_ok() {
            assert!(copy.bytes(0).len() < long / 2, "it is short again");
            break;
        }
        // All that is on the way to the switch, and each step around it.
        fuel += if fuel % 4096 < 60 { 1 } else { 409 };
    }
    assert!(fuel > 10_000, "only {fuel}");
}

#[test]
fn a_journal_cut_off_anywhere_is_that_of_a_moment() {
    // Names alone: content is not older than its journal in any death.
    let is_names = |number: &usize| matches!(number, 0 | 10..=12 | 15..=18 | 20 | 22 | 23 | 25);
    let store = Memory::default();
    let mut ram = Ram::over(store.clone(), LIMITS, 5000, 1000);
    let mut moments = vec![ram.seen(true)];
    for number in (0..CHANGES.len()).filter(is_names) {
        CHANGES[number](&mut ram, 1001 + number as u64).expect("it can be done");
        moments.push(ram.seen(true));
    }
    drop(ram);
    let whole = store.bytes(0);
    let end = whole.iter().rposition(|&byte| byte != 0).expect("records") + 1;
    let mut met = vec![false; moments.len()];
    for length in 0..=end {
        let copy = store.copy();
        let mut bytes = whole[..length].to_vec();
        bytes.resize(whole.len(), 0);
        copy.replace(0, &bytes);
        match RamFs::open(copy.clone(), LIMITS).expect("there is memory") {
            Opened::Files(_) => {
                let seen = Ram::again(&copy, LIMITS).seen(true);
                let moment = moments.iter().position(|moment| *moment == seen);
                met[moment.unwrap_or_else(|| panic!("{length}: {:#?}", seen.lines))] = true;
            }
            Opened::Nothing(_) => panic!("{length}: nothing"),
            // Not so much as the root: no such journal was ever kept.
            Opened::Damaged(..) => assert!(!met[0], "{length}: damage"),
        }
    }
    assert!(met.iter().all(|&met| met));
}

#[test]
fn a_changed_byte_is_noticed() {
    let (store, seen) = after(CHANGES);
    let (_, without_last) = after(&CHANGES[..CHANGES.len() - 1]);
    let whole = store.bytes(0);
    let end = whole.iter().rposition(|&byte| byte != 0).expect("records") + 1;
    let mut noticed = 0;
    for at in 0..end as u64 + 200 {
        for by in [1, 0x80, 0xa5] {
            let copy = store.copy();
            copy.damage(0, at, by);
            match RamFs::open(copy.clone(), LIMITS).expect("there is memory") {
                Opened::Damaged(store, _) => {
                    noticed += 1;
                    let ram = RamFs::new(store, LIMITS, 9000, 7).expect("there is memory");
                    drop(ram);
                    assert_eq!(Ram::again(&copy, LIMITS).seen(true).lines.len(), 1);
                    assert_eq!(copy.keys(), [0], "what was there is gone");
                }
                // It looks as if somebody had died over the last record, or the one behind it.
                Opened::Files(_) => {
                    let found = Ram::again(&copy, LIMITS).seen(true).lines;
                    assert!(
                        [&seen.lines, &without_last.lines].contains(&&found),
                        "byte {at}"
                    );
                }
                Opened::Nothing(_) => panic!("byte {at}: nothing"),
            }
        }
    }
    assert!(noticed > 3 * end - 10, "{noticed} of {end} bytes");
}

/// One change at random; the same for the same random numbers and the same files.
fn random_change(ram: &mut Ram, random: &mut Random, now: u64) -> Result<(), Error> {
    const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
    let mut place = || {
        let mut at = ram.root();
        for _ in 0..random.below(3) {
            let next = ram.lookup(at, NAMES[random.below(4)]);
            let is_directory = |&inode: &u64| {
                ram.attributes(inode)
                    .is_ok_and(|of| of.kind == Kind::Directory)
            };
            at = next.ok().filter(is_directory).unwrap_or(at);
        }
        (at, NAMES[random.below(4)])
    };
    let ((directory, name), (to, new_name)) = (place(), place());
    let size = [10, 5000, 70_000][random.below(3)];
    let (offset, length) = (random.below(size) as u64, random.below(size) + 1);
    let found = ram.lookup(directory, name);
    match random.below(14) {
        0 | 1 => ram
            .create(directory, name, Kind::Regular, 0o600, now)
            .map(drop),
        2 | 3 => ram
            .create(directory, name, Kind::Directory, 0o700, now)
            .map(drop),
        4 => ram.symlink(directory, name, new_name, now).map(drop),
        5 => ram.link(to, new_name, found?, now),
        6 => ram.unlink(directory, name, now),
        7 => ram.remove_directory(directory, name, now),
        8 | 9 => ram.rename(directory, name, to, new_name, now),
        10 => ram.truncate(found?, offset, now),
        11 => ram.set_mode(found?, offset as u16, now),
        _ => {
            let data = vec![now as u8 | 1; length];
            let count = ram.write(found?, offset, &data, now)?;
            assert_eq!(count, length, "there is room");
            Ok(())
        }
    }
}

#[test]
fn random_changes_and_deaths_are_those_of_a_twin() {
    let limits = Limits {
        bytes: 64 << 20,
        inodes: 1000,
    };
    for seed in 1..=3 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let store = Memory::default();
        let mut ram = Ram::over(store.clone(), limits, 77, 1);
        let mut twin = Ram::new(limits, 77, 1);
        let mut deaths = 0;
        for now in 1..2000 {
            let choice = random.below(usize::MAX) as u64 | 1;
            let before = twin.seen(false);
            let expected = random_change(&mut twin, &mut Random(choice), now);
            if random.below(3) == 0 {
                let most = [150, 150, 70_000][random.below(3)];
                store.set_fuel(Some(random.below(most) as u64));
            }
            let done = random_change(&mut ram, &mut Random(choice), now);
            store.set_fuel(None);
            if done == Err(Error::Broken) {
                deaths += 1;
                ram = Ram::again(&store, limits);
                let seen = ram.seen(false);
                expect_one_of(&format!("{seed}, {now}"), &seen, &before, &twin.seen(false));
                if seen != twin.seen(false) {
                    let again = random_change(&mut ram, &mut Random(choice), now);
                    assert_eq!(again, expected, "{seed}, {now}");
                }
            } else {
                assert_eq!(done, expected, "{seed}, {now}");
            }
            assert!(ram.seen(false) == twin.seen(false), "{seed}, {now}");
            assert_eq!(ram.room(), twin.room(), "{seed}, {now}");
        }
        assert!(deaths > 30, "only {deaths}");
    }
}

#[test]
fn what_was_forgotten_is_kept_again() {
    let (store, before) = after(CHANGES);
    let mut ram = Ram::again(&store, LIMITS);
    let keys = store.keys();
    // Noticed by a change that has something to be kept, and by who asks.
    store.lose();
    make(&mut ram, "/new", Kind::Regular, 1).expect("there is room");
    write(&mut ram, "/new", 0, b"x", 1).expect("there is room");
    assert_eq!(store.keys().len(), keys.len() + 1);
    store.lose();
    ram.unlink(1, b"new", 1).expect("there");
    assert_eq!(store.keys(), keys);
    store.lose();
    assert!(store.keys().is_empty());
    assert!(ram.see_to_it());
    assert_eq!(store.keys(), keys);
    drop(ram);
    let seen = Ram::again(&store, LIMITS).seen(true);
    assert_eq!(seen.contents, before.contents);
}

#[test]
fn without_room_nothing_changes() {
    let mut refused = 0;
    for (number, change) in CHANGES.iter().enumerate() {
        let (store, before) = after(&CHANGES[..number]);
        let now = 1001 + number as u64;
        for (pages, keys) in [(Some(0), None), (Some(1), None), (None, Some(0))] {
            let store = store.copy();
            let mut ram = Ram::again(&store, LIMITS);
            store.set_keys(keys);
            // The memory that the journal keeps for removals is used up by these.
            store.set_room(pages);
            let room = ram.room();
            match change(&mut ram, now) {
                Err(Error::NoSpace) => {
                    refused += 1;
                    let seen = ram.seen(true);
                    let is_same = seen.lines == before.lines && seen.contents == before.contents;
                    assert!(is_same, "change {number}: {:#?}", seen.lines);
                    assert!(ram.room() == room, "change {number}");
                }
                Ok(()) | Err(SHORT) => {}
                Err(error) => panic!("change {number}: {error:?}"),
            }
            store.set_room(None);
            store.set_keys(None);
            let seen = ram.seen(true);
            drop(ram);
            let next = Ram::again(&store, LIMITS);
            assert!(next.seen(true) == seen, "change {number}");
            expect_no_rest(&store, &next);
        }
    }
    assert!(refused > 8, "only {refused}");
}

#[test]
fn what_was_held_is_gone_with_who_held_it() {
    let (store, before) = after(&CHANGES[..5]);
    let mut ram = Ram::again(&store, LIMITS);
    make(&mut ram, "/held", Kind::Regular, 1).expect("there is room");
    make(&mut ram, "/directory", Kind::Directory, 1).expect("there is room");
    let [file, directory] = ["/held", "/directory"].map(|path| at(&ram, path).expect("there"));
    for inode in [file, directory] {
        ram.hold(inode).expect("there");
    }
    unlink(&mut ram, "/held", 1).expect("there");
    ram.remove_directory(1, b"directory", 1).expect("empty");
    assert_eq!(ram.write(file, 0, b"nobody will read this", 1), Ok(21));
    ram.set_mode(directory, 0o700, 1).expect("held");
    // Its number goes to another one while the journal still has what was done to it.
    ram.release(file);
    make(&mut ram, "/other", Kind::Regular, 1).expect("there is room");
    assert_eq!(at(&ram, "/other"), Ok(file));
    let seen = ram.seen(true);
    drop(ram);
    let next = Ram::again(&store, LIMITS);
    assert!(next.seen(true) == seen);
    assert_eq!(next.attributes(directory), Err(Error::NotFound));
    assert_eq!(next.seen(true).contents["/f"], before.contents["/f"]);
    expect_no_rest(&store, &next);
}

#[test]
fn names_can_be_removed_without_memory() {
    let store = Memory::default();
    let mut ram = Ram::over(store.clone(), LIMITS, 5000, 1000);
    let name = |number: u32| format!("file {number}").into_bytes();
    for number in 0..300 {
        ram.create(1, &name(number), Kind::Regular, 0o644, 1)
            .expect("there is room");
    }
    store.set_room(Some(0));
    let refused = (300..1000).find_map(|number| {
        let made = ram.create(1, &name(number), Kind::Regular, 0o644, 1);
        made.err()
    });
    assert_eq!(refused, Some(Error::NoSpace));
    for number in 0..200 {
        ram.unlink(1, &name(number), 1).expect("it needs no memory");
    }
    let seen = ram.seen(true);
    drop(ram);
    store.set_room(None);
    assert!(Ram::again(&store, LIMITS).seen(true) == seen);
}

/// The directory of files without a name is found by the next instance, with what is in it, also
/// when it was made in a journal that was replaced; nobody sees it, and nobody can ask for it.
#[test]
fn the_directory_of_unnamed_files_is_found_again() {
    let (store, _) = after(&[]);
    let mut ram = Ram::again(&store, LIMITS);
    let root = ram.root();
    assert_eq!(ram.unnamed(false, 1), Ok(None));
    let made = ram.unnamed(true, 1).unwrap().unwrap();
    assert_eq!(ram.unnamed(true, 2), Ok(Some(made)));
    let file = ram.create(root, b"f", Kind::Regular, 0o644, 3).unwrap();
    ram.rename(root, b"f", made, b"5", 4).unwrap();
    let expect = |ram: &mut Ram| {
        assert_eq!(ram.unnamed(false, 5), Ok(Some(made)));
        assert_eq!(ram.lookup(made, b"5"), Ok(file));
        let mut names = Vec::new();
        ram.list(root, 2, |_, _, name| {
            names.push(name.to_vec());
            true
        })
        .unwrap();
        assert!(!names.contains(&b"/".to_vec()), "{names:?}");
    };
    expect(&mut ram);
    let mut ram = Ram::again(&store, LIMITS);
    expect(&mut ram);
    for name in [&b"/"[..], b""] {
        assert_eq!(ram.lookup(root, name), Err(Error::BadName));
        let make = ram.create(root, name, Kind::Regular, 0o644, 6);
        assert_eq!(make, Err(Error::BadName));
        assert_eq!(ram.symlink(root, name, b"x", 6), Err(Error::BadName));
        assert_eq!(ram.link(root, name, file, 6), Err(Error::BadName));
        assert_eq!(ram.remove_directory(root, name, 6), Err(Error::BadName));
        assert_eq!(ram.rename(root, name, root, b"x", 6), Err(Error::BadName));
        assert_eq!(ram.rename(made, b"5", root, name, 6), Err(Error::BadName));
    }
    // As often as it takes for the journal to be replaced.
    for time in 10..20_000 {
        ram.create(root, b"g", Kind::Regular, 0o644, time).unwrap();
        ram.unlink(root, b"g", time).unwrap();
    }
    let mut ram = Ram::again(&store, LIMITS);
    expect(&mut ram);
    ram.unlink(made, b"5", 30_000).unwrap();
    let mut ram = Ram::again(&store, LIMITS);
    assert_eq!(ram.unnamed(false, 1), Ok(Some(made)));
    assert_eq!(ram.lookup(made, b"5"), Err(Error::NotFound));
}
