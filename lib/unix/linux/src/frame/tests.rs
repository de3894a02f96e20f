//! Frames as Linux makes them, and frames that a program has made itself.

use super::*;
use crate::fake::Fake;
use crate::memory::{PAGE, READ, WRITE, read_word};
use alloc::vec::Vec;

const TOP: u64 = 0x50_0000;

fn space() -> Fake {
    let space = Fake::default();
    space
        .map_zero(TOP - 4 * PAGE, 4 * PAGE, READ | WRITE)
        .expect("it is free");
    space
}

fn interrupted() -> Interrupted {
    let mut registers = [0; 18];
    for (number, register) in (1..).zip(&mut registers) {
        *register = number << 40;
    }
    registers[15] = TOP - 0x100;
    Interrupted {
        registers,
        mask: 0x55,
        stack: [0x1000, 2, 0x2000],
        trap: [7, 14, 0xdead_0000],
    }
}

/// A state of this length whose bytes all differ from zeros, but for the header's; with the room of
/// a frame around it.
fn state(length: usize) -> Vec<u8> {
    let mut state: Vec<u8> = (0..length).map(|at| at as u8 | 1).collect();
    if length > LEGACY {
        state[LEGACY..LEGACY + HEADER].fill(0);
        state[LEGACY] = 7;
    }
    [&[0xee; FRONT], &*state, &[0xee; BEHIND]].concat()
}

fn info() -> Info {
    Info {
        signal: 17,
        code: 1,
        pair: [40, 1000],
        rest: [3, 4],
    }
}

#[test]
fn a_frame_lies_as_handlers_expect_it() {
    for length in [LEGACY, 832, 2696] {
        let space = space();
        let mut vector = state(length);
        let frame = push(&space, None, 0x1234, &interrupted(), &info(), &mut vector);
        let frame = frame.expect("there is room");
        assert_eq!((frame.at + 8) % 16, 0, "as behind a call");
        assert!(frame.at < TOP - 0x100 - RED_ZONE - length as u64);
        let word = |at| read_word(&space, at).expect("it is there");
        assert_eq!(word(frame.at), 0x1234);
        assert_eq!((frame.context, frame.info), (frame.at + 8, frame.at + 312));
        assert_eq!(word(frame.info), 17);
        assert_eq!(word(frame.info + 16), 40 | 1000 << 32);
        // R8 is the first register, RSP the sixteenth, and the mask the last word.
        assert_eq!(word(frame.context + 40), 1 << 40);
        assert_eq!(word(frame.context + 40 + 15 * 8), TOP - 0x100);
        assert_eq!(word(frame.context + 296), 0x55);
        let at = word(frame.context + 224);
        assert_eq!(at % 64, 0);
        assert!(at + length as u64 <= TOP - 0x100 - RED_ZONE);
    }
}

#[test]
fn what_was_interrupted_comes_back() {
    for length in [LEGACY, 832, 2696] {
        let space = space();
        let (of, mut vector) = (interrupted(), state(length));
        let right = vector[FRONT..].to_vec();
        let frame = push(&space, Some(TOP), 0, &of, &info(), &mut vector).expect("there is room");
        let mut found = alloc::vec![0; length + BEHIND];
        let (back, has_state) = pop(&space, frame.at, &mut found).expect("it is there");
        let expected = Interrupted { trap: [0; 3], ..of };
        assert_eq!((back, has_state), (expected, true));
        let unused = if length > LEGACY { SAID..LEGACY } else { 0..0 };
        for at in (0..length).filter(|at| !unused.contains(at)) {
            assert_eq!(found[at], right[at], "byte {at} of {length}");
        }
    }
}

/// A program may have written a state of the form that is older than what stands behind it, or
/// none.
#[test]
fn a_state_without_its_words_is_the_basic_one() {
    let space = space();
    let (of, mut vector) = (interrupted(), state(832));
    let frame = push(&space, Some(TOP), 0, &of, &info(), &mut vector).expect("there is room");
    let at = read_word(&space, frame.context + 224).expect("it is there");
    let popped = |space: &Fake| {
        let mut found = alloc::vec![9; 832 + BEHIND];
        let (_, has_state) = pop(space, frame.at, &mut found).expect("it is there");
        (has_state, found)
    };
    for place in [at + SAID as u64, at + SAID as u64 + 16, at + 832] {
        let mut before = [0; 4];
        read(&space, place, &mut before).expect("it is there");
        write(&space, place, &[0; 4]).expect("it is there");
        let (has_state, found) = popped(&space);
        assert!(has_state);
        assert_eq!(found[LEGACY..LEGACY + 8], BASIC.to_le_bytes());
        assert!(found[LEGACY + 8..832].iter().all(|byte| *byte == 0));
        write(&space, place, &before).expect("it is there");
    }
    write(&space, frame.context + 224, &[0; 8]).expect("it is there");
    assert!(!popped(&space).0);
}

/// A basic state at the end of what can be read is taken; a frame touches nothing that is not its.
#[test]
fn nothing_beside_a_frame_is_looked_at() {
    let space = space();
    let (of, mut vector) = (interrupted(), state(832));
    write(&space, TOP - 0x100 - RED_ZONE, &[0xaa; 4]).expect("it is there");
    let frame = push(&space, None, 0, &of, &info(), &mut vector).expect("there is room");
    let mut beside = [0; 4];
    read(&space, TOP - 0x100 - RED_ZONE, &mut beside).expect("it is there");
    assert_eq!(beside, [0xaa; 4]);
    let last = TOP - LEGACY as u64;
    write(&space, last, &[5; LEGACY]).expect("it is there");
    write(&space, frame.context + 224, &last.to_le_bytes()).expect("it is there");
    let mut found = alloc::vec![9; 832 + BEHIND];
    let (_, has_state) = pop(&space, frame.at, &mut found).expect("it is there");
    assert!(has_state && found[..LEGACY] == [5; LEGACY]);
    assert_eq!(found[LEGACY..LEGACY + 8], BASIC.to_le_bytes());
}

#[test]
fn a_frame_without_room_is_refused() {
    let space = Fake::default();
    let mut vector = state(832);
    for top in [None, Some(0), Some(100), Some(TOP)] {
        let frame = push(&space, top, 0, &interrupted(), &info(), &mut vector);
        assert_eq!(frame, Err(EFAULT));
    }
    for at in [0, TOP, u64::MAX - 4, 1 << 47] {
        assert_eq!(
            pop(&space, at, &mut vector).map(|_| ()),
            Err(EFAULT),
            "{at:x}"
        );
    }
}
