//! How the kernel's log tells of a stack: in offsets that help nobody to find a place in memory.
//!
//! `9+3579` is 0x3579 bytes into the image of domain 9, `0+12` 0x12 bytes into the kernel's code,
//! `^298` 0x298 bytes above the innermost stack pointer, `?` anything else. `lab/symbols` reads it.

use core::fmt;
use core::ops::Range;

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
