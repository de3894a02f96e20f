//! Searches and reclaim in a heap whose chunks come and go meanwhile.

use super::{OBJECTS, Search};
use crate::memory::owner::Owner;
use crate::model::{ONE_AT_A_TIME, machine};
use abi::shared::{CHUNK_BYTES, LARGEST_SLOT, owner_cell};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::sync::PoisonError;
use std::vec::Vec;

/// Numbers that no domain of a test has.
const DEAD: Owner = nobody(1);
const OTHER: Owner = nobody(2);

const fn nobody(number: u32) -> Owner {
    // SAFETY: so many domains never live in a test, and what these own the test frees itself.
    unsafe { Owner::new(u32::MAX - number) }
}

/// Chances that are the same in each run.
struct Dice(u32);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as usize % sides
    }
}

/// An object of 64, 128 or 256 bytes.
fn small(dice: &mut Dice, owner: Owner) -> NonNull<u8> {
    let object = OBJECTS.allocate(64 << dice.roll(3), owner);
    object.expect("memory")
}

/// Frees one of `objects`, if there is one.
fn free_some(dice: &mut Dice, objects: &mut Vec<NonNull<u8>>) {
    if !objects.is_empty() {
        let object = objects.swap_remove(dice.roll(objects.len()));
        // SAFETY: it was allocated there and is taken off the list.
        unsafe { OBJECTS.free(object) };
    }
}

/// Frees what `owner` has; how much.
fn free_all_of(owner: Owner) -> usize {
    // SAFETY: the test does not use any of it after this.
    unsafe { OBJECTS.free_all_of(owner) }
}

fn search_among_others(seed: u32) {
    let mut dice = Dice(seed);
    let (mut dead, mut others) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        match dice.roll(2) {
            0 => dead.push(small(&mut dice, DEAD)),
            _ => others.push(small(&mut dice, OTHER)),
        }
    }
    let mut search = Search::new(DEAD);
    let mut found = [NonNull::dangling(); 3];
    loop {
        let count = OBJECTS.some_of(&mut search, &mut found);
        // No large ones are there, so a chunk is as long as its alignment.
        let chunk = |object: &NonNull<u8>| object.addr().get() / CHUNK_BYTES;
        let is_one = found[..count]
            .windows(2)
            .all(|pair| chunk(&pair[0]) == chunk(&pair[1]));
        assert!(is_one, "between two chunks one may move");
        for object in &found[..count] {
            let index = dead.iter().position(|other| other == object);
            dead.swap_remove(index.expect("what is found is the dead one's, and is found once"));
            // SAFETY: an object of the dead one, just found.
            unsafe { OBJECTS.free(*object) };
        }
        if count == 0 {
            break;
        }
        for _ in 0..dice.roll(12) {
            match dice.roll(4) {
                0 => others.push(small(&mut dice, OTHER)),
                _ => free_some(&mut dice, &mut others),
            }
        }
    }
    assert!(dead.is_empty(), "seed {seed}: {} were missed", dead.len());
    assert_eq!(OBJECTS.count_of(OTHER), others.len());
    assert_eq!(free_all_of(OTHER), others.len());
}

#[test]
fn a_search_finds_each_object_once() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    machine::set_up();
    (1..=500).for_each(search_among_others);
}

#[test]
fn reclaim_takes_what_the_dead_owner_has_and_nothing_else() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    machine::set_up();
    let mut dice = Dice(7);
    let sizes = [64, 100, 4096, LARGEST_SLOT, LARGEST_SLOT + 1, CHUNK_BYTES];
    let mut owned = Vec::new();
    for index in 0..120 {
        let owner = [DEAD, OTHER][dice.roll(2)];
        let object = OBJECTS.allocate(sizes[index % sizes.len()], owner);
        let object = object.expect("memory");
        // What changes hands counts where it is.
        let owner = if dice.roll(4) == 0 { DEAD } else { owner };
        // SAFETY: a live object.
        unsafe { owner_cell(object).store(owner.number(), Ordering::Relaxed) };
        owned.push(owner);
    }
    let of = |owner| owned.iter().filter(|other| **other == owner).count();
    assert_eq!(OBJECTS.count_of(DEAD), of(DEAD));
    assert_eq!(free_all_of(DEAD), of(DEAD));
    assert_eq!(
        (OBJECTS.count_of(DEAD), OBJECTS.count_of(OTHER)),
        (0, of(OTHER))
    );
    assert_eq!(free_all_of(OTHER), of(OTHER));
    // Chunks in which nothing is left are given back.
    assert_eq!(OBJECTS.bytes(), OBJECTS.spare_bytes());
}

/// The only chunk of a size is kept when all in it has gone: what was there before is not found
/// again, and what comes next is, however few that are, and whoever gets it later.
#[test]
fn a_chunk_that_was_cleared_is_searched_as_far_as_it_is_used() {
    const SIZE: usize = 1024;
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    machine::set_up();
    let some = |count: usize, owner| {
        let one = |_| OBJECTS.allocate(SIZE, owner).expect("memory");
        (0..count).map(one).collect::<Vec<_>>()
    };
    for (before, after) in [(4, 1), (4, 4), (1, 4), (3, 2)] {
        some(before, DEAD);
        assert_eq!(free_all_of(DEAD), before);
        let objects = some(after, OTHER);
        assert_eq!(
            (OBJECTS.count_of(DEAD), OBJECTS.count_of(OTHER)),
            (0, after)
        );
        // The last one, in the highest slot, changes hands.
        let last = objects[after - 1];
        // SAFETY: a live object.
        unsafe { owner_cell(last).store(DEAD.number(), Ordering::Relaxed) };
        let mut found = [NonNull::dangling(); 8];
        assert_eq!(OBJECTS.some_of(&mut Search::new(DEAD), &mut found), 1);
        assert_eq!(found[0], last);
        OBJECTS.audit().expect("lists and tables agree");
        assert_eq!(free_all_of(DEAD) + free_all_of(OTHER), after);
    }
}
