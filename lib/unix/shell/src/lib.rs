//! The shell's language, without a system under it: source text goes through [`parse`] to a
//! [`List`], and a [`Shell`] runs that on anything that implements [`System`] (the program `sh`
//! does, and so do the tests).
//!
//! The language is the POSIX shell's. There is no `fork` on Trefoil, so what needs a copy of the
//! shell (a subshell, a substitution of more than a pipeline, a compound command in a pipe or in
//! the background) is given as text to a new `sh`, with the state of this one ([`Shell::restore`]).
//!
//! Everything is bytes, as file names are. Nesting is bounded by [`MOST_NESTING`], so that no input
//! can use up the stack.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arithmetic;
mod ast;
mod builtin;
mod condition;
mod error;
mod expand;
mod fields;
mod function;
mod glob;
mod jobs;
mod launch;
mod lexer;
mod parser;
mod person;
mod run;
mod state;
mod system;
mod text_io;
mod word;

pub use ast::*;
pub use error::{Reason, SyntaxError};
pub use expand::{Environment, ExpandError, expand_one, expand_words};
pub use glob::{PatternByte, cut, has_wildcard, matches, matches_text};
pub use parser::{parse, parse_line};
pub use run::{Flow, Shell};
pub use system::{
    Ended, FileTest, Line, Lookup, NO_DESCRIPTOR, OpenMode, SpawnError, SpawnOrder, System,
    Unwritten,
};

/// How deep commands, quotes and substitutions may nest.
pub const MOST_NESTING: usize = 24;
/// How many bytes of stack commands that run inside each other may use: of the 128 KiB that a
/// thread of Trefoil has, so that there is enough for the system calls of the innermost.
pub const MOST_STACK: usize = 80 * 1024;
/// The most bytes that one command's words may expand to: far more than any program takes as
/// arguments, far less than a shell has memory.
pub const MOST_EXPANDED: usize = 4 * 1024 * 1024;
