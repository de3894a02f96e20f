//! What can be wrong with shell source, and how it is told to the user.

use alloc::string::String;
use core::fmt;

/// Source that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line on which the trouble starts, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: Reason,
    /// The source ended too early: more lines might complete it.
    pub incomplete: bool,
}

/// What is wrong with the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A quote, brace or parenthesis is opened here and never closed; which.
    Unterminated(&'static str),
    /// A command must stand behind this.
    MissingCommand(String),
    /// A file name must stand behind this.
    MissingTarget(String),
    /// This stands where it cannot.
    Unexpected(String),
    /// This must stand here.
    Expected(&'static str),
    /// The inside of `${...}` is not understood.
    BadParameter,
    /// Only descriptors 0 to 9 can be redirected.
    BadDescriptor(String),
    /// What POSIX has and this shell has not.
    Unsupported(&'static str),
    /// Nested more than [`MOST_NESTING`](crate::MOST_NESTING) deep.
    TooDeep,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 1 {
            write!(f, "line {}: ", self.line)?;
        }
        match &self.reason {
            Reason::Unterminated(what) => write!(f, "syntax error: unterminated {what}"),
            Reason::MissingCommand(after) => {
                write!(f, "syntax error: a command is missing after `{after}`")
            }
            Reason::MissingTarget(after) => {
                write!(f, "syntax error: a file name is missing after `{after}`")
            }
            Reason::Unexpected(what) => write!(f, "syntax error: unexpected `{what}`"),
            Reason::Expected(what) => write!(f, "syntax error: `{what}` is missing"),
            Reason::BadParameter => f.write_str("syntax error: bad `${...}`"),
            Reason::BadDescriptor(text) => {
                write!(f, "{text}: only descriptors 0 to 9 can be redirected")
            }
            Reason::Unsupported(what) => write!(f, "{what} not supported by this shell"),
            Reason::TooDeep => f.write_str("nested too deep"),
        }
    }
}
