//! A line editor with history and completion: bytes from a keyboard go in, what a terminal is to
//! show comes out.
//!
//! An [`Editor`] has no terminal, no files and no clock. Its owner feeds it what is typed, writes
//! what it appends to the screen's buffer, answers when it asks for completions, and stores the
//! [`History`].
//!
//! | typed | what it does |
//! | --- | --- |
//! | arrows, Home, End, Ctrl-A/E/B/F | moves the cursor; with Ctrl or Alt, and Alt-B/F, by words |
//! | arrows up and down, Ctrl-P/N | goes through the history |
//! | Backspace, Delete, Ctrl-D | removes a character; Ctrl-D on an empty line ends the input |
//! | Ctrl-K, Ctrl-U, Ctrl-W, Alt-D | removes up to the end, to the start, a word; Ctrl-Y puts it back |
//! | Ctrl-R | searches the history backwards; again for the next, Ctrl-G leaves |
//! | Tab | completes; a second time it lists what is possible |
//! | Ctrl-L | clears the screen |
//! | Ctrl-C | drops the line |
//!
//! What is shown needs a terminal that knows the commonest sequences of ECMA-48 (as all do) - but
//! only for what cannot be done otherwise. As long as characters are only added at the end of a
//! line that fits, they are all that is sent; so whoever types at the system through a pipe sees
//! what a terminal without editing would show.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod complete;
mod history;
mod keys;
mod line;
mod screen;

use alloc::vec::Vec;

pub use complete::{Candidates, unescaped, word_start};
pub use history::History;
use keys::{Key, Keys};
use line::Line;
use screen::Screen;

/// Longest line, in bytes; more is answered with a bell.
pub const LINE_LIMIT: usize = 128 * 1024;

const BELL: &[u8] = b"\x07";

/// What came of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The line is done.
    Line(Vec<u8>),
    /// Ctrl-C: what was typed is dropped.
    Interrupted,
    /// Ctrl-D on an empty line.
    End,
    /// [`Editor::complete`] is to be called with what could stand where the cursor is.
    Complete,
}

/// A search in the history.
struct Search {
    what: Vec<u8>,
    /// The entry that was found.
    at: Option<usize>,
    /// The line as it was before.
    before: Line,
}

/// An editor of lines.
pub struct Editor {
    keys: Keys,
    line: Line,
    screen: Screen,
    prompt: Vec<u8>,
    /// Which entry of the history is shown; `None`: the new line.
    recalled: Option<usize>,
    /// The new line while an entry is shown.
    kept: Vec<u8>,
    /// What Ctrl-K and its like removed last.
    removed: Vec<u8>,
    search: Option<Search>,
    /// The last key was Tab, and changed nothing.
    tab_again: bool,
}

impl Editor {
    /// An editor for a terminal so many columns wide.
    pub fn new(columns: usize) -> Self {
        Editor {
            keys: Keys::default(),
            line: Line::default(),
            screen: Screen::new(columns),
            prompt: Vec::new(),
            recalled: None,
            kept: Vec::new(),
            removed: Vec::new(),
            search: None,
            tab_again: false,
        }
    }

    /// From the next [`begin`](Self::begin) on the terminal is so many columns wide.
    pub fn resize(&mut self, columns: usize) {
        self.screen.resize(columns);
    }

    /// Begins a new line. What is to be shown is appended to `out`, here and in all other methods.
    pub fn begin(&mut self, prompt: &[u8], out: &mut Vec<u8>) {
        self.prompt = prompt.to_vec();
        self.line = Line::default();
        self.recalled = None;
        self.search = None;
        self.tab_again = false;
        self.screen.begin();
        self.show(out);
    }

    /// The text of the line and the place of the cursor in it, in bytes.
    pub fn line(&self) -> (&[u8], usize) {
        (self.line.text(), self.line.at())
    }

    fn show(&mut self, out: &mut Vec<u8>) {
        self.screen
            .show(&self.prompt, self.line.text(), self.line.at(), out);
    }

    /// Takes a byte from the keyboard.
    pub fn feed(&mut self, byte: u8, history: &History, out: &mut Vec<u8>) -> Option<Event> {
        let key = self.keys.feed(byte)?;
        if self.search.is_some() {
            match self.search_key(key, history, out) {
                Some(key) => return self.key(key, history, out),
                None => return None,
            }
        }
        self.key(key, history, out)
    }

    fn key(&mut self, key: Key, history: &History, out: &mut Vec<u8>) -> Option<Event> {
        let again = core::mem::take(&mut self.tab_again);
        match key {
            Key::Enter => return Some(self.enter(out)),
            Key::Interrupt => {
                self.screen.leave(&self.prompt, self.line.text(), out);
                out.extend_from_slice(b"^C\r\n");
                return Some(Event::Interrupted);
            }
            Key::EndOrDelete if self.line.text().is_empty() => return Some(Event::End),
            Key::Tab => {
                self.tab_again = again;
                return Some(Event::Complete);
            }
            Key::Search => {
                self.search = Some(Search {
                    what: Vec::new(),
                    at: None,
                    before: self.line.clone(),
                });
                self.show_search(history, out);
                return None;
            }
            Key::Clear => {
                out.extend_from_slice(b"\x1b[H\x1b[2J");
                self.screen.begin();
            }
            Key::Up => self.recall(true, history, out),
            Key::Down => self.recall(false, history, out),
            Key::Character(bytes) => {
                if self.line.text().len() + bytes.len() > LINE_LIMIT {
                    out.extend_from_slice(BELL);
                } else {
                    self.line.insert(&bytes);
                }
            }
            Key::Yank => {
                let removed = self.removed.clone();
                match self.line.text().len() + removed.len() > LINE_LIMIT {
                    true => out.extend_from_slice(BELL),
                    false => self.line.insert(&removed),
                }
            }
            other => self.edit(other),
        }
        self.show(out);
        None
    }

    /// Keys that move the cursor or remove something.
    fn edit(&mut self, key: Key) {
        let line = &mut self.line;
        let removed = match key {
            Key::Left => return line.left(),
            Key::Right => return line.right(),
            Key::WordLeft => return line.word_left(),
            Key::WordRight => return line.word_right(),
            Key::Home => return line.move_to(0),
            Key::End => return line.move_to(usize::MAX),
            Key::Backspace => {
                line.remove_left();
                return;
            }
            Key::Delete | Key::EndOrDelete => {
                line.remove_right();
                return;
            }
            Key::RemoveToEnd => line.remove_to_end(),
            Key::RemoveToStart => line.remove_to_start(),
            Key::RemoveWord => line.remove_word_left(),
            Key::RemoveWordRight => line.remove_word_right(),
            _ => return,
        };
        if !removed.is_empty() {
            self.removed = removed;
        }
    }

    fn enter(&mut self, out: &mut Vec<u8>) -> Event {
        self.screen.leave(&self.prompt, self.line.text(), out);
        out.extend_from_slice(b"\r\n");
        Event::Line(core::mem::take(&mut self.line).into_text())
    }

    /// Goes one entry back or forth in the history.
    fn recall(&mut self, back: bool, history: &History, out: &mut Vec<u8>) {
        let next = match (self.recalled, back) {
            (None, true) => history.len().checked_sub(1),
            (Some(at), true) => at.checked_sub(1),
            (None, false) => None,
            (Some(at), false) => Some(at + 1),
        };
        if self.recalled.is_none() && next.is_some() {
            self.kept = self.line.text().to_vec();
        }
        match next.map(|at| (at, history.get(at))) {
            Some((at, Some(entry))) => {
                self.recalled = Some(at);
                self.line = Line::from(entry.to_vec());
            }
            Some((_, None)) => {
                self.recalled = None;
                self.line = Line::from(core::mem::take(&mut self.kept));
            }
            None => out.extend_from_slice(BELL),
        }
    }

    /// A key while the history is searched; some end the search and then do what they always do.
    fn search_key(&mut self, key: Key, history: &History, out: &mut Vec<u8>) -> Option<Key> {
        let search = self.search.as_mut()?;
        let from = match key {
            Key::Character(ref bytes) => {
                search.what.extend_from_slice(bytes);
                search.at.map_or(history.len(), |at| at + 1)
            }
            Key::Backspace => {
                line::pop_character(&mut search.what);
                history.len()
            }
            Key::Search => search.at.unwrap_or(history.len()),
            Key::Abort => {
                self.line = search.before.clone();
                self.search = None;
                self.show(out);
                return None;
            }
            other => {
                self.search = None;
                self.show(out);
                return Some(other);
            }
        };
        match history.find_before(from, &search.what) {
            Some(at) => {
                search.at = Some(at);
                self.recalled = Some(at);
                let entry = history.get(at).unwrap_or_default();
                self.line = Line::from(entry.to_vec());
            }
            None => out.extend_from_slice(BELL),
        }
        self.show_search(history, out);
        None
    }

    fn show_search(&mut self, _history: &History, out: &mut Vec<u8>) {
        let what = self.search.as_ref().map(|search| search.what.as_slice());
        let prompt = [b"(search) `", what.unwrap_or_default(), b"': "].concat();
        self.screen
            .show(&prompt, self.line.text(), self.line.at(), out);
    }

    /// The answer to [`Event::Complete`].
    pub fn complete(&mut self, candidates: &Candidates, out: &mut Vec<u8>) {
        let (start, at) = (candidates.start, self.line.at());
        let typed = self.line.text().get(start..at).unwrap_or_default().to_vec();
        let addition = candidates.addition(&typed);
        if addition.is_empty() {
            let list = candidates.len() > 1 && self.tab_again;
            self.tab_again = true;
            match list {
                true => self.list(candidates, out),
                false => out.extend_from_slice(BELL),
            }
            return;
        }
        if self.line.text().len() + addition.len() <= LINE_LIMIT {
            self.line.insert(&addition);
        }
        self.show(out);
    }

    /// Shows all that is possible under the line, and the line again under that.
    fn list(&mut self, candidates: &Candidates, out: &mut Vec<u8>) {
        self.screen.leave(&self.prompt, self.line.text(), out);
        out.extend_from_slice(b"\r\n");
        candidates.table(self.screen.columns(), out);
        self.screen.begin();
        self.show(out);
    }
}

#[cfg(test)]
mod tests;
