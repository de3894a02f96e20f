//! Sets of events: by level, by edge, once, and within each other.

use super::*;
use alloc::collections::BTreeSet;

fn place(descriptor: u32) -> Place {
    Place {
        descriptor,
        file: 7,
    }
}

fn wish(events: u32, data: u64) -> Wish {
    Wish { events, data }
}

/// What a set tells, of files that have these events.
fn told(set: &mut Set<u32>, found: &[u32]) -> Vec<(u64, u32)> {
    let mut all = Vec::new();
    for _ in 0..set.listed() {
        let (number, file) = set.take_next().unwrap();
        let found = found[file as usize];
        all.extend(set.settle(number, found).map(|it| (it.data, it.events)));
    }
    all
}

#[test]
fn by_level_it_is_told_again_and_by_edge_once() {
    let mut set = Set::default();
    set.add(place(0), 0, wish(IN, 10)).unwrap();
    set.add(place(1), 1, wish(IN | EDGE, 11)).unwrap();
    set.add(place(2), 2, wish(IN | ONESHOT, 12)).unwrap();
    assert_eq!(told(&mut set, &[IN, 0, IN | OUT]), [(10, IN), (12, IN)]);
    assert!(set.touch(1, IN) && !set.touch(1, OUT) && !set.touch(2, HUP));
    assert_eq!(told(&mut set, &[IN, IN, IN]), [(10, IN), (11, IN)]);
    assert_eq!(told(&mut set, &[0, IN, IN]), []);
    assert_eq!(set.listed(), 0);
    assert!(set.touch(1, IN));
    assert_eq!(told(&mut set, &[IN, IN, IN]), [(11, IN)]);
    // What is changed is told anew.
    set.change(place(2), wish(OUT | ONESHOT, 13)).unwrap();
    set.change(place(1), wish(IN | EDGE, 14)).unwrap();
    assert_eq!(told(&mut set, &[0, IN, OUT]), [(13, OUT), (14, IN)]);
}

#[test]
fn errors_are_told_unasked_but_not_after_once() {
    let mut set = Set::default();
    set.add(place(0), 0, wish(OUT | ONESHOT, 1)).unwrap();
    assert_eq!(told(&mut set, &[HUP | IN]), [(1, HUP)]);
    assert!(!set.touch(0, HUP | ERR));
    set.add(place(1), 0, wish(0, 2)).unwrap();
    assert_eq!(told(&mut set, &[HUP]), []);
}

#[test]
fn items_come_in_turn() {
    let mut set = Set::default();
    for file in 0..4 {
        set.add(place(file), file, wish(IN, file.into())).unwrap();
    }
    let mut two = || {
        let mut all = Vec::new();
        while all.len() < 2 {
            let (number, _) = set.take_next().unwrap();
            all.extend(set.settle(number, IN).map(|it| it.data));
        }
        all
    };
    assert_eq!([two(), two(), two()], [[0, 1], [2, 3], [0, 1]]);
}

#[test]
fn items_are_there_once_and_gone_when_removed() {
    let mut set = Set::default();
    set.add(place(3), 0, wish(IN, 1)).unwrap();
    assert_eq!(set.add(place(3), 0, wish(IN, 1)), Err(EEXIST));
    assert_eq!(set.change(place(4), wish(IN, 1)), Err(ENOENT));
    assert_eq!(set.remove(place(4)), Err(ENOENT));
    assert_eq!(set.remove(place(3)), Ok(0));
    assert_eq!((set.listed(), set.len()), (0, 0));
    // Removed while somebody looks at it.
    set.add(place(3), 0, wish(IN, 1)).unwrap();
    let (number, _) = set.take_next().unwrap();
    set.remove(place(3)).unwrap();
    set.put_back(number);
    assert_eq!(
        (set.settle(number, IN), set.touch(number, IN)),
        (None, false)
    );
    assert_eq!(set.listed(), 0);
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    assert_eq!(wish(IN | EXCLUSIVE | EDGE, 0).check_new(false), Ok(()));
    assert_eq!(wish(IN | EXCLUSIVE, 0).check_new(true), Err(EINVAL));
    assert_eq!(
        wish(IN | EXCLUSIVE | ONESHOT, 0).check_new(false),
        Err(EINVAL)
    );
    assert_eq!(wish(RDHUP | EXCLUSIVE, 0).check_new(false), Err(EINVAL));
    let mut set = Set::default();
    set.add(place(1), 0, wish(IN | EXCLUSIVE, 0)).unwrap();
    assert_eq!(set.change(place(1), wish(IN, 0)), Err(EINVAL));
    set.add(place(2), 0, wish(IN, 0)).unwrap();
    assert_eq!(set.change(place(2), wish(IN | EXCLUSIVE, 0)), Err(EINVAL));
    let event = wish(0x8000_0001, 0x0102_0304_0506_0708);
    assert_eq!(Wish::from_bytes(&event.bytes()), event);
}

#[test]
fn sets_are_in_each_other_without_circles_and_not_deep() {
    let mut nests = Nests::default();
    assert_eq!(nests.enter(1, 1), Err(EINVAL));
    for (outer, inner) in [(1, 2), (2, 3), (3, 4), (4, 5)] {
        assert_eq!(nests.enter(outer, inner), Ok(()));
    }
    assert_eq!(nests.enter(5, 6), Err(ELOOP));
    assert_eq!(nests.enter(5, 1), Err(ELOOP));
    assert_eq!(nests.enter(9, 1), Err(ELOOP));
    nests.leave(1, 2);
    assert_eq!(nests.enter(9, 2), Ok(()));
    // In as many as may be.
    for outer in 100..164 {
        assert_eq!(nests.enter(outer, 50), Ok(()));
    }
    assert_eq!(nests.enter(164, 50), Err(EINVAL));
    assert_eq!(nests.enter(50, 51), Err(EINVAL));
    nests.forget(100);
    assert_eq!(nests.enter(164, 50), Ok(()));
}

/// The longest chain from a set inwards, and whether it leads to another.
fn depth(edges: &BTreeSet<(u64, u64)>, from: u64) -> u32 {
    let inner = edges.iter().filter(|(outer, _)| *outer == from);
    1 + inner.map(|(_, to)| depth(edges, *to)).max().unwrap_or(0)
}

/// Random sets: whatever is let in, no chain is longer than allowed, and there is no circle (or
/// `depth` would not end).
#[test]
fn no_way_in_leads_too_deep() {
    let mut seed = 5_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut refused = 0;
    for _ in 0..300 {
        let (mut nests, mut edges) = (Nests::default(), BTreeSet::new());
        for _ in 0..30 {
            let (outer, inner) = (random(9), random(9));
            if random(4) == 0 {
                nests.leave(outer, inner);
                edges.remove(&(outer, inner));
            } else if !edges.contains(&(outer, inner)) {
                match nests.enter(outer, inner) {
                    Ok(()) => drop(edges.insert((outer, inner))),
                    Err(_) => refused += 1,
                }
            }
            assert!((0..9).all(|set| depth(&edges, set) <= DEEPEST));
        }
    }
    assert!(refused > 100);
}
