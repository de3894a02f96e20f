//! What the terminal shows of prompt and line, and how to change that.
//!
//! The cursor's place on the terminal is known as row and column behind the start of the prompt.
//! After the last column a terminal waits with the cursor on it until the next character comes; a
//! blank and a carriage return bring it to the next row for certain.

use alloc::format;
use alloc::vec::Vec;

use crate::line::is_inside;

/// Fewer columns are taken for so many.
const NARROWEST: usize = 8;
/// More columns are taken for so many.
const WIDEST: usize = 10_000;

/// A place behind the start of the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    row: usize,
    column: usize,
}

/// What is on the terminal.
pub(crate) struct Screen {
    columns: usize,
    /// What is shown of the line and the prompt.
    shown: Vec<u8>,
    prompt: Vec<u8>,
    /// Where the shown text ends.
    end: Place,
    /// Where the cursor is.
    cursor: Place,
    /// Something is shown.
    begun: bool,
}

/// How many columns a character takes.
fn width(character: char) -> usize {
    match character as u32 {
        // Combining marks, and what has no width.
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        // Wide: East Asian scripts and symbols, emoji.
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

impl Screen {
    /// A terminal so many columns wide.
    pub fn new(columns: usize) -> Self {
        Screen {
            columns: columns.clamp(NARROWEST, WIDEST),
            shown: Vec::new(),
            prompt: Vec::new(),
            end: Place::default(),
            cursor: Place::default(),
            begun: false,
        }
    }

    /// The terminal is so many columns wide now. Nothing is shown yet.
    pub fn resize(&mut self, columns: usize) {
        self.columns = columns.clamp(NARROWEST, WIDEST);
    }

    /// How wide it is.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The cursor is at the start of an empty row.
    pub fn begin(&mut self) {
        self.begun = false;
        self.shown.clear();
        self.cursor = Place::default();
        self.end = Place::default();
    }

    /// Where the cursor is after `text` is written at `place`.
    fn after(&self, mut place: Place, text: &[u8]) -> Place {
        for chunk in text.utf8_chunks() {
            let invalid = chunk.invalid().iter().map(|_| 1);
            for width in chunk.valid().chars().map(width).chain(invalid) {
                if place.column + width > self.columns {
                    place.row += 1;
                    place.column = 0;
                }
                place.column += width;
                if place.column == self.columns {
                    place.row += 1;
                    place.column = 0;
                }
            }
        }
        place
    }

    /// Writes text at the cursor, which is left behind it.
    fn write(&mut self, text: &[u8], out: &mut Vec<u8>) {
        for &byte in text {
            // A control character in a recalled line must not do what it says.
            out.push(if byte < 0x20 || byte == 0x7f {
                b'?'
            } else {
                byte
            });
        }
        let before = self.cursor;
        self.cursor = self.after(before, text);
        if self.cursor.column == 0 && self.cursor.row > before.row {
            out.extend_from_slice(b" \r");
        }
    }

    fn move_to(&mut self, place: Place, out: &mut Vec<u8>) {
        if place == self.cursor {
            return;
        }
        if place.row < self.cursor.row {
            out.extend_from_slice(format!("\x1b[{}A", self.cursor.row - place.row).as_bytes());
        } else if place.row > self.cursor.row {
            out.extend_from_slice(format!("\x1b[{}B", place.row - self.cursor.row).as_bytes());
        }
        if place.row == self.cursor.row && place.column + 1 == self.cursor.column {
            out.push(8);
        } else if place.column != self.cursor.column {
            out.push(b'\r');
            if place.column > 0 {
                out.extend_from_slice(format!("\x1b[{}C", place.column).as_bytes());
            }
        }
        self.cursor = place;
    }

    /// Shows prompt and line with the cursor at byte `at`. Only what has changed is written.
    pub fn show(&mut self, prompt: &[u8], line: &[u8], at: usize, out: &mut Vec<u8>) {
        let only_added = self.begun
            && self.prompt == prompt
            && at == line.len()
            && self.cursor == self.end
            && line.len() >= self.shown.len()
            && line.starts_with(&self.shown);
        if only_added {
            let added = line[self.shown.len()..].to_vec();
            self.write(&added, out);
            self.end = self.cursor;
            self.shown.extend_from_slice(&added);
            return;
        }
        let origin = Place::default();
        let same = match self.begun && self.prompt == prompt {
            true => common(&self.shown, line),
            false => 0,
        };
        let behind_prompt = self.after(origin, prompt);
        if self.begun && self.prompt == prompt {
            if same < line.len() || same < self.shown.len() {
                let place = self.after(behind_prompt, &line[..same]);
                self.move_to(place, out);
                self.rewrite(&line[same..], same < self.shown.len(), out);
            }
        } else {
            self.move_to(origin, out);
            let whole = [prompt, line].concat();
            let had_more = self.begun;
            self.rewrite(&whole, had_more, out);
        }
        self.begun = true;
        self.prompt = prompt.to_vec();
        self.shown = line.to_vec();
        let place = self.after(behind_prompt, &line[..at]);
        self.move_to(place, out);
    }

    /// Writes `text` to the end of all; what was shown behind goes away.
    fn rewrite(&mut self, text: &[u8], had_more: bool, out: &mut Vec<u8>) {
        self.write(text, out);
        if had_more {
            out.extend_from_slice(b"\x1b[J");
        }
        self.end = self.cursor;
    }

    /// Puts the cursor behind the line, for what comes after it, with the prompt that belongs to
    /// it.
    pub fn leave(&mut self, prompt: &[u8], line: &[u8], out: &mut Vec<u8>) {
        self.show(prompt, line, line.len(), out);
        self.begun = false;
    }
}

/// How many bytes two texts have in common at their starts, in whole characters.
fn common(left: &[u8], right: &[u8]) -> usize {
    let mut same = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let inside = |text: &[u8], at: usize| text.get(at).is_some_and(|&byte| is_inside(byte));
    while same > 0 && (inside(left, same) || inside(right, same)) {
        same -= 1;
    }
    same
}
