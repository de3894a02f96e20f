//! How the kernel's log tells of a stack: in offsets that help nobody to find a place in memory.
//!
//! `9+3579` is 0x3579 bytes into the image of domain 9, `0+12` 0x12 bytes into the kernel's code,
//! `^298` 0x298 bytes above the innermost stack pointer, `?` anything else. `lab/symbols` reads it.

use crate::Text;
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
    /// The domain's number, the beginning of its image's signature, and its name.
    pub domain: usize,
    /// See above.
    pub build: u64,
    /// See above.
    pub name: Text<32>,
    /// Beginning and end of the image.
    pub image: [usize; 2],
    /// Where the thread was, or whither the call from there returns.
    pub at: Place,
    /// Its first and its last words: where they were, which of the note's words are theirs, and how
    /// many.
    pub copied: [[usize; 3]; 2],
}

/// A copy of the stack of a thread. Zeros are one of nothing.
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

/// Words of a line.
const LINE: usize = 32;

impl Targets {
    /// `word` as an offset.
    pub fn word(&self, word: usize) -> impl fmt::Display {
        fmt::from_fn(move |f| match word {
            _ if self.image.contains(&word) => {
                write!(f, "{}+{:x}", self.domain, word - self.image.start)
            }
            _ if self.kernel.contains(&word) => write!(f, "0+{:x}", word - self.kernel.start),
            _ if self.stack.contains(&word) => write!(f, "^{:x}", word - self.stack.start),
            _ => f.write_str("?"),
        })
    }

    /// Lines for those of `words` that point into code, return addresses among them, or stand
    /// before one and point into the stack, as a saved rbp does; each with its place. The first of
    /// the words was at the address `start`.
    pub fn lines<'a>(
        &'a self,
        words: &'a [usize],
        start: usize,
    ) -> impl Iterator<Item = impl fmt::Display + 'a> {
        let is_code = |word: &usize| self.image.contains(word) || self.kernel.contains(word);
        let is_told = move |at: &usize| {
            let is_saved =
                || self.stack.contains(&words[*at]) && words[at + 1..].first().is_some_and(is_code);
            is_code(&words[*at]) || is_saved()
        };
        let told = move |first: usize| (first..words.len().min(first + LINE)).filter(is_told);
        let lines = (0..words.len()).step_by(LINE);
        let lines = lines.filter(move |first| told(*first).next().is_some());
        lines.map(move |first| {
            fmt::from_fn(move |f| {
                told(first).try_for_each(|at| {
                    let place = (start + at * size_of::<usize>()).wrapping_sub(self.stack.start);
                    write!(f, "{place:x}={} ", self.word(words[at]))
                })
            })
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
        let lines: Vec<_> = to
            .lines(&words, 0x50_0008)
            .map(|line| line.to_string())
            .collect();
        assert_eq!(lines, ["8=^100 10=9+3579 100=^200 ", "108=0+12 "]);
        assert_eq!(to.word(0x20_0000).to_string(), "?");
        assert_eq!(to.lines(&[1; 100], 0x50_0000).count(), 0);
        assert_eq!(to.lines(&[], 0).count(), 0);
    }
}
