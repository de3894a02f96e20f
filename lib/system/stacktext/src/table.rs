//! Symbols in a form that is small and takes no work to open: what the system has on its disk.
//!
//! All numbers are of 32 bits, the low byte first. Behind a head of ten of them stand, each as long
//! as the head says:
//!
//! | part | of each |
//! | --- | --- |
//! | names | offset from which on it holds, number of a frame (0: nothing is known) |
//! | rules | offset from which on it holds, end of the frame, place of the saved rbp |
//! | frames | place of the function's name, place of the file's, line (0: neither), number of the frame that it was inlined into (0: none); numbers begin with 1 |
//! | texts | a number of bytes, and the bytes |
//!
//! The head: the eight bytes [`MAGIC`], the build, the three counts, bytes of texts, [`sum`] of all
//! behind the head, and nothing. The file lies where anybody may have written, so nothing in it is
//! believed: what leads nowhere is as if it were not known.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::rule::{Cfa, Rule, SavedBp};
use crate::{Named, Symbols};

/// What a file begins with, in this form.
pub(crate) const MAGIC: [u8; 8] = *b"trefsym1";
/// Numbers of the head, and of one of each part.
pub(crate) const HEAD: usize = 10;
pub(crate) const NAME: usize = 2;
pub(crate) const RULE: usize = 3;
pub(crate) const FRAME: usize = 4;
/// No rule holds here.
pub(crate) const NO_RULE: i32 = i32::MIN;
/// rbp is where it was; nobody knows where.
pub(crate) const SAME: i32 = i32::MAX;
pub(crate) const UNKNOWN: i32 = i32::MIN;
/// Most functions that are inlined into each other.
const DEEPEST: usize = 64;
/// Bytes of one number.
const WORD: usize = 4;

/// The symbols of one build.
pub struct Table<B> {
    bytes: B,
    names: usize,
    rules: usize,
    frames: usize,
}

impl<B: AsRef<[u8]>> Table<B> {
    /// The symbols in `bytes`, which are to be those of `build`.
    ///
    /// # Errors
    /// Why they are not, in a few words.
    pub fn open(bytes: B, build: u64) -> Result<Self, String> {
        let damaged = || format!("the symbols of build {build:016x} are damaged");
        let all = bytes.as_ref();
        let head = all.get(..HEAD * WORD).ok_or_else(damaged)?;
        if !head.starts_with(&MAGIC) {
            return Err(format!(
                "the symbols of build {build:016x} have another form"
            ));
        }
        let number = |at| number(head, at).map(|number| number as usize);
        let long = |at| number(at).zip(number(at + 1));
        let (low, high) = long(2).ok_or_else(damaged)?;
        let found = low as u64 | (high as u64) << 32;
        if found != build {
            return Err(format!("symbols of build {found:016x}, not {build:016x}"));
        }
        let table = || {
            let (names, rules, frames) = (number(4)?, number(5)?, number(6)?);
            let numbers = names
                .checked_mul(NAME)?
                .checked_add(rules.checked_mul(RULE)?)?
                .checked_add(frames.checked_mul(FRAME)?)?;
            let length = numbers.checked_mul(WORD)?.checked_add(number(7)?)?;
            let rest = &all[HEAD * WORD..];
            let is_whole = rest.len() == length && number(8)? == sum(rest) as usize;
            is_whole.then_some((names, rules, frames))
        };
        let (names, rules, frames) = table().ok_or_else(damaged)?;
        Ok(Table {
            bytes,
            names,
            rules,
            frames,
        })
    }

    /// The number at `at`, counted in numbers from the beginning of the file.
    fn word(&self, at: usize) -> Option<u32> {
        number(self.bytes.as_ref(), at)
    }

    /// Where in a part that begins at `from`, with `count` entries of `size` numbers, the last
    /// entry is that begins at `offset` or before.
    fn last(&self, [from, count, size]: [usize; 3], offset: u64) -> Option<usize> {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            match u64::from(self.word(from + middle * size)?) <= offset {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Some(from + low.checked_sub(1)? * size)
    }

    fn rules_at(&self) -> usize {
        HEAD + self.names * NAME
    }

    fn frames_at(&self) -> usize {
        self.rules_at() + self.rules * RULE
    }

    /// The text at this place among the texts.
    fn text(&self, place: u32) -> Option<&str> {
        let texts = (self.frames_at() + self.frames * FRAME) * WORD;
        let text = self.bytes.as_ref().get(texts..)?.get(place as usize..)?;
        let length = number(text, 0)? as usize;
        str::from_utf8(text.get(WORD..)?.get(..length)?).ok()
    }

    /// A frame, and the number of the one that it was inlined into.
    fn frame(&self, number: u32) -> Option<(Named, u32)> {
        let at = (number as usize)
            .checked_sub(1)
            .filter(|at| *at < self.frames)?;
        let at = self.frames_at() + at * FRAME;
        let file = self.text(self.word(at + 1)?);
        let line = self.word(at + 2)?;
        let place = file.filter(|_| line != 0);
        let named = Named {
            function: self.text(self.word(at)?)?.into(),
            place: place.map(|file| format!("{file}:{line}")),
        };
        Some((named, self.word(at + 3)?))
    }
}

impl<B: AsRef<[u8]>> Symbols for Table<B> {
    fn names(&self, offset: u64) -> Vec<Named> {
        let mut found = Vec::new();
        let entry = self.last([HEAD, self.names, NAME], offset);
        let mut next = entry.and_then(|at| self.word(at + 1)).unwrap_or_default();
        while let Some((named, outer)) = self.frame(next)
            && found.len() < DEEPEST
        {
            found.push(named);
            next = outer;
        }
        found
    }

    fn rule(&self, offset: u64) -> Option<Rule> {
        let at = self.last([self.rules_at(), self.rules, RULE], offset)?;
        let cfa = self.word(at + 1)?.cast_signed();
        if cfa == NO_RULE {
            return None;
        }
        let bp = match self.word(at + 2)?.cast_signed() {
            SAME => SavedBp::Same,
            UNKNOWN => SavedBp::Unknown,
            offset => SavedBp::At(offset),
        };
        let cfa = match cfa & 1 {
            0 => Cfa::Sp(cfa >> 1),
            _ => Cfa::Bp(cfa >> 1),
        };
        Some(Rule { cfa, bp })
    }
}

/// The number at `at`, counted in numbers.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at.checked_mul(WORD)?..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// What notices a file that was cut, or written over (Adler's sum).
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1_u32, 0_u32);
    // So many bytes cannot overflow.
    for piece in bytes.chunks(5552) {
        for byte in piece {
            low += u32::from(*byte);
            high += low;
        }
        (low, high) = (low % 65_521, high % 65_521);
    }
    high << 16 | low
}
