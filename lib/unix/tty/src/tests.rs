//! What a user can type, right and wrong.

use super::*;
use std::string::String;

extern crate std;

/// Feeds `input`; everything that was echoed, and the last event.
fn type_in(tty: &mut Tty, input: &[u8]) -> (String, Option<Event>) {
    let mut echo = Vec::new();
    let mut last = None;
    for &byte in input {
        last = tty.feed(byte, &mut echo);
    }
    (String::from_utf8_lossy(&echo).into_owned(), last)
}

fn read(tty: &mut Tty) -> Option<Vec<u8>> {
    let mut buffer = [0; 64];
    tty.read(&mut buffer).map(|count| buffer[..count].to_vec())
}

#[test]
fn a_line_is_read_when_it_is_ended() {
    let mut tty = Tty::new(true);
    assert_eq!(type_in(&mut tty, b"ls"), ("ls".into(), None));
    assert_eq!(read(&mut tty), None);
    assert_eq!(
        type_in(&mut tty, b"\r"),
        ("\r\n".into(), Some(Event::Ready))
    );
    assert_eq!(read(&mut tty).as_deref(), Some(&b"ls\n"[..]));
    assert_eq!(read(&mut tty), None);
}

#[test]
fn a_read_never_crosses_a_line_and_may_take_it_in_parts() {
    let mut tty = Tty::new(false);
    type_in(&mut tty, b"abc\nd\n");
    let mut two = [0; 2];
    assert_eq!(tty.read(&mut two), Some(2));
    assert_eq!(read(&mut tty).as_deref(), Some(&b"c\n"[..]));
    assert_eq!(read(&mut tty).as_deref(), Some(&b"d\n"[..]));
}

#[test]
fn backspace_takes_back_a_whole_character() {
    let mut tty = Tty::new(true);
    let (echo, _) = type_in(&mut tty, "a\u{e9}\u{7f}b\n".as_bytes());
    assert_eq!(echo, "a\u{e9}\u{8} \u{8}b\r\n");
    assert_eq!(read(&mut tty).as_deref(), Some(&b"ab\n"[..]));
}

#[test]
fn backspace_on_an_empty_line_does_nothing() {
    let mut tty = Tty::new(true);
    assert_eq!(
        type_in(&mut tty, b"\x7f\x08\x15\x17"),
        (String::new(), None)
    );
}

#[test]
fn word_and_line_are_taken_back() {
    let mut tty = Tty::new(false);
    type_in(&mut tty, b"cat foo  \x17bar\n");
    assert_eq!(read(&mut tty).as_deref(), Some(&b"cat bar\n"[..]));
    type_in(&mut tty, b"rm -r /\x15ls\n");
    assert_eq!(read(&mut tty).as_deref(), Some(&b"ls\n"[..]));
}

#[test]
fn control_d_ends_the_input_once() {
    let mut tty = Tty::new(true);
    assert_eq!(
        type_in(&mut tty, b"\x04"),
        (String::new(), Some(Event::Ready))
    );
    assert_eq!(read(&mut tty).as_deref(), Some(&b""[..]));
    assert_eq!(read(&mut tty), None);
}

#[test]
fn control_d_behind_text_hands_it_over() {
    let mut tty = Tty::new(false);
    type_in(&mut tty, b"ab\x04");
    assert_eq!(read(&mut tty).as_deref(), Some(&b"ab"[..]));
    assert_eq!(read(&mut tty), None);
}

#[test]
fn an_empty_buffer_takes_nothing() {
    let mut tty = Tty::new(false);
    type_in(&mut tty, b"ab\n");
    assert_eq!(tty.read(&mut []), Some(0));
    assert_eq!(read(&mut tty).as_deref(), Some(&b"ab\n"[..]));
}

#[test]
fn control_c_throws_away_what_nobody_read() {
    let mut tty = Tty::new(true);
    type_in(&mut tty, b"one\ntwo");
    assert_eq!(
        type_in(&mut tty, b"\x03"),
        ("^C\r\n".into(), Some(Event::Interrupt))
    );
    assert_eq!(read(&mut tty), None);
    type_in(&mut tty, b"x\n");
    assert_eq!(read(&mut tty).as_deref(), Some(&b"x\n"[..]));
}

#[test]
fn escape_sequences_mean_nothing() {
    let mut tty = Tty::new(true);
    let (echo, _) = type_in(&mut tty, b"a\x1b[A\x1b[1;5C\x1bOPb\x1b[\x1b\n");
    assert_eq!(echo, "ab\r\n");
    assert_eq!(read(&mut tty).as_deref(), Some(&b"ab\n"[..]));
}

#[test]
fn a_torn_escape_sequence_does_not_swallow_control_c() {
    let mut tty = Tty::new(false);
    assert_eq!(type_in(&mut tty, b"\x1b[\x03").1, Some(Event::Interrupt));
}

#[test]
fn a_line_that_is_too_long_is_cut_with_a_bell() {
    let mut tty = Tty::new(true);
    let long = std::vec![b'a'; LINE_LIMIT];
    type_in(&mut tty, &long);
    assert_eq!(type_in(&mut tty, b"b").0, "\u{7}");
    type_in(&mut tty, b"\n");
    let mut buffer = std::vec![0; LINE_LIMIT + 10];
    assert_eq!(tty.read(&mut buffer), Some(LINE_LIMIT + 1));
}

#[test]
fn says_when_it_is_full() {
    let mut tty = Tty::new(false);
    let line = [&[b'a'; 1023][..], b"\n"].concat();
    for _ in 0..64 {
        assert!(!tty.is_full());
        type_in(&mut tty, &line);
    }
    assert!(tty.is_full());
    read(&mut tty);
    assert!(!tty.is_full());
    for _ in 0..LINES_LIMIT {
        type_in(&mut tty, b"\x04");
    }
    assert!(tty.is_full());
}

#[test]
fn without_echo_nothing_is_shown() {
    let mut tty = Tty::new(false);
    assert_eq!(type_in(&mut tty, b"ab\x7f\x03").0, "");
}

#[test]
fn output_gets_carriage_returns_and_never_half_of_one() {
    let mut out = [0; 4];
    assert_eq!(with_carriage_returns(b"a\nb\nc", &mut out), (3, 4));
    assert_eq!(&out, b"a\r\nb");
    assert_eq!(with_carriage_returns(b"abc\n", &mut out), (3, 3));
    assert_eq!(with_carriage_returns(b"\n", &mut out[..1]), (0, 0));
}

#[test]
fn ctrl_z_is_reported_and_drops_the_line() {
    let mut tty = Tty::new(true);
    let typed = type_in(&mut tty, b"abc\x1a");
    assert_eq!(typed, ("abc^Z\r\n".into(), Some(Event::Suspend)));
    type_in(&mut tty, b"x\n");
    assert_eq!(read(&mut tty), Some(b"x\n".to_vec()));
}

#[test]
fn raw_bytes_come_as_they_are_and_are_not_echoed() {
    let mut tty = Tty::new(true);
    tty.set_raw(true, &mut Vec::new());
    let typed = type_in(&mut tty, b"a\x1b[A\x03\r");
    assert_eq!(typed, (String::new(), Some(Event::Ready)));
    assert_eq!(read(&mut tty), Some(b"a\x1b[A\x03\r".to_vec()));
    assert_eq!(read(&mut tty), None);
    type_in(&mut tty, b"b");
    assert_eq!(read(&mut tty), Some(b"b".to_vec()));
}

#[test]
fn a_change_of_mode_loses_nothing_that_was_typed() {
    let mut tty = Tty::new(true);
    type_in(&mut tty, b"one\ntw");
    tty.set_raw(true, &mut Vec::new());
    type_in(&mut tty, b"o\rthree\x7f\r\x03");
    let mut first = [0; 6];
    assert_eq!(tty.read(&mut first), Some(4));
    let mut part = [0; 2];
    assert_eq!(tty.read(&mut part), Some(2));
    let mut echo = Vec::new();
    let events = tty.set_raw(false, &mut echo);
    assert_eq!(events, [Event::Ready, Event::Ready, Event::Interrupt]);
    assert!(echo.starts_with(b"o\r\nthree\x08 \x08\r\n"));
    assert_eq!(read(&mut tty), None);
    type_in(&mut tty, b"x\n");
    assert_eq!(read(&mut tty), Some(b"x\n".to_vec()));
}

#[test]
fn what_is_not_shown_is_read_and_what_is_cleared_is_gone() {
    let mut tty = Tty::new(true);
    tty.set_echo(false);
    let typed = type_in(&mut tty, b"secret\n");
    assert_eq!(typed, (String::new(), Some(Event::Ready)));
    assert!(tty.has_input());
    let mut part = [0; 2];
    assert_eq!(tty.read(&mut part), Some(2));
    tty.set_echo(true);
    type_in(&mut tty, b"mo");
    tty.clear();
    assert!(!tty.has_input());
    assert_eq!(read(&mut tty), None);
    type_in(&mut tty, b"re\n");
    assert_eq!(read(&mut tty), Some(b"re\n".to_vec()));
}
