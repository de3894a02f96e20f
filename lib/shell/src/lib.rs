//! The shell's language, without a system under it: source text goes through [`parse`] to a [`List`], and a
//! [`Shell`] runs that on anything that implements [`System`] (the program `sh` does, and so do the tests).
//!
//! The language is the POSIX shell's, less functions, `case`, here-documents and arithmetic: pipes,
//! redirections, `;` `&` `&&` `||` `!`, quotes, variables, `$(...)`, `* ? [...]`, `( )`, `{ }`, `if`,
//! `while`, `until` and `for`. There is no `fork` on Trefoil, so what needs a copy of the shell (a
//! substitution, a compound command in a pipe or in the background) is given as text to a new `sh -c`.
//!
//! Everything is bytes, as file names are. Nesting is bounded by [`MOST_NESTING`], so that no input can use
//! up the stack.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ast;
mod builtin;
mod condition;
mod error;
mod expand;
mod glob;
mod launch;
mod lexer;
mod parser;
mod run;
mod system;

pub use ast::*;
pub use error::{Reason, SyntaxError};
pub use expand::{Environment, ExpandError, expand_one, expand_words};
pub use glob::{PatternByte, has_wildcard, matches};
pub use parser::parse;
pub use run::{Flow, Shell};
pub use system::{Ended, FileTest, Line, Lookup, OpenMode, SpawnError, SpawnOrder, System};

/// How deep commands, quotes and substitutions may nest.
pub const MOST_NESTING: usize = 24;
/// The most bytes that one command's words may expand to: far more than any program takes as arguments, far
/// less than a shell has memory.
pub const MOST_EXPANDED: usize = 4 * 1024 * 1024;
