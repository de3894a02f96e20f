//! How the kernel's log tells of a stack: in offsets that help nobody to find a place in memory.
//!
//! `9+3579` is 0x3579 bytes into the image of domain 9, `0+12` 0x12 bytes into the kernel's code,
//! `^298` 0x298 bytes above the innermost stack pointer, `?` anything else. `lab/symbols` reads it.

use core::fmt;
use core::ops::Range;

/// Words that are copied of a stack, and calls.
pub const WORDS: usize = 2048;
/// See [`WORDS`].
pub const PARTS: usize = 16;

/// Where a thread is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Place {
    /// Instruction pointer.
    pub ip: usize,
    /// Stack pointer.
    pub sp: usize,
    /// rbp.
    pub bp: usize,
}

/// What a thread did in one domain: from a call to the one that was made from there.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Part {
    /// The domain's number, the beginning of its image's signature, and its name with zeros behind.
    pub domain: usize,
    /// See above.
    pub build: u64,
    /// See above.
    pub name: [u8; 32],
    /// Beginning and end of the image.
    pub image: [usize; 2],
    /// Where the thread was, or whither the call from there returns.
    pub at: Place,
    /// Its first and its last words: where they were, which of the note's words are theirs, and how
    /// many.
    pub copied: [[usize; 3]; 2],
}

/// A copy of the stack of a thread.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Note {
    /// The number of the domain that died, or how many nanoseconds a sample stands for.
    pub about: u64,
    /// How many there are.
    pub parts_used: usize,
    /// The innermost first.
    pub parts: [Part; PARTS],
    /// How many there are.
    pub words_used: usize,
    /// Of all parts.
    pub words: [usize; WORDS],
    /// Why it does not lead to the thread's first function: there are more calls (1), or the stack
    /// is damaged (2). 0: it does.
    pub cut: usize,
}

impl Note {
    /// Nothing is noted.
    pub const EMPTY: Note = Note {
        about: 0,
        parts_used: 0,
        parts: [Part {
            domain: 0,
            build: 0,
            name: [0; 32],
            image: [0; 2],
            at: Place {
                ip: 0,
                sp: 0,
                bp: 0,
            },
            copied: [[0; 3]; 2],
        }; PARTS],
        words_used: 0,
        words: [0; WORDS],
        cut: 0,
    };
}

/// Samples that the kernel keeps while it takes some, in a ring, until the host has read them. Each
/// is a word, which is [`FULL`] and above that the sample's number from 1 on, and the note.
pub const SAMPLES: usize = 128;
/// The lowest bits of the word in front of a note: nobody uses it, somebody fills it, it is whole.
pub const FREE: u64 = 0;
/// See [`FREE`].
pub const TAKEN: u64 = 1;
/// See [`FREE`].
pub const FULL: u64 = 2;
/// How far the number is shifted.
pub const NUMBER_SHIFT: u32 = 8;

/// What words of a stack may point to.
#[derive(Clone, Debug)]
pub struct Targets {
    /// The number of the domain whose code ran.
    pub domain: u32,
    /// Its image.
    pub image: Range<usize>,
    /// The kernel's code.
    pub kernel: Range<usize>,
    /// The stack, from the innermost stack pointer on.
    pub stack: Range<usize>,
}

/// A word of a stack.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a>(pub &'a Targets, pub usize);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Word(to, word) = self;
        if to.image.contains(word) {
            write!(f, "{}+{:x}", to.domain, word - to.image.start)
        } else if to.kernel.contains(word) {
            write!(f, "0+{:x}", word - to.kernel.start)
        } else if to.stack.contains(word) {
            write!(f, "^{:x}", word - to.stack.start)
        } else {
            f.write_str("?")
        }
    }
}

/// Words of a line.
const LINE: usize = 32;

/// Those words of a line that point into code, return addresses among them, or stand before one and
/// point into the stack, as a saved rbp does; each with its place.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    to: &'a Targets,
    /// All words, and where the first of them was.
    words: &'a [usize],
    start: usize,
    /// The line's first.
    first: usize,
}

impl<'a> Line<'a> {
    /// The lines for `words`, the first of which was at the address `start`.
    pub fn all(
        to: &'a Targets,
        words: &'a [usize],
        start: usize,
    ) -> impl Iterator<Item = Line<'a>> {
        let line = move |first| Line {
            to,
            words,
            start,
            first,
        };
        let lines = (0..words.len()).step_by(LINE).map(line);
        lines.filter(|line| line.told().next().is_some())
    }

    fn told(&self) -> impl Iterator<Item = usize> {
        let Line { to, words, .. } = *self;
        let code = |at: usize| {
            let word = words.get(at).copied().unwrap_or_default();
            to.image.contains(&word) || to.kernel.contains(&word)
        };
        let told = move |at: &usize| code(*at) || to.stack.contains(&words[*at]) && code(at + 1);
        (self.first..words.len().min(self.first + LINE)).filter(told)
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.told().try_for_each(|at| {
            let place = (self.start + at * size_of::<usize>()).wrapping_sub(self.to.stack.start);
            write!(f, "{place:x}={} ", Word(self.to, self.words[at]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn only_offsets_are_told_and_only_what_matters() {
        let to = Targets {
            domain: 9,
            image: 0x10_0000..0x20_0000,
            kernel: 0x80_0000..0x90_0000,
            stack: 0x50_0000..0x50_2000,
        };
        let mut words = [0x50_0100; 40];
        (words[1], words[2]) = (0x10_3579, 7);
        (words[31], words[32]) = (0x50_0200, 0x80_0012);
        let lines: Vec<_> = Line::all(&to, &words, 0x50_0008)
            .map(|line| line.to_string())
            .collect();
        assert_eq!(lines, ["8=^100 10=9+3579 100=^200 ", "108=0+12 "]);
        assert_eq!(Word(&to, 0x20_0000).to_string(), "?");
        assert_eq!(Line::all(&to, &[1; 100], 0x50_0000).count(), 0);
        assert_eq!(Line::all(&to, &[], 0).count(), 0);
    }
}
