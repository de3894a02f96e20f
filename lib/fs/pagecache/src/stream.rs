//! Where the readers of a file are, and what is worth loading before they ask for it.
//!
//! A reader is known by the place where it stopped. One that goes on there is *sequential*, and so
//! is one that begins at the start of the file. For a sequential reader a window behind its place
//! is asked for, and when less is left before it than half of the next window, that one, each twice
//! as long as the last, up to a limit. A reader that jumps is a new one, without a window.

use crate::{LARGE, PAGE, page_end};

/// Readers of one file whose places are remembered.
const READERS: usize = 4;
/// Bytes of the first window.
const FIRST_WINDOW: usize = LARGE;
/// Bytes of the longest one.
const LAST_WINDOW: usize = 4 * LARGE;

/// Pages that are worth loading before somebody asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The file.
    pub file: u64,
    /// Where they start: at a page.
    pub offset: u64,
    /// Where they end.
    pub end: u64,
}

/// One reader.
#[derive(Clone, Copy, Default)]
struct Reader {
    /// Where it stopped.
    next: u64,
    /// Up to where something was loaded for it or asked for: a page.
    asked: u64,
    /// Bytes of the window that is asked for next; 0 if it is not sequential.
    window: usize,
}

/// The readers of one file.
#[derive(Default)]
pub(crate) struct Readers {
    all: [Reader; READERS],
    oldest: usize,
}

impl Readers {
    /// Whether a reader at `offset` goes on where one stopped, or begins.
    pub(crate) fn is_sequential(&self, offset: u64) -> bool {
        offset == 0 || self.all.iter().any(|reader| reader.next == offset)
    }

    /// Notes that somebody read from `from` to `to` in a file of `size` bytes. What is worth
    /// loading now, in windows of at most `most` bytes: where it starts and ends.
    pub(crate) fn went(
        &mut self,
        from: u64,
        to: u64,
        size: u64,
        most: usize,
    ) -> Option<(u64, u64)> {
        let known = self.all.iter().position(|reader| reader.next == from);
        let place = known.unwrap_or(self.oldest);
        let reader = &mut self.all[place];
        if known.is_none() || from == 0 {
            self.oldest = (place + 1) % READERS;
            *reader = Reader::default();
        }
        reader.next = to;
        reader.asked = reader.asked.max(page_end(to));
        if known.is_none() && from != 0 {
            return None;
        }
        if reader.window == 0 {
            reader.window = FIRST_WINDOW;
        }
        reader.window = reader.window.min(most);
        if reader.asked >= size || reader.asked - to > reader.window as u64 / 2 {
            return None;
        }
        let start = reader.asked;
        let end = size.min(start.saturating_add(reader.window as u64));
        reader.asked = page_end(end);
        reader.window = (2 * reader.window).min(LAST_WINDOW);
        Some((start, end))
    }

    /// Notes that what was asked for at `offset` is not there when its reader comes: it goes on
    /// from there with a shorter window.
    pub(crate) fn missed(&mut self, offset: u64) {
        let waiting = |reader: &&mut Reader| (reader.next..reader.asked).contains(&offset);
        for reader in self.all.iter_mut().filter(waiting) {
            reader.asked = offset / PAGE as u64 * PAGE as u64;
            reader.window = (reader.window / 4).max(FIRST_WINDOW);
        }
    }
}
