//! The text of a line and a cursor in it. Characters are UTF-8; bytes that are none count for
//! themselves.

use alloc::vec::Vec;

/// A line with a cursor.
#[derive(Clone, Default)]
pub(crate) struct Line {
    text: Vec<u8>,
    /// In bytes; always at the start of a character, or at the end.
    at: usize,
}

impl From<Vec<u8>> for Line {
    fn from(text: Vec<u8>) -> Self {
        let at = text.len();
        Line { text, at }
    }
}

/// Whether the byte goes on with a character.
pub(crate) fn is_inside(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Removes the last character.
pub(crate) fn pop_character(text: &mut Vec<u8>) {
    while text.pop().is_some_and(is_inside) {}
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl Line {
    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where the cursor is.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The text alone.
    pub fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Puts text in front of the cursor.
    pub fn insert(&mut self, text: &[u8]) {
        if self.at == self.text.len() {
            self.text.extend_from_slice(text);
        } else {
            let behind = self.text.split_off(self.at);
            self.text.extend_from_slice(text);
            self.text.extend_from_slice(&behind);
        }
        self.at += text.len();
    }

    /// To a place, or the end if that is behind it.
    pub fn move_to(&mut self, at: usize) {
        self.at = at.min(self.text.len());
    }

    fn left_of(&self, from: usize) -> usize {
        let mut at = from.saturating_sub(1);
        while at > 0 && is_inside(self.text[at]) {
            at -= 1;
        }
        at
    }

    fn right_of(&self, from: usize) -> usize {
        let mut at = (from + 1).min(self.text.len());
        while self.text.get(at).is_some_and(|&byte| is_inside(byte)) {
            at += 1;
        }
        at
    }

    /// One character to the left.
    pub fn left(&mut self) {
        self.at = self.left_of(self.at);
    }

    /// One character to the right.
    pub fn right(&mut self) {
        self.at = self.right_of(self.at);
    }

    fn run_left(&self, from: usize, inside: impl Fn(u8) -> bool) -> usize {
        let before = &self.text[..from];
        let end = before.iter().rposition(|&byte| !inside(byte));
        end.map_or(0, |end| end + 1)
    }

    fn run_right(&self, from: usize, inside: impl Fn(u8) -> bool) -> usize {
        let behind = &self.text[from..];
        let end = behind.iter().position(|&byte| !inside(byte));
        end.map_or(self.text.len(), |end| from + end)
    }

    /// To the start of a word.
    pub fn word_left(&mut self) {
        let gap = self.run_left(self.at, |byte| !is_word(byte));
        self.at = self.run_left(gap, is_word);
    }

    /// To the end of a word.
    pub fn word_right(&mut self) {
        let gap = self.run_right(self.at, |byte| !is_word(byte));
        self.at = self.run_right(gap, is_word);
    }

    fn remove(&mut self, from: usize, to: usize) -> Vec<u8> {
        self.at = from;
        self.text.drain(from..to).collect()
    }

    /// Removes a character to the left.
    pub fn remove_left(&mut self) -> Vec<u8> {
        self.remove(self.left_of(self.at), self.at)
    }

    /// Removes a character to the right.
    pub fn remove_right(&mut self) -> Vec<u8> {
        self.remove(self.at, self.right_of(self.at))
    }

    /// Removes all to the right.
    pub fn remove_to_end(&mut self) -> Vec<u8> {
        self.remove(self.at, self.text.len())
    }

    /// Removes all to the left.
    pub fn remove_to_start(&mut self) -> Vec<u8> {
        self.remove(0, self.at)
    }

    /// Removes up to a blank on the left, and the blanks before the cursor.
    pub fn remove_word_left(&mut self) -> Vec<u8> {
        let gap = self.run_left(self.at, |byte| byte == b' ');
        let start = self.run_left(gap, |byte| byte != b' ');
        self.remove(start, self.at)
    }

    /// Removes to the end of a word.
    pub fn remove_word_right(&mut self) -> Vec<u8> {
        let from = self.at;
        self.word_right();
        let to = self.at;
        self.remove(from, to)
    }
}
