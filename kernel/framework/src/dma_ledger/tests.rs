//! Drivers that die, are reset or are not, and what is kept of them.

use super::*;

const DISK: u32 = 0x18;

/// A driver with a piece of memory, that has come so far.
fn driver(ledger: &mut Ledger<Vec<&'static str>>) -> Birth {
    let birth = ledger.begin(DISK).unwrap();
    ledger.reset(DISK, birth, true).unwrap();
    birth
}

#[test]
fn memory_of_the_dead_is_kept_until_the_next_reset() {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let at = ledger.stop(DISK);
    assert!(ledger.end(DISK, first, Some(at), vec!["ring"]).is_empty());
    // A successor exists, and hangs, for as long as it likes.
    let hung = ledger.begin(DISK).unwrap();
    let at = ledger.stop(DISK);
    assert_eq!(ledger.end(DISK, hung, Some(at), vec!["new"]), ["new"]);
    // The next one has reset the device.
    let next = ledger.begin(DISK).unwrap();
    assert_eq!(ledger.reset(DISK, next, true).unwrap().concat(), ["ring"]);
    assert!(ledger.reset(DISK, next, true).unwrap().is_empty());
}

#[test]
fn who_ends_after_the_reset_of_a_successor_leaves_nothing() {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let at = ledger.stop(DISK);
    let second = driver(&mut ledger);
    assert_eq!(ledger.end(DISK, first, Some(at), vec!["old"]), ["old"]);
    let at = ledger.stop(DISK);
    assert!(ledger.end(DISK, second, Some(at), vec!["new"]).is_empty());
}

#[test]
fn drivers_that_never_reset_the_device_add_nothing() {
    let mut ledger = Ledger::new();
    for _ in 0..100 {
        let birth = ledger.begin(DISK).unwrap();
        let at = ledger.stop(DISK);
        assert_eq!(ledger.end(DISK, birth, Some(at), vec!["x"]), ["x"]);
    }
}

#[test]
fn a_second_pool_beside_a_running_device_is_known_to_it() {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let second = ledger.begin(DISK).unwrap();
    // Not stopped, since the first one still serves.
    assert!(ledger.end(DISK, second, None, vec!["second"]).is_empty());
    let at = ledger.stop(DISK);
    assert!(ledger.end(DISK, first, Some(at), vec!["first"]).is_empty());
    let free = ledger.reset(DISK, second, true).unwrap().concat();
    assert_eq!(free, ["second", "first"]);
}

#[test]
fn what_cannot_be_stopped_is_not_quiet() {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let at = ledger.stop(DISK);
    ledger.runs_on(DISK);
    assert!(ledger.end(DISK, first, Some(at), vec!["first"]).is_empty());
    let second = ledger.begin(DISK).unwrap();
    assert!(ledger.end(DISK, second, None, vec!["second"]).is_empty());
}

#[test]
fn what_is_in_use_has_a_place_to_come_back_to() {
    let mut spares = Spares::new();
    let mut used = Vec::new();
    for piece in 0..5_000 {
        let reused = spares.take(|it| it % 3 == piece % 3);
        if reused.is_none() {
            spares.lend().unwrap();
        }
        used.push(reused.unwrap_or(piece));
        let room = spares.pieces.capacity();
        assert!(room >= spares.pieces.len() + used.len());
        if piece % 7 == 0 {
            spares.put_back(used.swap_remove(0));
        }
    }
    let room = spares.pieces.capacity();
    used.into_iter().for_each(|it| spares.put_back(it));
    assert_eq!(spares.pieces.capacity(), room, "a drop took memory");
    spares.lend().unwrap();
    spares.never_mind();
    assert_eq!((spares.lent, spares.end().is_empty()), (0, false));
}

#[test]
fn devices_are_apart() {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let at = ledger.stop(DISK);
    assert!(ledger.end(DISK, first, Some(at), vec!["disk"]).is_empty());
    let other = ledger.begin(DISK + 1).unwrap();
    assert!(ledger.reset(DISK + 1, other, true).unwrap().is_empty());
    assert!(ledger.reset(DISK + 2, other, true).unwrap().is_empty());
    assert_eq!(ledger.reset(DISK, first, true).unwrap().concat(), ["disk"]);
}

#[test]
fn a_late_word_of_an_older_driver_frees_nothing() {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let beside = ledger.begin(DISK).unwrap();
    ledger.stop(DISK);
    let second = driver(&mut ledger);
    let at = ledger.stop(DISK);
    assert!(ledger.end(DISK, second, Some(at), vec!["ring"]).is_empty());
    // The first one's word comes now, through either of its pools.
    assert_eq!(ledger.reset(DISK, first, true), Err(NoReset::Outdated));
    assert_eq!(ledger.reset(DISK, beside, true), Err(NoReset::Outdated));
    let third = ledger.begin(DISK).unwrap();
    assert_eq!(ledger.reset(DISK, second, true), Err(NoReset::Outdated));
    assert_eq!(ledger.reset(DISK, third, true), Ok(vec![vec!["ring"]]));
}

#[test]
fn what_is_looked_at_is_kept_unless_the_device_was_reset_meanwhile() {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let at = ledger.stop(DISK);
    ledger.end(DISK, first, Some(at), vec!["ring"]);
    let second = ledger.begin(DISK).unwrap();
    let taken = ledger.take_kept(DISK).unwrap();
    assert_eq!(taken.memory.concat(), ["ring"]);
    let third = ledger.begin(DISK).unwrap();
    ledger.reset(DISK, third, true).unwrap();
    let at = ledger.stop(DISK);
    ledger.end(DISK, third, Some(at), vec!["later"]);
    assert_eq!(ledger.put_back(DISK, taken).concat(), ["ring"]);
    let taken = ledger.take_kept(DISK).unwrap();
    assert_eq!(taken.memory.concat(), ["later"]);
    ledger.end(DISK, second, Some(at), vec!["second"]);
    assert!(ledger.put_back(DISK, taken).is_empty());
    let all = ledger.take_kept(DISK).unwrap().memory.concat();
    assert_eq!(all, ["second", "later"]);
    assert!(ledger.take_kept(DISK + 1).unwrap().memory.is_empty());
}

#[test]
fn the_end_of_a_pool_takes_no_memory() {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let births: Vec<_> = (0..50).map(|_| ledger.begin(DISK).unwrap()).collect();
    let room = |ledger: &Ledger<Vec<&str>>| ledger.devices[0].kept.capacity();
    assert!(room(&ledger) >= 51);
    // What one has left is looked at while all others end.
    let at = ledger.stop(DISK);
    ledger.end(DISK, first, Some(at), vec!["first"]);
    let taken = ledger.take_kept(DISK).unwrap();
    ledger.runs_on(DISK);
    let later = ledger.begin(DISK).unwrap();
    let before = room(&ledger);
    for birth in births {
        assert!(ledger.end(DISK, birth, None, vec!["x"]).is_empty());
    }
    assert!(ledger.put_back(DISK, taken).is_empty());
    ledger.end(DISK, later, None, vec!["later"]);
    assert_eq!(room(&ledger), before, "an end took memory");
    let last = ledger.begin(DISK).unwrap();
    assert_eq!(ledger.reset(DISK, last, true).unwrap().concat().len(), 52);
    // The reset has left room for the last one.
    assert!(room(&ledger) >= 1);
}

#[test]
fn there_is_an_end_of_devices() {
    let mut ledger = Ledger::<Vec<()>>::new();
    for number in 0..MOST_DEVICES as u32 {
        ledger.begin(number).unwrap();
    }
    assert!(ledger.begin(u32::MAX).is_err());
    assert!(ledger.begin(0).is_ok());
}

/// A driver, as the kernel sees it, and its end. Each step is taken under a lock of its own.
#[derive(Default)]
struct Dying {
    is_dead: bool,
    /// The pool has it as a user.
    is_noted: bool,
    /// The pool was stopped for its sake.
    is_stopped: bool,
}

/// The two steps of its word that the device is reset, and the two of its end, in this order.
/// Whether the word was heard, and whether the device runs in the end.
fn word_and_end(order: [&str; 4]) -> (bool, bool) {
    let mut ledger = Ledger::new();
    let first = driver(&mut ledger);
    let at = ledger.stop(DISK);
    assert!(ledger.end(DISK, first, Some(at), vec!["ring"]).is_empty());
    let (birth, mut it) = (ledger.begin(DISK).unwrap(), Dying::default());
    let mut word = Err(NoReset::Gone);
    for step in order {
        match step {
            "is noted" => it.is_noted = true,
            "says it" => word = ledger.reset(DISK, birth, !it.is_dead && !it.is_stopped),
            "dies" => it.is_dead = true,
            _ if it.is_noted => {
                it.is_stopped = true;
                ledger.stop(DISK);
            }
            _ => {}
        }
    }
    // Nobody has reset the device but who was heard, so what it may know is there if nobody was.
    let kept = ledger.take_kept(DISK).unwrap().memory.concat();
    assert_eq!(kept.is_empty(), word.is_ok(), "{order:?}: {word:?}");
    (word.is_ok(), ledger.devices[0].running)
}

#[test]
fn the_word_of_a_dead_driver_frees_nothing_and_starts_nothing() {
    const NOTED: &str = "is noted";
    const SAYS: &str = "says it";
    const DIES: &str = "dies";
    const LOOK: &str = "those that it uses are stopped";
    let orders = [
        ([NOTED, SAYS, DIES, LOOK], true),
        ([NOTED, DIES, SAYS, LOOK], false),
        ([NOTED, DIES, LOOK, SAYS], false),
        ([DIES, NOTED, SAYS, LOOK], false),
        ([DIES, NOTED, LOOK, SAYS], false),
        // Nobody stops the pool here, since its user was not noted yet: his life alone tells.
        ([DIES, LOOK, NOTED, SAYS], false),
    ];
    for (order, is_heard) in orders {
        assert_eq!(word_and_end(order), (is_heard, false), "{order:?}");
    }
}
