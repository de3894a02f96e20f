//! Stacks as the kernel's log notes them, in words.
//!
//! When a domain dies the kernel notes what a debugger needs to find the frames of the thread that
//! was inside, and writes it to its log (`kernel/isolation/src/call/stack.rs`):
//!
//! ```text
//! stack 9: 0 is kernel cdfa5d2d84e99d82        what 0 stands for, and of which build it is
//! stack 9: 9 is ext2 0ff475ab16808da8          the same for domain 9, once for each part of it
//! stack 9: in 9 at 0+3ea0a 0 ?                 what domain 9 did: instruction, stack pointer, rbp
//! stack 9: 8=0+3ea0a 2a0=^298                  words of the stack, by their places
//! stack 9: 10 is vfs 26d0b2a8f3f1c95e          and for domain 10
//! stack 9: in 10 at 0+3e2e3 4d0 ?              where it called domain 9
//! stack 9: end
//! stack 17: as of 9, 2 times                   the same stack, which is there for the second time
//! ```
//!
//! When the kernel itself panics it tells of each processor in the same way, as `stack cpu0`.
//!
//! `9+3579` is 0x3579 bytes into the image of domain 9, `^298` 0x298 bytes above the innermost
//! stack pointer. [`Reader`] puts the frames in their place, by what [`Files`] knows of the builds:
//! functions, lines, and how to get from a function to its caller. Whatever the lines say, however
//! wrong: it is told in the place of a frame.
//!
//! The host reads what the compiler wrote (`lab/symbols`). Inside the system that would be too
//! much; there it is a [`Table`], which the host makes of the same.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod note;
mod rule;
mod table;
#[cfg(test)]
mod tests;
mod unwind;
mod write;

pub use rule::{Cfa, Rule, SavedBp};
pub use table::Table;
pub use unwind::Frame;
pub use write::Writer;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use note::{Note, Noted};

/// A function, of which another may be part that was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name, without the types that it was made for.
    pub function: String,
    /// Its file, relative to the repository where it is from there, and its line.
    pub place: Option<String>,
}

/// What is known of the code of one build.
pub trait Symbols {
    /// The functions at this offset, the innermost first; none if nobody knows.
    fn names(&self, offset: u64) -> Vec<Named>;

    /// How to get from the function at this offset to its caller; `None` if nobody knows.
    fn rule(&self, offset: u64) -> Option<Rule>;
}

/// All builds of which something is known.
pub trait Files {
    /// What is known of one.
    type File: Symbols;

    /// What is known of this build; `None`: of the kernel that was booted.
    ///
    /// # Errors
    /// Why there is nothing, in a few words.
    fn get(&mut self, build: Option<u64>, is_kernel: bool) -> Result<&Self::File, &str>;
}

/// Reads the log line by line.
pub struct Reader<F> {
    files: F,
    notes: BTreeMap<String, Note>,
}

impl<F: Files> Reader<F> {
    /// Of a log of which `files` knows the builds.
    pub fn new(files: F) -> Self {
        Reader {
            files,
            notes: BTreeMap::new(),
        }
    }

    /// The lines that stand for `line`, which ends without a line break: itself; none, if it is
    /// part of a note; or the frames, if it ends one.
    pub fn line(&mut self, line: &str) -> Vec<String> {
        let (time, text) = split_time(line);
        let Some((whose, text)) = note::of(text) else {
            return Vec::from([line.into()]);
        };
        if let Some((of, times)) = note::again(text) {
            let line = format!("{time}    (the stack that was told of domain {of}, {times} times)");
            return Vec::from([line]);
        }
        let note = self.notes.entry(whose.into()).or_default();
        match note.add(text) {
            Noted::More => Vec::new(),
            Noted::Nonsense => Vec::from([line.into()]),
            Noted::End => {
                let note = self.notes.remove(whose).unwrap_or_default();
                let frames = unwind::lines(&note, &mut self.files);
                let said = frames.into_iter().map(|line| format!("{time}{line}"));
                said.collect()
            }
        }
    }

    /// The frames of a stack that did not come by the log, the innermost first.
    pub fn frames(&mut self, note: &Note) -> Vec<Frame> {
        unwind::frames(note, &mut self.files)
    }

    /// The text that stands for `text`, whole lines of a log.
    pub fn lines(&mut self, text: &str) -> String {
        let mut said = String::new();
        for line in text.split_inclusive('\n') {
            let bare = line.trim_end_matches(['\r', '\n']);
            let end = &line[bare.len()..];
            for line in self.line(bare) {
                said.push_str(&line);
                said.push_str(end);
            }
        }
        said
    }
}

/// The time in front of a line, with what separates it, and the rest.
fn split_time(line: &str) -> (&str, &str) {
    let end = match line.find("] ") {
        Some(at) if line.starts_with('[') => at + 2,
        _ => 0,
    };
    line.split_at(end)
}
