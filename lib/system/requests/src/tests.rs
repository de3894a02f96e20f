//! The rules one by one, and random steps beside a model that keeps everything in one list.

mod groups;
mod tickets;

use crate::{Book, Full, NotGiven};
use std::vec::Vec;

type Plain = Book<u32, char>;

fn book(capacity: usize) -> Plain {
    Book::keeping_barriers(capacity, 0).expect("the host has memory")
}

fn passing(capacity: usize) -> Plain {
    Book::passing_barriers_on(capacity, 0).expect("the host has memory")
}

/// Gives all that can be given: their numbers.
fn give_all(book: &mut Plain) -> Vec<u64> {
    let mut given = Vec::new();
    while let Some((number, _)) = book.peek() {
        given.push(number);
        book.give();
    }
    given
}

fn take_all(book: &mut Plain) -> Vec<(u64, char)> {
    core::iter::from_fn(|| book.take()).collect()
}

#[test]
fn requests_are_given_in_order_and_answered_once() {
    let mut book = book(4);
    for tag in [7, 7, 9] {
        book.enter(tag, false, tag as u32).expect("room");
    }
    assert_eq!(give_all(&mut book), [0, 1, 2]);
    assert_eq!(book.complete(2, 'c'), Ok(()));
    assert_eq!(book.complete(0, 'a'), Ok(()));
    assert_eq!(take_all(&mut book), [(9, 'c'), (7, 'a')]);
    assert_eq!((book.open(), book.given()), (1, 1));
}

#[test]
fn the_oldest_is_that_of_the_carrier() {
    let mut book = passing(4);
    assert_eq!(book.oldest(), None);
    for tag in 0..4 {
        book.enter(tag, false, 0).expect("room");
    }
    assert_eq!(book.oldest(), None, "nothing was given");
    (0..3).for_each(|_| {
        book.give();
    });
    assert_eq!(book.oldest(), Some(0));
    assert_eq!(book.complete(1, 'b'), Ok(()));
    assert_eq!(book.oldest(), Some(0));
    assert_eq!(book.complete(0, 'a'), Ok(()));
    assert_eq!(book.oldest(), Some(2));
    assert_eq!(book.again(), 1);
    assert_eq!(book.oldest(), None);
}

#[test]
fn a_wild_answer_changes_nothing() {
    let mut book = book(4);
    book.enter(1, false, 0).expect("room");
    book.enter(2, false, 0).expect("room");
    for number in [0, 1, 2, u64::MAX] {
        assert_eq!(book.complete(number, 'x'), Err(NotGiven));
    }
    book.give();
    assert_eq!(book.complete(1, 'x'), Err(NotGiven), "it still waits");
    assert_eq!(book.complete(0, 'a'), Ok(()));
    assert_eq!(book.complete(0, 'x'), Err(NotGiven), "it has its answer");
    assert_eq!(take_all(&mut book), [(1, 'a')]);
}

#[test]
fn a_barrier_waits_and_is_waited_for() {
    let mut book = book(8);
    for (tag, is_barrier) in [(0, false), (1, false), (2, true), (3, false)] {
        book.enter(tag, is_barrier, 0).expect("room");
    }
    assert_eq!(give_all(&mut book), [0, 1]);
    book.complete(1, 'b').expect("given");
    assert_eq!(give_all(&mut book), []);
    book.complete(0, 'a').expect("given");
    assert_eq!(give_all(&mut book), [2]);
    book.complete(2, 'c').expect("given");
    assert_eq!(give_all(&mut book), [3]);
}

#[test]
fn who_passes_barriers_on_gives_everything() {
    let mut book = passing(8);
    for (tag, is_barrier) in [(0, false), (1, true), (2, false)] {
        book.enter(tag, is_barrier, 0).expect("room");
    }
    assert_eq!(give_all(&mut book), [0, 1, 2]);
}

#[test]
fn the_next_carrier_gets_the_rest_in_order() {
    let mut book = passing(8);
    (0..5).for_each(|tag| book.enter(tag, false, 0).expect("room"));
    (0..4).for_each(|_| {
        book.give();
    });
    book.complete(1, 'b').expect("given");
    book.complete(3, 'd').expect("given");
    assert_eq!(book.again(), 2);
    assert_eq!(
        book.complete(0, 'x'),
        Err(NotGiven),
        "the old carrier's word"
    );
    let waiting: Vec<u64> = book.waiting().map(|(number, _)| number).collect();
    assert_eq!(waiting, [0, 2, 4]);
    assert_eq!(give_all(&mut book), [0, 2, 4]);
    assert_eq!(book.waiting().count(), 0);
}

#[test]
fn several_are_given_at_once_but_not_what_is_answered() {
    let mut book = passing(8);
    (0..6).for_each(|tag| book.enter(tag, tag == 2, 0).expect("room"));
    book.give_waiting(4);
    for number in [1, 2] {
        book.complete(number, 'a').expect("given");
    }
    book.again();
    book.give_waiting(2);
    assert_eq!((book.given(), book.oldest()), (2, Some(0)));
    assert_eq!(book.complete(3, 'b'), Ok(()));
    assert_eq!(book.complete(4, 'b'), Err(NotGiven));
    book.give_waiting(9);
    assert_eq!((book.given(), book.has_waiting()), (3, false));
}

#[test]
fn a_barrier_is_kept_for_the_next_carrier() {
    let mut book = book(8);
    for (tag, is_barrier) in [(0, false), (1, true), (2, false)] {
        book.enter(tag, is_barrier, 0).expect("room");
    }
    book.give();
    book.complete(0, 'a').expect("given");
    assert_eq!(give_all(&mut book), [1]);
    book.again();
    assert_eq!(give_all(&mut book), [1]);
    book.complete(1, 'b').expect("given");
    assert_eq!(give_all(&mut book), [2]);
}

#[test]
fn at_the_end_everything_is_answered_once() {
    let mut book = passing(8);
    (10..14).for_each(|tag| book.enter(tag, false, tag as u32).expect("room"));
    (0..3).for_each(|_| {
        book.give();
    });
    book.complete(1, 'b').expect("given");
    book.end(|request| if *request == 13 { 'w' } else { 'g' });
    assert_eq!(
        take_all(&mut book),
        [(11, 'b'), (10, 'g'), (12, 'g'), (13, 'w')]
    );
    assert_eq!(book.complete(0, 'x'), Err(NotGiven));
    book.enter(20, false, 0).expect("room");
    assert_eq!(give_all(&mut book), [4], "numbers are never used again");
}

#[test]
fn the_room_counts_what_was_not_taken() {
    let mut book = passing(2);
    book.enter(0, false, 0).expect("room");
    book.refuse(1, 'r').expect("room");
    assert_eq!(book.enter(2, false, 0), Err(Full));
    assert_eq!(book.refuse(2, 'r'), Err(Full));
    book.give();
    book.complete(0, 'a').expect("given");
    assert_eq!(book.room(), 0);
    assert_eq!(take_all(&mut book), [(1, 'r'), (0, 'a')]);
    assert_eq!(book.room(), 2);
}

#[test]
fn one_that_is_never_answered_holds_the_room_behind_it() {
    let mut book = passing(3);
    book.enter(0, false, 0).expect("room");
    book.give();
    for number in 1..3 {
        book.enter(number, false, 0).expect("room");
        book.give();
        book.complete(number, 'a').expect("given");
        book.take();
    }
    assert_eq!(book.enter(3, false, 0), Err(Full));
    book.complete(0, 'z').expect("given");
    book.take();
    assert_eq!(book.room(), 3);
}

/// A number below `limit` (xorshift).
fn below(random: &mut u64, limit: u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 11) % limit
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Waits,
    Given,
    Done,
}

/// Everything that ever was entered, by number.
struct Model {
    all: Vec<(u64, bool, Fate)>,
    untaken: Vec<u64>,
    keeps: bool,
    capacity: usize,
}

impl Model {
    fn room(&self) -> usize {
        let open = self.all.iter().filter(|it| it.2 != Fate::Done).count();
        let oldest = self.all.iter().position(|it| it.2 != Fate::Done);
        let window = oldest.map_or(0, |oldest| self.all.len() - oldest);
        (self.capacity - window).min(self.capacity - open - self.untaken.len())
    }

    /// What may be given now, by the rule in words.
    fn next(&self) -> Option<u64> {
        let number = self.all.iter().position(|it| it.2 == Fate::Waits)?;
        let before = &self.all[..number];
        let all_done = before.iter().all(|it| it.2 == Fate::Done);
        let barrier = before.iter().any(|it| it.1 && it.2 != Fate::Done);
        let waits = self.keeps && (barrier || self.all[number].1 && !all_done);
        (!waits).then_some(number as u64)
    }
}

/// One step of both.
fn step(book: &mut Plain, model: &mut Model, random: &mut u64) {
    match below(random, 16) {
        0..=5 => {
            let (tag, is_barrier) = (below(random, 1 << 40), below(random, 6) == 0);
            let entered = book.enter(tag, is_barrier, tag as u32);
            assert_eq!(entered.is_ok(), model.room() > 0);
            if entered.is_ok() {
                model.all.push((tag, is_barrier, Fate::Waits));
            }
        }
        6..=9 => {
            let next = book.peek().map(|(number, _)| number);
            assert_eq!(next, model.next());
            if let Some(number) = next {
                book.give();
                model.all[number as usize].2 = Fate::Given;
            }
        }
        10..=12 => {
            let number = below(random, model.all.len() as u64 + 3);
            let given = model.all.get(number as usize);
            let given = given.is_some_and(|it| it.2 == Fate::Given);
            assert_eq!(book.complete(number, 'a').is_ok(), given);
            if given {
                model.all[number as usize].2 = Fate::Done;
                model.untaken.push(model.all[number as usize].0);
            }
        }
        13..=14 => {
            let expected = (!model.untaken.is_empty()).then(|| model.untaken.remove(0));
            assert_eq!(book.take().map(|(tag, _)| tag), expected);
        }
        _ if below(random, 4) > 0 => {}
        _ if below(random, 8) > 0 => {
            book.again();
            let given = model.all.iter_mut().filter(|it| it.2 == Fate::Given);
            given.for_each(|it| it.2 = Fate::Waits);
        }
        _ => {
            book.end(|_| 'e');
            for it in model.all.iter_mut().filter(|it| it.2 != Fate::Done) {
                it.2 = Fate::Done;
                model.untaken.push(it.0);
            }
        }
    }
    assert_eq!(book.room(), model.room());
}

#[test]
fn random_steps_end_as_in_the_model() {
    for seed in 1..400u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let keeps = seed % 2 == 0;
        let capacity = 1 + below(&mut random, 12) as usize;
        let mut book = if keeps {
            book(capacity)
        } else {
            passing(capacity)
        };
        let mut model = Model {
            all: Vec::new(),
            untaken: Vec::new(),
            keeps,
            capacity,
        };
        for _ in 0..400 {
            step(&mut book, &mut model, &mut random);
        }
    }
}

#[test]
fn many_are_entered_as_far_as_there_is_room() {
    let mut book = passing(3);
    let mut numbers = Vec::new();
    let mut make = |tag: &u64, number| {
        numbers.push(number);
        (*tag, false, *tag as u32)
    };
    assert_eq!(book.enter_all(&[5, 6, 7, 8, 9], &mut make), 3);
    assert_eq!(book.enter_all(&[9], &mut make), 0);
    assert_eq!(numbers, [0, 1, 2], "nothing is asked that has no room");
    assert_eq!((book.open(), book.room()), (3, 0));
    let waiting: Vec<_> = book.waiting().map(|(number, it)| (number, *it)).collect();
    assert_eq!(waiting, [(0, 5), (1, 6), (2, 7)]);
}

#[test]
fn an_answer_that_is_not_kept_takes_no_room() {
    let mut book = passing(2);
    for round in 0..9 {
        assert_eq!(book.enter(round, false, 70 + round as u32), Ok(()));
        book.give_waiting(1);
        let mut seen = None;
        let settled = book.settle(round, |tag, request| {
            seen = Some((tag, *request));
            None
        });
        assert_eq!((settled, seen), (Ok(()), Some((round, 70 + round as u32))));
        assert_eq!(book.settle(round, |_, _| Some('x')), Err(NotGiven));
        assert_eq!((book.room(), book.open()), (1, 0), "its place is taken");
        book.forget_settled();
        assert_eq!((book.answers(), book.room()), (0, 2));
        assert_eq!(book.settle(round, |_, _| Some('x')), Err(NotGiven));
    }
}
