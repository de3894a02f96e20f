//! The line discipline of a terminal: bytes typed at a keyboard go in, edited lines come out.
//!
//! A [`Tty`] has no locks, no waits and no device. Its owner feeds it what the device delivers,
//! writes back what it wants echoed, and blocks readers while [`Tty::read`] has nothing for them.
//!
//! | typed | what it does |
//! | --- | --- |
//! | Enter (CR or LF) | ends the line; readers see LF |
//! | Backspace, Delete | takes back one character (of UTF-8: all its bytes) |
//! | Ctrl-W | takes back a word and the blanks behind it |
//! | Ctrl-U | takes back the line |
//! | Ctrl-D | hands over what was typed, without an end of line; on an empty line it is the end of input |
//! | Ctrl-C | throws away everything that was typed and not read, and is reported |
//! | Ctrl-Z | throws away the line that is being typed, and is reported |
//! | escape sequences, other control characters | nothing |
//!
//! In raw mode ([`Tty::set_raw`]) none of this holds: readers get every byte as it is typed, and
//! nothing is echoed. That is for a program that edits lines itself.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod output;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use output::with_carriage_returns;

/// Longest line that can be typed, in bytes; more is answered with a bell.
pub const LINE_LIMIT: usize = 4095;

/// Bytes of finished lines above which [`Tty::is_full`] asks the owner to stop feeding.
pub const READY_LIMIT: usize = 64 * 1024;

/// Finished lines (also empty ends of input) above which [`Tty::is_full`] asks the owner to stop
/// feeding.
const LINES_LIMIT: usize = 4096;

const BELL: &[u8] = b"\x07";
const ERASE: &[u8] = b"\x08 \x08";

/// What a byte meant, beyond its echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A reader may go on: there is a line, or the end of input.
    Ready,
    /// Ctrl-C was typed.
    Interrupt,
    /// Ctrl-Z was typed.
    Suspend,
}

/// Where the discipline stands inside an escape sequence (ECMA-48, section 5.4).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// Outside.
    None,
    /// Behind the escape character.
    Start,
    /// Behind `ESC [` or `ESC O`, before the final byte.
    Sequence,
}

/// A terminal's input side.
pub struct Tty {
    /// The line that is being typed.
    line: Vec<u8>,
    /// Finished lines in order. An empty one stands for an end of input.
    ready: VecDeque<Vec<u8>>,
    /// How much of the first finished line was read already.
    taken: usize,
    /// Bytes in all finished lines.
    ready_bytes: usize,
    escape: Escape,
    echo: bool,
    raw: bool,
    /// Bytes that were typed in raw mode and not read; at the end of `ready`, as one member.
    raw_tail: bool,
}

impl Tty {
    /// An empty terminal; with `echo`, what is typed is shown.
    pub const fn new(echo: bool) -> Self {
        Tty {
            line: Vec::new(),
            ready: VecDeque::new(),
            taken: 0,
            ready_bytes: 0,
            escape: Escape::None,
            echo,
            raw: false,
            raw_tail: false,
        }
    }

    /// Whether raw mode is on.
    pub const fn is_raw(&self) -> bool {
        self.raw
    }

    /// Sets whether what is typed is shown.
    pub const fn set_echo(&mut self, echo: bool) {
        self.echo = echo;
    }

    /// Whether there is something for a reader, if only the end of input.
    pub fn has_input(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Throws away what was typed and not read.
    pub fn clear(&mut self) {
        self.line.clear();
        self.ready.clear();
        (self.taken, self.ready_bytes, self.raw_tail) = (0, 0, false);
    }

    /// Switches raw mode on or off. Nothing that was typed is lost: a line that is being typed can
    /// be read raw, and raw bytes that nobody has read are taken as if they were typed again. What
    /// comes of them is appended to `echo` and returned.
    pub fn set_raw(&mut self, on: bool, echo: &mut Vec<u8>) -> Vec<Event> {
        if on == self.raw {
            return Vec::new();
        }
        self.raw = on;
        self.escape = Escape::None;
        if on {
            let line = core::mem::take(&mut self.line);
            line.into_iter().for_each(|byte| self.add_raw(byte));
            return Vec::new();
        }
        let mut typed = Vec::new();
        if core::mem::take(&mut self.raw_tail) {
            typed = self.ready.pop_back().unwrap_or_default();
            if self.ready.is_empty() {
                typed.drain(..core::mem::take(&mut self.taken));
            }
            self.ready_bytes -= typed.len();
        }
        let events = typed.into_iter().map(|byte| self.feed(byte, echo));
        events.flatten().collect()
    }

    /// Takes one byte from the keyboard. What is to be shown is appended to `echo`.
    pub fn feed(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<Event> {
        if self.raw {
            self.add_raw(byte);
            return Some(Event::Ready);
        }
        if self.skip_escape(byte) {
            return None;
        }
        match byte {
            b'\r' | b'\n' => return Some(self.end_line(echo)),
            0x03 => return Some(self.interrupt(echo)),
            0x04 => return Some(self.end_of_input()),
            0x08 | 0x7f => self.erase_character(echo),
            0x1a => return Some(self.suspend(echo)),
            0x15 => self.erase_while(echo, |_| true),
            0x17 => {
                self.erase_while(echo, |byte| byte == b' ' || byte == b'\t');
                self.erase_while(echo, |byte| byte != b' ' && byte != b'\t');
            }
            b'\t' | 0x20..=0x7e | 0x80.. => self.add(byte, echo),
            _ => {}
        }
        None
    }

    /// Copies out of the first finished line, at most to its end; how many bytes. `Some(0)` is the
    /// end of input, which is then consumed; `None`: nothing there yet.
    pub fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let line = self.ready.front()?;
        let rest = &line[self.taken..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        self.ready_bytes -= count;
        if self.taken == line.len() {
            self.ready.pop_front();
            self.taken = 0;
            self.raw_tail &= !self.ready.is_empty();
        }
        Some(count)
    }

    /// So much is waiting for a reader that the owner should stop feeding until some of it is read.
    pub fn is_full(&self) -> bool {
        self.ready_bytes >= READY_LIMIT || self.ready.len() >= LINES_LIMIT
    }

    /// Whether the byte belongs to an escape sequence (arrow keys and the like), which means
    /// nothing here.
    fn skip_escape(&mut self, byte: u8) -> bool {
        let (next, skip) = match (self.escape, byte) {
            (_, 0x1b) => (Escape::Start, true),
            (Escape::None, _) => (Escape::None, false),
            (Escape::Start, b'[' | b'O') => (Escape::Sequence, true),
            (Escape::Sequence, 0x20..=0x3f) => (Escape::Sequence, true),
            // A control character is obeyed also in the middle of a sequence.
            (_, 0x00..=0x1f) => (Escape::None, false),
            (Escape::Start | Escape::Sequence, _) => (Escape::None, true),
        };
        self.escape = next;
        skip
    }

    fn show(&self, echo: &mut Vec<u8>, text: &[u8]) {
        if self.echo {
            echo.extend_from_slice(text);
        }
    }

    fn add(&mut self, byte: u8, echo: &mut Vec<u8>) {
        if self.line.len() >= LINE_LIMIT {
            return self.show(echo, BELL);
        }
        self.line.push(byte);
        // One column for each character, so that erasing it is simple.
        let shown = if byte == b'\t' { b' ' } else { byte };
        self.show(echo, &[shown]);
    }

    fn end_line(&mut self, echo: &mut Vec<u8>) -> Event {
        self.show(echo, b"\r\n");
        self.line.push(b'\n');
        self.hand_over()
    }

    fn end_of_input(&mut self) -> Event {
        self.hand_over()
    }

    fn hand_over(&mut self) -> Event {
        let line = core::mem::take(&mut self.line);
        self.ready_bytes += line.len();
        self.ready.push_back(line);
        Event::Ready
    }

    fn add_raw(&mut self, byte: u8) {
        if !core::mem::replace(&mut self.raw_tail, true) {
            self.ready.push_back(Vec::new());
        }
        if let Some(tail) = self.ready.back_mut() {
            tail.push(byte);
            self.ready_bytes += 1;
        }
    }

    fn suspend(&mut self, echo: &mut Vec<u8>) -> Event {
        self.show(echo, b"^Z\r\n");
        self.line.clear();
        Event::Suspend
    }

    fn interrupt(&mut self, echo: &mut Vec<u8>) -> Event {
        self.show(echo, b"^C\r\n");
        self.clear();
        Event::Interrupt
    }

    /// Takes back the last character with all its bytes.
    fn erase_character(&mut self, echo: &mut Vec<u8>) {
        while let Some(byte) = self.line.pop() {
            // UTF-8 continuation bytes are 10xxxxxx; the byte that is none starts the character.
            if byte & 0xc0 != 0x80 {
                return self.show(echo, ERASE);
            }
        }
    }

    fn erase_while(&mut self, echo: &mut Vec<u8>, wanted: impl Fn(u8) -> bool) {
        while self.line.last().is_some_and(|&byte| wanted(byte)) {
            self.erase_character(echo);
        }
    }
}

#[cfg(test)]
mod tests;
