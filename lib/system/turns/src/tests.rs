//! Turns, one by one and among many threads.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::vec::Vec;

use super::Turns;

/// So many things, all free.
fn with(count: u32) -> Turns<u32> {
    let mut turns = Turns::default();
    for thing in 0..count {
        turns.add().unwrap();
        assert_eq!(turns.give(thing), None);
    }
    turns
}

#[test]
fn who_came_first_gets_first_what_is_given_back() {
    let mut turns = with(2);
    let (one, other) = (turns.take().unwrap(), turns.take().unwrap());
    assert_eq!(turns.take(), None);
    let waiting = [0; 3].map(|_| turns.wait().unwrap());
    assert_eq!(turns.waiting(), 3);
    assert_eq!(turns.give(one), Some(waiting[0]));
    assert_eq!(turns.give(other), Some(waiting[1]));
    // Nobody else gets what is another's, collected or not.
    assert_eq!(turns.take(), None);
    assert_eq!(turns.collect(waiting[2]), None);
    assert_eq!(turns.collect(waiting[1]), Some(other));
    assert_eq!(turns.collect(waiting[0]), Some(one));
    assert_eq!(turns.collect(waiting[0]), None);
    assert_eq!(turns.give(one), Some(waiting[2]));
    assert_eq!(turns.collect(waiting[2]), Some(one));
    assert_eq!(turns.give(one), None);
    assert_eq!(turns.take(), Some(one));
}

#[test]
fn what_was_given_to_who_leaves_goes_on_to_the_next() {
    let mut turns = with(1);
    let thing = turns.take().unwrap();
    let waiting = [0; 3].map(|_| turns.wait().unwrap());
    assert_eq!(turns.give(thing), Some(waiting[0]));
    assert_eq!(turns.leave(waiting[1]), None);
    assert_eq!(turns.leave(waiting[0]), Some(waiting[2]));
    assert_eq!(turns.leave(waiting[0]), None);
    assert_eq!(turns.leave(waiting[2]), None);
    assert_eq!((turns.take(), turns.waiting()), (Some(thing), 0));
}

/// Three hundred threads share seven things; some lose patience. No thing is with two at once, none
/// is lost, and who waits on gets one.
#[test]
fn many_threads_share_few_things() {
    const THREADS: u64 = 300;
    const THINGS: u32 = 7;
    let turns = Mutex::new(with(THINGS));
    let places: Vec<Condvar> = (0..8).map(|_| Condvar::new()).collect();
    let lent = Mutex::new(BTreeMap::new());
    let wake = |turn: Option<u64>| {
        if let Some(turn) = turn {
            places[turn as usize % places.len()].notify_all();
        }
    };
    let take = |patient: bool| {
        let mut state = turns.lock().unwrap();
        if let Some(thing) = state.take() {
            return Some(thing);
        }
        let turn = state.wait().unwrap();
        loop {
            state = places[turn as usize % places.len()].wait(state).unwrap();
            if !patient {
                wake(state.leave(turn));
                return None;
            }
            if let Some(thing) = state.collect(turn) {
                return Some(thing);
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (turns, lent, wake, take) = (&turns, &lent, &wake, &take);
            scope.spawn(move || {
                for round in 0..40 {
                    let Some(thing) = take((number + round) % 5 != 0) else {
                        continue;
                    };
                    assert_eq!(lent.lock().unwrap().insert(thing, number), None);
                    thread::yield_now();
                    assert_eq!(lent.lock().unwrap().remove(&thing), Some(number));
                    let turn = turns.lock().unwrap().give(thing);
                    wake(turn);
                }
            });
        }
    });
    let mut turns = turns.into_inner().unwrap();
    let mut left: Vec<u32> = core::iter::from_fn(|| turns.take()).collect();
    left.sort_unstable();
    assert_eq!((turns.waiting(), left), (0, (0..THINGS).collect()));
}
