//! What is submitted while a line is there to take it.

use super::*;

fn desk(places: u16) -> Desk {
    Desk::new(places).expect("the host has memory")
}

#[test]
fn what_is_submitted_goes_straight_to_a_line_but_not_past_what_waits() {
    let mut state = State::default();
    let id = open(&mut state, None);
    let (mut one, mut other) = (desk(2), desk(8));
    let all = [read(1), read(2), read(3)];
    assert_eq!(submit(&mut state, id, &all, &mut one, 9), Ok(3));
    assert_eq!(tags(&mut one), [1, 2]);
    assert_eq!(state.taken, 2);
    assert_eq!(submit(&mut state, id, &[read(4)], &mut other, 1), Ok(1));
    assert_eq!(tags(&mut other), [3], "that was first");
    exchange(&mut state, &mut other, 8);
    assert_eq!(tags(&mut other), [3, 4]);
    done(&mut state, &mut one);
    done(&mut state, &mut other);
    let tags: Vec<u64> = answers(&mut state, id).iter().map(|it| it.0).collect();
    assert_eq!(tags, [1, 2, 3, 4]);
}

#[test]
fn a_barrier_is_kept_within_a_batch_and_behind_it() {
    let mut state = State::default();
    let id = open(&mut state, None);
    let mut line = desk(8);
    let all = [read(1), barrier(2), read(3)];
    assert_eq!(submit(&mut state, id, &all, &mut line, 8), Ok(3));
    assert_eq!(tags(&mut line), [1]);
    done(&mut state, &mut line);
    // The barrier is alone, also while a batch comes.
    assert_eq!(submit(&mut state, id, &[read(4)], &mut line, 8), Ok(1));
    assert_eq!(tags(&mut line), [2]);
    let mut other = desk(8);
    assert_eq!(submit(&mut state, id, &[barrier(5)], &mut other, 8), Ok(1));
    assert!(tags(&mut other).is_empty());
    done(&mut state, &mut line);
    exchange(&mut state, &mut line, 8);
    assert_eq!(tags(&mut line), [3, 4]);
    done(&mut state, &mut line);
    // A batch that begins with one, while nothing is under way.
    exchange(&mut state, &mut other, 8);
    assert_eq!(tags(&mut other), [5]);
    done(&mut state, &mut other);
    assert_eq!(
        submit(&mut state, id, &[barrier(6), read(7)], &mut line, 8),
        Ok(2)
    );
    assert_eq!(tags(&mut line), [6]);
}

#[test]
fn what_cannot_be_done_is_answered_and_bars_nobody() {
    let mut state = State::default();
    let id = open(&mut state, None);
    let mut line = desk(8);
    let nowhere = BlockRequest {
        slot: 9,
        ..barrier(1)
    };
    assert_eq!(
        submit(&mut state, id, &[nowhere, read(2)], &mut line, 8),
        Ok(2)
    );
    assert_eq!(tags(&mut line), [2]);
    assert_eq!(answers(&mut state, id), [(1, BlockOutcome::BadSlot)]);
}

#[test]
fn a_batch_is_taken_in_once_and_by_its_own_queue() {
    let mut state = State::default();
    let id = open(&mut state, None);
    let (mut line, all) = (desk(8), [read(1)]);
    let mut batch = Batch::new(id, &all);
    state.exchange(&mut line, 8, &mut batch);
    state.exchange(&mut line, 8, &mut batch);
    assert_eq!((tags(&mut line), batch.entered), (vec![1], Ok(1)));
    let fenced = Err(QueueError::Fenced);
    assert_eq!(submit(&mut state, id + 1, &all, &mut line, 8), fenced);
    state.is_gone = true;
    let gone = Err(QueueError::Gone);
    assert_eq!(submit(&mut state, id, &all, &mut line, 8), gone);
    assert_eq!(tags(&mut line), [1]);
}

#[test]
fn room_is_for_what_waits_what_is_given_and_what_is_answered() {
    let mut state = State::default();
    let id = open(&mut state, None);
    let mut line = desk(8);
    let all: Vec<_> = (0..=REQUESTS as u64).map(read).collect();
    let full = REQUESTS as u32;
    assert_eq!(submit(&mut state, id, &all, &mut line, 8), Ok(full));
    assert_eq!(submit(&mut state, id, &all, &mut line, 8), Ok(0));
    // The oldest takes long, and keeps no more than its own room.
    for place in 1..8 {
        line.end(place, BlockOutcome::Done);
    }
    exchange(&mut state, &mut line, 0);
    assert_eq!(submit(&mut state, id, &all, &mut line, 0), Ok(0));
    assert_eq!(answers(&mut state, id).len(), 7);
    assert_eq!(submit(&mut state, id, &all, &mut line, 0), Ok(7));
    assert_eq!(tags(&mut line), [0]);
}
