//! Tickets: the rules one by one, and random steps with a count of what each may be.

use super::below;
use crate::tickets::{Tickets, Unknown};
use std::vec::Vec;

fn tickets(count: usize) -> Tickets<char> {
    let mut tickets = Tickets::new(count).expect("the host has memory");
    tickets.begin_life();
    tickets
}

#[test]
fn an_answer_is_for_who_asked() {
    let mut all = tickets(2);
    let (a, b) = (all.take().expect("one"), all.take().expect("two"));
    assert_eq!(all.take(), None);
    let of_a = all.begin(a, 2).expect("open");
    let of_b = all.begin(b, 1).expect("open");
    assert_eq!(all.answered(of_a, None), Ok(()));
    assert_eq!(all.answered(of_b, Some('x')), Ok(()));
    assert!(!all.is_done(a) && all.is_done(b));
    assert_eq!(
        all.answered(of_b, None),
        Err(Unknown),
        "it has all its answers"
    );
    assert_eq!(all.answered(of_a, Some('y')), Ok(()));
    assert_eq!((all.failure(a), all.failure(b)), (Some('y'), Some('x')));
    all.give_back(b);
    let b = all.take().expect("free again");
    assert_eq!(all.failure(b), None);
}

#[test]
fn what_was_abandoned_is_free_with_its_last_answer() {
    let mut all = tickets(1);
    let ticket = all.take().expect("one");
    let tag = all.begin(ticket, 2).expect("open");
    all.give_back(ticket);
    assert!(all.is_haunted());
    assert_eq!(all.answered(tag, None), Ok(()));
    assert_eq!(all.take(), None);
    assert_eq!(all.answered(tag, Some('x')), Ok(()));
    assert!(!all.is_haunted());
    let again = all.take().expect("free");
    assert_eq!(all.failure(again), None);
}

#[test]
fn a_lost_queue_answers_everything_and_lends_nothing() {
    let mut all = tickets(3);
    let (idle, busy, left) = (all.take(), all.take(), all.take());
    let (idle, busy, left) = (idle.expect("1"), busy.expect("2"), left.expect("3"));
    let tag = all.begin(busy, 3).expect("open");
    all.begin(left, 1).expect("open");
    all.give_back(left);
    all.end('g');
    assert_eq!((all.under_way(), all.is_haunted()), (0, false));
    assert!(all.is_done(busy));
    assert_eq!(all.failure(busy), Some('g'));
    assert_eq!(
        all.begin(idle, 1),
        Err('g'),
        "its memory may be written by the device yet"
    );
    assert_eq!(all.take(), None, "there is no queue");
    all.begin_life();
    assert_eq!(all.begin(idle, 1), Err('g'));
    assert_eq!(all.answered(tag, None), Err(Unknown), "of another life");
    all.give_back(busy);
    let new = all.take().expect("one");
    let new_tag = all.begin(new, 1).expect("open");
    assert_eq!(all.answered(tag, None), Err(Unknown));
    assert_eq!(all.answered(new_tag, None), Ok(()));
}

#[test]
fn a_chain_comes_to_be_had_and_is_free_as_one() {
    let mut all = tickets(3);
    let one = all.take().expect("one");
    assert_eq!(all.take_chain(3), None);
    assert_eq!(all.take(), None, "they are wanted");
    all.give_back(one);
    let first = all.take_chain(3).expect("all are free");
    let second = all.next_of(first).expect("a second");
    let third = all.next_of(second).expect("a third");
    assert_eq!(all.next_of(third), None);
    let tag = all.begin(first, 1).expect("open");
    all.give_back(first);
    assert_eq!(all.take(), None);
    all.answered(tag, None).expect("asked");
    let free: Vec<_> = (0..4).filter_map(|_| all.take()).collect();
    assert_eq!(free.len(), 3);
}

#[test]
fn who_wants_no_chain_any_more_gives_way() {
    let mut all = tickets(2);
    let _one = all.take();
    assert_eq!(all.take_chain(2), None);
    all.want_no_more();
    assert!(all.take().is_some());
    all.end('g');
    assert_eq!(all.take_chain(1), None);
    all.want_no_more();
    all.begin_life();
    assert_eq!(all.take(), None, "both are held");
}

#[test]
fn in_random_steps_no_ticket_has_two_holders() {
    for seed in 1..300u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let count = 1 + below(&mut random, 5) as usize;
        let mut all = tickets(count);
        let mut held: Vec<usize> = Vec::new();
        let mut asked: Vec<u64> = Vec::new();
        for _ in 0..300 {
            match below(&mut random, 8) {
                0..=1 => {
                    if let Some(ticket) = all.take() {
                        assert!(!held.contains(&ticket));
                        let haunted = asked.iter().any(|tag| *tag & 0xffff == ticket as u64);
                        assert!(!haunted, "somebody's answers are still to come");
                        held.push(ticket);
                    }
                }
                2..=3 if !held.is_empty() => {
                    let ticket = held[below(&mut random, held.len() as u64) as usize];
                    if let Ok(tag) = all.begin(ticket, 1) {
                        asked.push(tag);
                    }
                }
                4..=5 if !asked.is_empty() => {
                    let index = below(&mut random, asked.len() as u64) as usize;
                    assert_eq!(all.answered(asked.swap_remove(index), None), Ok(()));
                }
                6 if !held.is_empty() => {
                    let index = below(&mut random, held.len() as u64) as usize;
                    all.give_back(held.swap_remove(index));
                }
                _ if below(&mut random, 12) == 0 => {
                    all.end('g');
                    asked.clear();
                    all.begin_life();
                }
                _ => {}
            }
            assert_eq!(all.under_way(), asked.len() as u64);
        }
    }
}
