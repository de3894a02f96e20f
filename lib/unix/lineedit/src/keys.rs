//! Bytes to keys: control characters, escape sequences (ECMA-48, 5.4, and xterm's) and UTF-8.

use alloc::vec::Vec;

/// A key, by what it means to an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Key {
    /// A character: all its bytes.
    Character(Vec<u8>),
    Enter,
    Tab,
    Interrupt,
    /// Ctrl-D.
    EndOrDelete,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    RemoveToEnd,
    RemoveToStart,
    RemoveWord,
    RemoveWordRight,
    Yank,
    Search,
    /// Ctrl-G.
    Abort,
    Clear,
    /// It means nothing, but ends a search.
    Other,
}

/// Longest parameters of an escape sequence that are kept.
const PARAMETERS: usize = 16;

#[derive(Default)]
enum State {
    #[default]
    Ground,
    /// Behind the escape character.
    Escape,
    /// Behind `ESC [` or `ESC O`, with the parameters so far.
    Sequence(Vec<u8>),
    /// In a character of which so many bytes are missing.
    Character(Vec<u8>, usize),
}

/// Puts keys together.
#[derive(Default)]
pub(crate) struct Keys(State);

impl Keys {
    /// Takes a byte; the key that it ends.
    pub fn feed(&mut self, byte: u8) -> Option<Key> {
        match core::mem::take(&mut self.0) {
            State::Ground => self.ground(byte),
            State::Escape => self.escape(byte),
            State::Sequence(parameters) => self.sequence(parameters, byte),
            State::Character(mut bytes, missing) => {
                if byte & 0xc0 != 0x80 {
                    // The character was cut off: it is dropped.
                    return self.ground(byte);
                }
                bytes.push(byte);
                match missing {
                    1 => Some(Key::Character(bytes)),
                    _ => {
                        self.0 = State::Character(bytes, missing - 1);
                        None
                    }
                }
            }
        }
    }

    fn ground(&mut self, byte: u8) -> Option<Key> {
        let missing = match byte {
            0x1b => {
                self.0 = State::Escape;
                return None;
            }
            0x00..=0x1f | 0x7f => return Some(control(byte)),
            0x20..=0x7e => return Some(Key::Character(Vec::from([byte]))),
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            // No start of a character; file names may have such bytes.
            _ => return Some(Key::Character(Vec::from([byte]))),
        };
        self.0 = State::Character(Vec::from([byte]), missing);
        None
    }

    fn escape(&mut self, byte: u8) -> Option<Key> {
        match byte {
            b'[' | b'O' => {
                self.0 = State::Sequence(Vec::new());
                None
            }
            0x1b => {
                self.0 = State::Escape;
                None
            }
            b'b' => Some(Key::WordLeft),
            b'f' => Some(Key::WordRight),
            b'd' => Some(Key::RemoveWordRight),
            0x7f | 0x08 => Some(Key::RemoveWord),
            0x00..=0x1f => Some(control(byte)),
            _ => Some(Key::Other),
        }
    }

    fn sequence(&mut self, mut parameters: Vec<u8>, byte: u8) -> Option<Key> {
        match byte {
            0x20..=0x3f => {
                if parameters.len() < PARAMETERS {
                    parameters.push(byte);
                }
                self.0 = State::Sequence(parameters);
                None
            }
            // A control character is obeyed also in the middle of a sequence.
            0x00..=0x1f => self.ground(byte),
            _ => Some(of_sequence(&parameters, byte)),
        }
    }
}

fn control(byte: u8) -> Key {
    match byte {
        0x01 => Key::Home,
        0x02 => Key::Left,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOrDelete,
        0x05 => Key::End,
        0x06 => Key::Right,
        0x07 => Key::Abort,
        0x08 | 0x7f => Key::Backspace,
        b'\t' => Key::Tab,
        b'\r' | b'\n' => Key::Enter,
        0x0b => Key::RemoveToEnd,
        0x0c => Key::Clear,
        0x0e => Key::Down,
        0x10 => Key::Up,
        0x12 => Key::Search,
        0x15 => Key::RemoveToStart,
        0x17 => Key::RemoveWord,
        0x19 => Key::Yank,
        _ => Key::Other,
    }
}

fn of_sequence(parameters: &[u8], last: u8) -> Key {
    // `1;5C` is the right arrow with Ctrl, `1;3C` with Alt.
    let by_word = parameters.ends_with(b";5") || parameters.ends_with(b";3");
    match (last, parameters, by_word) {
        (b'A', ..) => Key::Up,
        (b'B', ..) => Key::Down,
        (b'C', _, true) => Key::WordRight,
        (b'C', _, false) => Key::Right,
        (b'D', _, true) => Key::WordLeft,
        (b'D', _, false) => Key::Left,
        (b'H', ..) | (b'~', b"1" | b"7", _) => Key::Home,
        (b'F', ..) | (b'~', b"4" | b"8", _) => Key::End,
        (b'~', b"3", _) => Key::Delete,
        _ => Key::Other,
    }
}
